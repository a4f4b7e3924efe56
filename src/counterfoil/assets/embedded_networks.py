"""The embedded networks: their assets, preprocessing and conversion to ONNX, checked against known outputs."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.errors import UserError
from counterfoil.store.files import hash_file, write_atomically
from counterfoil.types import Preprocessing

_log = logging.getLogger(__name__)
CONVERTER_VERSION = 1  # part of the file names in the cache: raise it whenever the converted file changes
CLICK_NETWORK = "hrnet18-click"  # no classifier, so not one of `NETWORKS`
KNOWN_OUTPUTS = "known_outputs.json"  # from the original frameworks, by tests/reference/make_reference.py
TOLERANCE = 1e-3  # of a probability's logarithm


@dataclass(frozen=True)
class Network:
    """A classifier that is built from assets of the package index."""

    name: str
    assets: tuple[str, ...]
    preprocessing: Preprocessing
    build: Callable[[Sequence[bytes]], bytes]  # the assets' contents, in their order, to an ONNX model


def _efficientnet_lite(number: int, size: int, depth: float) -> Network:
    name = f"efficientnet-lite{number}"
    preprocessing = Preprocessing(
        size=(size, size), resize=size + 32, interpolation="bicubic", mean=(127.0,) * 3, std=(128.0,) * 3
    )

    def build(contents: Sequence[bytes]) -> bytes:
        from counterfoil.assets.efficientnet_lite import convert_efficientnet_lite

        return convert_efficientnet_lite(contents[0], size, depth)

    return Network(name, (name,), preprocessing, build)


def _pplcnet() -> Network:
    assets = ("pp-lcnetv2-program", "pp-lcnetv2-weights")

    def build(contents: Sequence[bytes]) -> bytes:
        from counterfoil.assets.pplcnet import convert_pplcnet

        return convert_pplcnet(*contents)

    return Network("pp-lcnetv2", assets, Preprocessing(size=(224, 224), resize=256), build)


NETWORKS: Mapping[str, Network] = {
    network.name: network
    for network in (
        _efficientnet_lite(0, 224, 1.0),
        _efficientnet_lite(1, 240, 1.1),
        _efficientnet_lite(2, 260, 1.2),
        _pplcnet(),
    )
}


def build_onnx_file(name: str, asset_path: Callable[[str], Path], cache: Path) -> Path:
    """The network as an ONNX file in the cache; converted and checked on first use, its hash verified later."""
    network = NETWORKS[name]

    def convert() -> bytes:
        model = _build_model(network, [asset_path(asset) for asset in network.assets])
        check_known_answers(network, open_onnx_session(model))
        return model

    return _keep_onnx_file(name, convert, cache)


def build_click_network(asset_path: Callable[[str], Path], cache: Path) -> Path:
    """The network that cuts out what a click points at, as an ONNX file in the cache, converted on first use."""

    def convert() -> bytes:
        from counterfoil.assets.hrnet import convert_hrnet

        return convert_hrnet(*(asset_path(f"{CLICK_NETWORK}-{part}").read_bytes() for part in ("program", "weights")))

    return _keep_onnx_file(CLICK_NETWORK, convert, cache)


def _keep_onnx_file(name: str, convert: Callable[[], bytes], cache: Path) -> Path:
    file = cache / "networks" / f"{name}-{CONVERTER_VERSION}.onnx"
    record = file.with_suffix(".sha256")
    if record.is_file() and file.is_file():
        if hash_file(file) == record.read_text(encoding="ascii", errors="replace").strip():
            return file
        _log.warning("%s has not the hash recorded when it was made; it is made again", file)
    model = convert()
    try:
        write_atomically(file, model)
        write_atomically(record, hashlib.sha256(model).hexdigest() + "\n")
    except OSError as error:
        raise UserError(f"expected to write {file}, got: {error}; set COUNTERFOIL_CACHE to another folder") from error
    return file


def make_fixed_pictures(size: tuple[int, int]) -> list[NDArray[np.uint8]]:
    """Four pictures made by formula, each (height, width, 3): ramps and rings, stripes, plain grey, noise."""
    rows, columns = np.mgrid[: size[0], : size[1]]
    rings = (rows - size[0] // 2) ** 2 + (columns - size[1] // 2) ** 2
    ramps = np.stack([rows * 255 // size[0], columns * 255 // size[1], rings // 64 % 256], axis=-1).astype(np.uint8)
    stripes = np.stack([(rows + columns) % 32 * 8, columns % 16 * 16, rows % 64 * 4], axis=-1).astype(np.uint8)
    grey = np.full((*size, 3), 127, np.uint8)
    noise = np.frombuffer(np.random.PCG64(20).random_raw(grey.size // 8 + 1).tobytes(), np.uint8)
    return [ramps, stripes, grey, noise[: grey.size].reshape(grey.shape)]


def normalise_picture(picture: NDArray[np.uint8], preprocessing: Preprocessing) -> NDArray[np.float32]:
    """A picture of the network's size as its input, (1, 3, height, width)."""
    mean, std = np.array(preprocessing.mean, np.float32), np.array(preprocessing.std, np.float32)
    return np.ascontiguousarray(((picture - mean) / std).transpose(2, 0, 1)[None])


def _build_model(network: Network, paths: Sequence[Path]) -> bytes:
    try:
        return network.build([path.read_bytes() for path in paths])
    except UserError as error:
        files = ", ".join(map(str, paths))
        raise UserError(f"{network.name}: {error}; delete {files} and fetch it again") from error


def check_known_answers(network: Network, session: Any) -> float:
    """The largest difference from the original framework's answers to the fixed pictures, in logarithms.

    Raises `UserError` where it is more than rounding.
    """
    known = json.loads(resources.files("counterfoil.assets").joinpath(KNOWN_OUTPUTS).read_text())[network.name]
    differences = []
    for picture, answers in zip(make_fixed_pictures(network.preprocessing.size), known, strict=True):
        pictures = normalise_picture(picture, network.preprocessing)
        (probabilities,) = session.run(["probabilities"], {"pictures": pictures})
        logarithms = np.log(np.maximum(probabilities[0, answers["classes"]], np.finfo(np.float32).tiny))
        differences.append(float(np.abs(logarithms - answers["log_probabilities"]).max()))
    if not max(differences) <= TOLERANCE or not np.isfinite(differences).all():
        raise UserError(
            f"{network.name}: expected its known answers within {TOLERANCE}, got a difference of"
            f" {max(differences):.2g}; please report this together with your processor and onnxruntime version"
        )
    return max(differences)
