"""Models loaded by address, such as timm:NAME.TAG, onnx:FILE or python:module:factory."""

from __future__ import annotations

import difflib
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import cache_folder, fetch_asset
from counterfoil.assets.embedded_networks import NETWORKS, build_onnx_file
from counterfoil.errors import UserError, did_you_mean, expect_kind
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.huggingface import load_huggingface
from counterfoil.models.model_identity import hash_model_object
from counterfoil.models.model_names import NamedModel, split_name
from counterfoil.models.model_options import ModelOptions, Request, read_description, read_labels
from counterfoil.models.model_protocol import ModelBase
from counterfoil.models.onnx_classifier import ComparedClassifier, OnnxClassifier, OnnxRun
from counterfoil.models.prediction_file import load_predictions
from counterfoil.models.timm_torchvision import load_safetensors, load_timm, load_torchscript, load_torchvision
from counterfoil.models.vlm import load_vlm
from counterfoil.models.zero_shot import load_clip_huggingface, load_open_clip
from counterfoil.plugins import (
    Plugin,
    find_plugin,
    list_plugins,
    list_schemes,
    load_factory,
    read_optional,
    reporting_errors,
)
from counterfoil.types import Classifier, Model, Preprocessing


@dataclass(frozen=True)
class PythonClassifier(ModelBase):
    """Makes a model of a plain classifier: one call at a time, answers checked."""

    name: str
    labels: tuple[str, ...]
    preprocessing: Preprocessing | None
    digest: str
    model: Classifier
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        failed = f"{self.name} failed on {len(images)} {'picture' if len(images) == 1 else 'pictures'}"
        with self._one_at_a_time, reporting_errors(failed, "; what is finished is kept"):
            given = [image.copy() for image in images]  # it may work in place, and others see these pictures too
            answered = np.asarray(self.model(given))
            scores = answered.real.astype(np.float32, copy=False)
        if np.iscomplexobj(answered):
            raise UserError(f"expected probabilities from {self.name}, got complex numbers")
        if scores.shape != (len(images), len(self.labels)):
            raise UserError(
                f"expected scores of shape {(len(images), len(self.labels))} from {self.name}, got {scores.shape}"
            )
        _check_probabilities(self.name, scores)
        return scores


def _check_probabilities(name: str, scores: NDArray[np.float32]) -> None:
    """Raises `UserError` for scores that are not probabilities; rows that are not finite are not checked."""
    rows = scores[np.isfinite(scores).all(axis=1)]
    if (rows < -1e-4).any() or (np.abs(rows.sum(axis=1) - 1) > 1e-2).any():
        raise UserError(
            f"expected probabilities that sum to 1 in each row from {name}, got other scores; apply softmax"
        )


def load_python(address: str, place: str) -> Model:
    """Import the module and call its factory."""
    model, module = load_factory(address, place)
    return _as_model(address, model, module)


def load_plugin(address: str, plugin: Plugin, request: object) -> Model:
    """The model that another package's loader gives for the request."""
    with reporting_errors(f"expected '{address}' to load, but it fails"):
        model = plugin.load(request)
    return _as_model(address, model, plugin.module)


def _check_model(address: str, model: Any) -> Model:
    """The model; raises `UserError` where a required attribute is missing or its name is not the address."""
    missing = [name for name in ("name", "preprocessing", "digest") if not hasattr(model, name)]
    if missing:
        raise UserError(f"expected {address} to return a model with `{missing[0]}`, {type(model).__name__} has none")
    if not str(model.name).startswith(address):
        raise UserError(f"expected the model of {address} to have the address as its name, got '{model.name}'")
    checked: Model = model
    return checked


def _as_model(address: str, model: Any, module: ModuleType) -> Model:
    """A model unchanged; a callable with labels wrapped as a model."""
    labels = tuple(str(label) for label in read_optional(model, "labels", ()))
    if not callable(model) or not labels:
        raise UserError(f"expected {address} to return a callable with `labels`, got {type(model).__name__}")
    if isinstance(model, ModelBase):
        return _check_model(address, model)
    classifier = PythonClassifier(address, labels, read_optional(model, "preprocessing", None), "", model)
    digest = read_optional(model, "digest", None) or hash_model_object(model, module, classifier)
    return replace(classifier, digest=str(digest))


