"""The remedy `last-layer`: the rows of the photos' classes fitted again on edited copies, close to the old weights.

Logistic regression on the features before the last layer, regularised towards the old weights (L2-SP). The rows of all
other classes stay. The strength, and how far to go from the old weights to the new ones (WiSE-FT), are chosen on
photos that the rows were not fitted on. NumPy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.errors import UserError
from counterfoil.models.preprocessing import prepare_input
from counterfoil.remedies.class_map import LastLayer
from counterfoil.remedies.graph_reader import PlaceMean
from counterfoil.remedies.network_file import NetworkFile, WrittenNetwork, describe_network

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LastLayerSettings:
    """What is tried; the best on the choosing part is used."""

    strengths: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)  # of the pull towards the old weights
    shares: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)  # of the way from the old weights to the new ones
    steps: int = 150

    def __post_init__(self) -> None:
        if not self.strengths or min(self.strengths) <= 0:
            raise UserError(f"expected strengths above 0, got {self.strengths}")
        if not self.shares or not all(0 < share <= 1 for share in self.shares):
            raise UserError(f"expected shares above 0 and at most 1, got {self.shares}")


@dataclass(frozen=True)
class Features:
    """Features of pictures, with the column of their class and the weight of each picture."""

    values: NDArray[np.float32]  # (pictures, width)
    columns: NDArray[np.int64]
    weights: Matrix  # that sum to 1: every photo counts the same

    @classmethod
    def join(cls, parts: Sequence[Features]) -> Features:
        """Several sets as one, each with the same weight."""
        weights = np.concatenate([part.weights for part in parts])
        values = np.concatenate([part.values for part in parts])
        return cls(values, np.concatenate([part.columns for part in parts]), weights / weights.sum())


@dataclass(frozen=True)
class Rows:
    """The last layer, (classes, width) and (classes,)."""

    weights: Matrix
    bias: Matrix
    has_bias: bool = True  # False: it is zero and stays so

    def scores(self, features: NDArray[np.float32]) -> Matrix:
        """Logits, (pictures, classes)."""
        return np.asarray(features @ self.weights.T + self.bias, np.float64)

    def toward(self, other: Rows, share: float) -> Rows:
        """A share of the way to another layer."""
        bias = self.bias + share * (other.bias - self.bias)
        return Rows(self.weights + share * (other.weights - self.weights), bias, self.has_bias)


def open_features(network: NetworkFile) -> Any:
    """A function from pictures to the features before the last layer; raises `UnknownStructureError`."""
    layer = network.last_layer
    name = layer.features
    proto = onnx.ModelProto()
    proto.CopyFrom(network.proto)
    if layer.places is not None:  # the mean comes after the layer: both are linear, so it may as well come before
        name = _add_mean(proto, layer.places)
    del proto.graph.output[:]
    proto.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    session = open_onnx_session(proto.SerializeToString())
    given = session.get_inputs()[0].name

    def compute(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        rows = [
            session.run(None, {given: prepare_input(image, network.preprocessing)[None]})[0].reshape(1, -1)
            for image in images
        ]
        return np.asarray(np.concatenate(rows), np.float32)

    return compute


def _add_mean(proto: Any, places: PlaceMean) -> str:
    """Add the mean over places to a graph; returns its name."""
    axes = numpy_helper.from_array(np.array(places.place_axes, np.int64), "counterfoil.axes")
    proto.graph.initializer.append(axes)
    node = onnx.helper.make_node("ReduceMean", [places.before, axes.name], ["counterfoil.features"], keepdims=0)
    proto.graph.node.append(node)
    return str(node.output[0])


def old_rows(layer: LastLayer) -> Rows:
    """The last layer as it is."""
    return Rows(layer.weights.astype(np.float64), layer.bias.astype(np.float64), bool(layer.bias_name))


def fit_rows(
    old: Rows, features: Features, columns: NDArray[np.int64], strength: float, settings: LastLayerSettings
) -> Rows:
    """Fit the rows of these columns, all classes competing; accelerated gradient descent from the old weights."""
    values = features.values.astype(np.float64)
    others = np.setdiff1d(np.arange(len(old.weights)), columns)
    fixed = (
        _log_sum(values @ old.weights[others].T + old.bias[others]) if len(others) else np.full(len(values), -np.inf)
    )
    target = np.asarray(features.columns[:, None] == columns[None], np.float64)
    start = np.concatenate([old.weights[columns], old.bias[columns, None]], axis=1)
    extended = np.concatenate([values, np.full((len(values), 1), float(old.has_bias))], axis=1)
    rate = 1.0 / (0.5 * float(features.weights @ (extended**2).sum(axis=1)) + strength)
    current, ahead, momentum = start, start, 1.0
    for _ in range(settings.steps):
        logits = extended @ ahead.T
        total = np.logaddexp(_log_sum(logits), fixed)
        gradient = ((np.exp(logits - total[:, None]) - target) * features.weights[:, None]).T @ extended
        following = ahead - rate * (gradient + strength * (ahead - start))
        later = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = following + (momentum - 1.0) / later * (following - current)
        current, momentum = following, later
    weights, bias = old.weights.copy(), old.bias.copy()
    weights[columns], bias[columns] = current[:, :-1], current[:, -1]
    return Rows(weights, bias, old.has_bias)


def _log_sum(logits: Matrix) -> Matrix:
    most = logits.max(axis=1)
    return np.asarray(most + np.log(np.exp(logits - most[:, None]).sum(axis=1)))


@dataclass(frozen=True)
class ChosenFit:
    """The settings that were best on the choosing part."""

    strength: float
    share: float
    among: float  # accuracy on the choosing part in percent, only the photos' classes competing
    every: float  # the same, all classes competing


def choose_fit(
    old: Rows, fitting: Features, choosing: Features, columns: NDArray[np.int64], settings: LastLayerSettings
) -> ChosenFit:
    """The strength and share with the best accuracy among the photos' classes.

    Of equals the one with the best accuracy of all classes counts, then the one nearest to the old weights.
    """
    best: ChosenFit | None = None
    for strength in sorted(settings.strengths, reverse=True):
        fitted = fit_rows(old, fitting, columns, strength, settings)
        for share in sorted(settings.shares):
            scores = old.toward(fitted, share).scores(choosing.values)
            right = columns[scores[:, columns].argmax(axis=1)] == choosing.columns
            among = round(100 * float(choosing.weights @ right), 6)
            every = round(100 * float(choosing.weights @ (scores.argmax(axis=1) == choosing.columns)), 6)
            if best is None or (among, every) > (best.among, best.every):
                best = ChosenFit(strength, share, among, every)
    assert best is not None
    return best


def write_rows(network: NetworkFile, rows: Rows, note: str) -> WrittenNetwork:
    """The network with another last layer."""
    layer = network.last_layer
    proto = onnx.ModelProto()
    proto.CopyFrom(network.proto)
    stored = rows.weights if layer.rows_are_classes else rows.weights.T
    replacing = {layer.weights_name: stored}
    if layer.bias_name:
        replacing[layer.bias_name] = rows.bias
    stored_in_nodes = [
        (node.output[0], item.t) for node in proto.graph.node if node.op_type == "Constant" for item in node.attribute
    ]
    for name, tensor in [*((tensor.name, tensor) for tensor in proto.graph.initializer), *stored_in_nodes]:
        if name in replacing:
            shape, kind = tuple(tensor.dims), numpy_helper.to_array(tensor).dtype
            tensor.CopyFrom(numpy_helper.from_array(replacing[name].astype(kind).reshape(shape), tensor.name))
    return WrittenNetwork(
        content=proto.SerializeToString(deterministic=True), passes=1, note=note,
        description=describe_network(network, takes_photo=False, note=note),
    )  # fmt: skip
