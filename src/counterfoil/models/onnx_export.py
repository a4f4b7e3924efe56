"""Torch networks exported to ONNX, each export compared with the original before it is used."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.assets.cache import cache_folder, fetch_asset
from counterfoil.errors import UserError
from counterfoil.models.model_options import Request
from counterfoil.models.onnx_classifier import ComparedClassifier, OnnxClassifier, OnnxRun, Original
from counterfoil.models.torch_network import TorchNetwork
from counterfoil.plugins import import_extra
from counterfoil.store.files import hash_file, write_atomically
from counterfoil.types import Model

_ALLOWED = 1e-3  # of probability; float rounding stays a hundred times below
_PHOTOS = "photos-foolbox"


def export_classifier(request: Request, network: TorchNetwork) -> Model:
    """The network exported to ONNX, in ONNX Runtime or OpenVINO."""
    path = export_to_onnx(request.address, network)
    options = request.options
    exact = _classifier(request.address, path, network, OnnxRun(options.runtime))
    if options.precision == "f32":
        return exact
    reduced = _classifier(request.address, path, network, OnnxRun("openvino", options.precision))
    return ComparedClassifier(reduced, exact, options.precision)


def _classifier(name: str, path: Path, network: TorchNetwork, how: OnnxRun) -> OnnxClassifier:
    original = Original(network.digest, network.preparation)
    return OnnxClassifier(
        name=name,
        path=path,
        labels=network.labels,
        preprocessing=network.preparation.preprocessing,
        scores=network.scores,
        how=how,
        original=original,
    )


def export_to_onnx(address: str, network: TorchNetwork) -> Path:
    """The ONNX file of these weights; raises `UserError` where its outputs differ from the original's."""
    torch = import_extra("torch", "torch")
    about = f"{network.digest} {network.module!r} {network.preparation.preprocessing.size} {torch.__version__}"
    path = cache_folder() / "exported" / f"{hashlib.sha256(about.encode()).hexdigest()[:32]}.onnx"
    proof = path.with_suffix(".json")
    if path.is_file() and _read_proof(proof) == hash_file(path):
        return path
    difference = export_to_file(address, network, path)
    content = {"address": address, "sha256": hash_file(path), "largest_difference": difference}
    write_atomically(proof, json.dumps(content))
    return path


def export_to_file(address: str, network: TorchNetwork, path: Path) -> float:
    """Write the network as ONNX; returns the largest difference in probability between the file and the original.

    Raises:
        UserError: The file answers otherwise than the original.
    """
    fresh = _export_file(import_extra("torch", "torch"), network, path)
    difference = compare_with_original(address, fresh, network)
    os.replace(fresh, path)
    return difference


def _read_proof(proof: Path) -> str | None:
    """The hash that the export had when it was compared; None where that is not recorded or the record is damaged."""
    try:
        content = json.loads(proof.read_bytes())
    except (OSError, ValueError):
        return None
    return str(content.get("sha256")) if isinstance(content, dict) else None


def _export_file(torch: Any, network: TorchNetwork, path: Path) -> Path:
    import_extra("onnxscript", "export")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.onnx")
    height, width = network.preparation.preprocessing.size
    grey = torch.zeros(1, 3, height, width)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        torch.onnx.export(network.module, (grey,), str(fresh), dynamo=True, external_data=False, verbose=False)
    return fresh


def compare_with_original(address: str, path: Path, network: TorchNetwork) -> float:
    """The largest difference in probability between file and original, over photos; raises `UserError` for too much."""
    torch = import_extra("torch", "torch")
    ours = _classifier(address, path, network, OnnxRun())
    differences = []
    for photo in _read_photos():
        picture = torch.from_numpy(network.preparation.picture(photo))[None]
        with torch.inference_mode():
            output = network.module(picture).float()
        theirs = (output.softmax(1) if network.scores == "logits" else output).numpy()
        answer = ours([photo])
        if answer.argmax() != theirs.argmax() or float(np.abs(answer - theirs).max()) > _ALLOWED:
            path.unlink()
            raise UserError(
                f"the ONNX form of {address} answers otherwise than the original"
                f" (by {float(np.abs(answer - theirs).max()):.4f}); run it without --runtime onnx"
            )
        differences.append(float(np.abs(answer - theirs).max()))
    return max(differences)


def _read_photos() -> Sequence[NDArray[np.uint8]]:
    """Real photos, on which errors of an export show; on noise they do not."""
    photos = []
    for path in sorted(fetch_asset(_PHOTOS).glob("*.jpg")):
        with Image.open(path) as photo:
            photos.append(np.asarray(photo.convert("RGB")))
    return photos