def _load_embedded(request: Request) -> Model:
    place = request.place
    if place not in NETWORKS:
        offer = did_you_mean(place, NETWORKS, "embedded:")
        raise UserError(f"expected embedded:{{{', '.join(NETWORKS)}}}, got '{request.address}'{offer}")
    file = build_onnx_file(place, fetch_asset, cache_folder())
    labels, wanted = imagenet1k().labels, NETWORKS[place].preprocessing
    return _in_precision(
        OnnxClassifier(name=request.address, path=file, labels=labels, preprocessing=wanted, scores="probabilities"),
        request.options,
    )


def _load_onnx(request: Request) -> Model:
    path = Path(request.place)
    if not path.is_file():
        raise UserError(f"expected an ONNX file, got '{request.address}': there is no file '{request.place}'")
    description = read_description(path, request.options.describe)
    labels = read_labels(description, path.parent)
    network = OnnxClassifier(
        name=request.address,
        path=path,
        labels=labels,
        preprocessing=description.preprocessing,
        scores=description.scores,
    )
    return _in_precision(network, request.options)


def _in_precision(network: OnnxClassifier, options: ModelOptions) -> Model:
    """The network in the runtime and precision asked for."""
    runtime = "openvino" if options.runtime == "openvino" else "onnx"
    exact = network if runtime == "onnx" else replace(network, how=OnnxRun("openvino"))
    if options.precision == "f32":
        return exact
    return ComparedClassifier(replace(network, how=OnnxRun("openvino", options.precision)), exact, options.precision)


def _load_python(request: Request) -> Model:
    return load_python(request.address, request.place)


def _load_vlm(request: Request) -> Model:
    return load_vlm(request.address, request.place, request.options.classes)


ENTRY_POINTS = "counterfoil.models"  # the group in which another package names its loaders by scheme

ADDRESSES: dict[str, tuple[Callable[[Request], Model], str]] = {
    "embedded": (_load_embedded, "networks that install from PyPI alone: " + ", ".join(NETWORKS)),
    "onnx": (_load_onnx, "onnx:FILE, with FILE.json beside it or --describe for labels and preprocessing"),
    "timm": (load_timm, "timm:NAME.TAG, such as timm:resnet50.a1_in1k, or a folder that timm saved"),
    "torchvision": (load_torchvision, "torchvision:NAME@WEIGHTS, such as torchvision:resnet50@IMAGENET1K_V2"),
    "hf": (load_huggingface, "hf:org/name@revision or a folder: image classifiers of transformers"),
    "open_clip": (load_open_clip, "open_clip:ARCH/TAG or ARCH/FILE: zero-shot over the classes asked for"),
    "clip-hf": (load_clip_huggingface, "clip-hf:org/name@revision or a folder: zero-shot models of transformers"),
    "torchscript": (load_torchscript, "torchscript:FILE, with FILE.json beside it or --describe"),
    "safetensors": (load_safetensors, "safetensors:ARCH:FILE: your weights in an architecture of timm's"),
    "vlm": (_load_vlm, "vlm:NAME: any OpenAI-compatible endpoint; base URL and key from the environment"),
    "python": (_load_python, "python:module:factory, where factory() returns a callable with `labels`"),
    "predictions": (load_predictions, "predictions:FILE: answers made elsewhere, as CSV or Parquet"),
}
_OF_SUFFIX = {
    ".onnx": "onnx:{}", ".pt": "torchscript:{}", ".safetensors": "safetensors:ARCH:{}",
    ".pth": "safetensors:ARCH:{}", ".bin": "safetensors:ARCH:{}",
    ".csv": "predictions:{}", ".parquet": "predictions:{}",
}  # fmt: skip


def list_model_schemes() -> dict[str, str]:
    """What each scheme loads, built-in and from other packages."""
    others = {scheme: plugin.about for scheme, plugin in list_plugins(ENTRY_POINTS).items() if scheme not in ADDRESSES}
    return {**{scheme: about for scheme, (_, about) in ADDRESSES.items()}, **others}


