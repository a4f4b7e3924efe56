"""Addresses: `embedded:efficientnet-lite0`, `onnx:FILE`, `python:module:factory`."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from counterfoil.embedded.fetch import asset, cache_folder
from counterfoil.embedded.networks import NETWORKS, onnx_file
from counterfoil.errors import UserError
from counterfoil.labels import imagenet1k
from counterfoil.models.description import describe, labels_of
from counterfoil.models.onnx import OnnxClassifier
from counterfoil.models.python import load_python
from counterfoil.types import Classifier


def _embedded(address: str, place: str, describe_flag: str | None) -> Classifier:
    if place not in NETWORKS:
        close = difflib.get_close_matches(place, NETWORKS, n=1, cutoff=0.0)[0]
        raise UserError(
            f"expected embedded:{{{', '.join(NETWORKS)}}}, got '{address}'; did you mean 'embedded:{close}'?"
        )
    file = onnx_file(place, asset, cache_folder())
    return OnnxClassifier(address, file, imagenet1k().labels, NETWORKS[place].preprocessing, "probabilities")


def _onnx(address: str, place: str, describe_flag: str | None) -> Classifier:
    path = Path(place)
    if not path.is_file():
        raise UserError(f"expected an ONNX file, got '{address}': there is no file '{place}'")
    description = describe(path, describe_flag)
    labels = labels_of(description, path.parent)
    return OnnxClassifier(address, path, labels, description.preprocessing, description.scores)


def _python(address: str, place: str, describe_flag: str | None) -> Classifier:
    return load_python(address, place)


ADDRESSES: dict[str, tuple[Callable[[str, str, str | None], Classifier], str]] = {
    "embedded": (_embedded, "networks that install from PyPI alone: " + ", ".join(NETWORKS)),
    "onnx": (_onnx, "onnx:FILE, with FILE.json beside it or --describe for labels and preprocessing"),
    "python": (_python, "python:module:factory, where factory() returns a callable with `labels`"),
}


def load_model(address: str, describe_flag: str | None = None) -> Classifier:
    """The classifier at this address."""
    kind, colon, place = address.partition(":")
    if colon and kind in ADDRESSES:
        return ADDRESSES[kind][0](address, place, describe_flag)
    raise UserError(
        f"expected a model address such as {_offer(address)}, got '{address}'; see `counterfoil list models`"
    )


def _offer(address: str) -> str:
    """The exact string that was probably meant."""
    if address.lower().endswith(".onnx"):
        return f"'onnx:{address.rpartition(':')[2]}'"
    close = difflib.get_close_matches(address.rpartition(":")[2].lower(), NETWORKS, n=1, cutoff=0.3)
    return f"'embedded:{close[0]}'" if close else "'embedded:efficientnet-lite0' or 'onnx:FILE'"
