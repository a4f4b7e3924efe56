"""A network as an ONNX file with its labels and preprocessing: what a remedy changes, and what it writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx
from onnx import version_converter

from counterfoil.errors import UserError
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.model_loaders import load_model
from counterfoil.models.model_protocol import ModelWrapper
from counterfoil.models.onnx_classifier import OnnxClassifier
from counterfoil.models.onnx_export import export_to_onnx
from counterfoil.models.torch_classifier import TorchClassifier
from counterfoil.models.torch_network import TorchNetwork
from counterfoil.models.transform_inference import infer_preprocessing
from counterfoil.remedies.class_map import (
    ClassMap,
    LastLayer,
    UnknownStructureError,
    find_class_map,
    find_last_layer,
)
from counterfoil.remedies.graph_reader import GraphReader
from counterfoil.store.files import write_atomically
from counterfoil.types import Model, PhotoInput, Preprocessing

OPERATOR_SET = 18  # the first whose Resize averages when it makes a picture smaller


@dataclass(frozen=True, kw_only=True)
class NetworkFile:
    """A classifier as an ONNX graph: prepared pictures in, scores out."""

    address: str
    proto: Any  # onnx.ModelProto with all weights, operator set 18 or later
    labels: tuple[str, ...]
    preprocessing: Preprocessing
    gives_logits: bool
    torch_network: TorchNetwork | None = None  # with parameters that can be trained

    @cached_property
    def reader(self) -> GraphReader:
        """The nodes by the values they give."""
        return GraphReader(self.proto, self.preprocessing)

    @cached_property
    def last_layer(self) -> LastLayer:
        """The last matrix product, which is linear in its features; raises `UnknownStructureError`."""
        layer = find_last_layer(self.reader)
        if layer.activation:
            raise UnknownStructureError(
                f"the operator {layer.activation} lies between its last layer and the mean over places"
            )
        return layer

    @cached_property
    def class_map(self) -> ClassMap:
        """The class map; raises `UnknownStructureError`."""
        return find_class_map(self.reader)


@dataclass(frozen=True, kw_only=True)
class WrittenNetwork:
    """A network that a remedy made: the file's bytes, its description, and how many passes of the old one it takes."""

    content: bytes
    description: Mapping[str, Any]
    passes: float
    note: str = ""
    weights: bytes | None = None  # as safetensors, of a network that was trained in torch

    def write(self, path: Path) -> Model:
        """Write FILE.onnx, FILE.json and, where there are some, FILE.safetensors, and load the model from there."""
        write_atomically(path, self.content)
        if self.weights is not None:
            write_atomically(path.with_suffix(".safetensors"), self.weights)
        write_atomically(path.with_suffix(".json"), json.dumps(dict(self.description), indent=1) + "\n")
        return load_model(f"onnx:{path}")


def read_network(model: Model) -> NetworkFile:
    """The graph of a model; raises `UserError` for a model that is no single network in ONNX or torch."""
    inner = model
    while isinstance(inner, ModelWrapper):
        inner = inner.model
    torch_network = inner.batches.network if isinstance(inner, TorchClassifier) else None
    if isinstance(inner, TorchClassifier):
        inner = _export(inner)
    if not isinstance(inner, OnnxClassifier):
        raise UserError(
            f"expected a network whose structure is known, got {model.name}; a remedy changes an ONNX file or a torch"
            " network (onnx:FILE, embedded:, timm:, torchvision:, safetensors:)"
        )
    if isinstance(inner.preprocessing, PhotoInput):
        raise UserError(f"expected a network that takes prepared pictures, got {model.name}, which a remedy made")
    if inner.original is not None and inner.original.preparation.transform is not None:
        raise UserError(f"expected preprocessing that can be put into a graph, got {inner.prepared_by or model.name}")
    return NetworkFile(
        address=model.name, proto=_load(inner.path), labels=tuple(inner.labels),
        preprocessing=inner.preprocessing, gives_logits=inner.gives_logits, torch_network=torch_network,
    )  # fmt: skip


def _export(model: TorchClassifier) -> OnnxClassifier:
    network = model.batches.network
    preprocessing, transform = model.preprocessing, network.preparation.transform
    if transform is not None:
        found = infer_preprocessing(transform)
        if found is None:
            raise UserError(
                f"expected preprocessing that can be written beside a network (resize, crop, mean and deviation), got"
                f" {model.prepared_by or model.name}, which does something else"
            )
        preprocessing = found
    return OnnxClassifier(
        name=model.name, path=export_to_onnx(model.name, network), labels=network.labels,
        preprocessing=preprocessing, scores=network.scores,
    )  # fmt: skip


def _load(path: Path) -> Any:
    """The graph with its weights, brought to an operator set that can resize photos."""
    proto = onnx.load(path)
    version = next((item.version for item in proto.opset_import if item.domain in ("", "ai.onnx")), 0)
    if version >= OPERATOR_SET:
        return proto
    try:
        return version_converter.convert_version(proto, OPERATOR_SET)
    except RuntimeError as error:  # what onnx raises for operators that it cannot bring to a later set
        line = " ".join(str(error).split())
        raise UserError(
            f"expected a network of operator set {OPERATOR_SET} or one that converts, got {path}: {line[:160]}"
        ) from error


def describe_network(network: NetworkFile, *, takes_photo: bool, note: str = "") -> dict[str, Any]:
    """The JSON beside a network; one that takes the photo gives probabilities, others what they gave before."""
    known = network.preprocessing
    labels: str | Sequence[str] = "imagenet1k" if network.labels == imagenet1k().labels else list(network.labels)
    described: dict[str, Any] = {
        "labels": labels, "size": list(known.size), "resize": known.resize, "interpolation": known.interpolation,
        "mean": list(known.mean), "std": list(known.std), "colour_order": known.colour_order, "layout": known.layout,
        "scores": "logits" if network.gives_logits and not takes_photo else "probabilities",
    }  # fmt: skip
    described |= {"input": "photo"} if takes_photo else {}
    return described | ({"note": note} if note else {})