def name_models(models: Sequence[str | Model]) -> list[str]:
    """The names that these models will have in tables, as far as the addresses tell."""
    schemes = {*ADDRESSES, *list_schemes(ENTRY_POINTS)}
    return [_name_model(model, schemes) for model in models]


def _name_model(model: str | Model, schemes: Collection[str]) -> str:
    if not isinstance(model, str):
        return model.name
    name, address = split_name(model, schemes)
    return name or address


def load_models(models: Sequence[str | Model], options: ModelOptions) -> tuple[Model, ...]:
    """The models at these addresses; those given as objects are taken as they are."""
    return tuple(load_model(model, options=options) if isinstance(model, str) else model for model in models)


def load_model(address: str, describe: str | None = None, options: ModelOptions | None = None) -> Model:
    """The model at this address, or under the name before it: `Our v2=onnx:v2.onnx`.

    Args:
        address: SCHEME:PLACE, as `counterfoil list models` lists them.
        describe: Labels and preprocessing of a file that does not say them: JSON, or a JSON file.
        options: Device, precision, runtime and prompts.

    Returns:
        The model.

    Raises:
        UserError: There is no such model, or something that it needs is missing.

    Examples:
        >>> load_model("embedded:efficientnet-lite0").labels[0]  # doctest: +SKIP
        'n01440764'
    """
    expect_kind(address, str, "a model address such as embedded:efficientnet-lite0")
    expect_kind(options, (ModelOptions, type(None)), "options as counterfoil.ModelOptions")
    name, place = split_name(address, {*ADDRESSES, *list_schemes(ENTRY_POINTS)})
    if name:
        return NamedModel(load_model(place, describe, options), name)
    chosen = options or ModelOptions()
    chosen = chosen if describe is None else replace(chosen, describe=describe)
    kind, colon, place = address.partition(":")
    if colon and kind in ADDRESSES:
        return _check_distinct_labels(ADDRESSES[kind][0](Request(address, place, chosen)))
    plugin = find_plugin(ENTRY_POINTS, kind) if colon else None
    if plugin is not None:
        return _check_distinct_labels(load_plugin(address, plugin, Request(address, place, chosen)))
    raise UserError(
        f"expected a model address such as {_suggest_address(address)}, got '{address}'; see `counterfoil list models`"
    )


def _check_distinct_labels(model: Model) -> Model:
    """Refuse two columns of one name, since the right one would not be known."""
    twice = [label for label, count in Counter(model.labels).items() if count > 1]
    if twice:
        raise UserError(
            f"expected each label once in {model.name}, got '{twice[0]}' more than once; use ids, not names"
        )
    return model


def _suggest_address(address: str) -> str:
    """The address that was probably meant."""
    kind, colon, place = address.partition(":")
    suffix = Path(address).suffix.lower()
    close_kind = difflib.get_close_matches(kind.lower(), ADDRESSES, n=1, cutoff=0.6)
    if colon and close_kind:
        return f"'{close_kind[0]}:{place}'"
    if suffix in _OF_SUFFIX:
        return f"'{_OF_SUFFIX[suffix].format(address.rpartition(':')[2])}'"
    if os.path.isdir(address):  # `Path.is_dir` raises where the text is too long for a path
        return f"'hf:{address}' or 'timm:{address}'"
    close = difflib.get_close_matches(address.rpartition(":")[2].lower(), NETWORKS, n=1, cutoff=0.5)
    if close:
        return f"'embedded:{close[0]}'"
    if address.count("/") == 1:
        return f"'hf:{address}'"
    if not address.replace("_", "").replace(".", "").isalnum():
        return "'embedded:efficientnet-lite0' or 'onnx:FILE'"
    return f"'timm:{address}'" if "." in address else _suggest_weights(address)


def _suggest_weights(name: str) -> str:
    """Addresses for a network's bare name: timm and torchvision need to know which weights."""
    return (
        f"'timm:{name}.TAG' or 'torchvision:{name}@WEIGHTS' (in full: 'timm:resnet50.a1_in1k',"
        " 'torchvision:resnet50@IMAGENET1K_V1')"
    )
