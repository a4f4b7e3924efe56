"""Small networks with a weakness that a repair must find out, for the photos of `planted.write_photos`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from counterfoil.assets.onnx_graph import Graph
from planted import HUES, LABELS

SIDE = 64
DECOYS = tuple(f"like {label}" for label in LABELS)
_STRONG = 0.25  # of the largest level: backgrounds have less colour, objects more
_FAVOURED = 0.035  # mean evidence below which the network answers its first class


HEADS = (
    "linear", "pooling window", "convolution", "convolution, then mean", "convolution, activation, mean",
    "mean over tokens", "mean over tokens, norm", "layer on tokens, then mean",
)  # fmt: skip


def write_small_object_network(
    path: Path, *, decoys: bool = False, favoured: float = _FAVOURED, head: str = "linear"
) -> str:
    """A network that knows the object by its strong colour and answers its first class where there is little of it.

    With decoys it has a class beside each of the photos', which always wins against it by a little. The head is one of
    `HEADS`: all but the ones with an activation or a norm compute the same.
    """
    evidence = _colour_directions()  # (classes, 3)
    graph = Graph("small-objects")
    kernels = graph.constant("kernels", evidence[:, :, None, None])
    matches = graph.node("Conv", ["pictures", kernels, graph.constant("level", np.full(len(LABELS), -_STRONG))])
    evidence_map = graph.node("Relu", [matches])
    # every class likes any strong colour a little, so that the map of a wrong answer shows the object too
    weights = 100 * np.eye(len(LABELS)) + 20
    bias = np.array([100 * favoured, *[0.0] * (len(LABELS) - 1)])
    labels: tuple[str, ...] = LABELS
    if decoys:
        weights, bias = np.concatenate([weights, weights]), np.concatenate([bias, bias + 0.5])
        labels = (*LABELS, *DECOYS)
    logits = _add_head(graph, evidence_map, (weights, bias), head)
    path.write_bytes(graph.model({"pictures": (3, SIDE, SIDE)}, {"logits": (logits, (len(labels),))}))
    described = {"labels": labels, "size": (SIDE, SIDE), "resize": None, "mean": (0,) * 3, "std": (255,) * 3}
    path.with_suffix(".json").write_text(json.dumps(described))
    return f"onnx:{path}"


def _add_head(graph: Graph, places: str, layer: tuple[NDArray[np.float64], NDArray[np.float64]], head: str) -> str:
    """From the features of every place, (1, classes, rows, columns), to the scores."""
    weights, bias = layer
    if head.startswith("convolution"):
        kernels = [graph.constant("weights", weights[:, :, None, None]), graph.constant("bias", bias)]
        if head == "convolution":
            scores = graph.node("Conv", [graph.node("GlobalAveragePool", [places]), *kernels])
        else:
            scores = graph.node("Conv", [places, *kernels])
            scores = graph.node("Relu", [scores]) if "activation" in head else scores
            scores = graph.node("GlobalAveragePool", [scores])
        return graph.node("Flatten", [scores])
    if "tokens" in head:
        shape = graph.node("Constant", [], {"value_ints": [-1, weights.shape[1], SIDE * SIDE]})
        tokens = graph.node("Transpose", [graph.node("Reshape", [places, shape])], {"perm": [0, 2, 1]})
        stored = graph.constant("weights", weights.T), graph.constant("bias", bias)
        mean: dict[str, int | list[int]] = {"axes": [1], "keepdims": 0}
        if head == "layer on tokens, then mean":
            return graph.node("Add", [graph.node("ReduceMean", [graph.node("MatMul", [tokens, stored[0]])], mean),
                                      stored[1]])  # fmt: skip
        pooled = graph.node("ReduceMean", [tokens], mean)
        if "norm" in head:
            pooled = graph.node("LpNormalization", [pooled], {"axis": -1})
        return graph.node("Add", [graph.node("MatMul", [pooled, stored[0]]), stored[1]])
    window = {"kernel_shape": [SIDE, SIDE]}
    pooled = graph.node("AveragePool", [places], window) if head == "pooling window" else graph.node(
        "GlobalAveragePool", [places])  # fmt: skip
    stored = graph.constant("weights", weights), graph.constant("bias", bias)
    return graph.node("Gemm", [graph.node("Flatten", [pooled]), *stored], {"transB": 1})


def _colour_directions() -> NDArray[np.float64]:
    """For each class the direction of its colour: its product with a picture's colour is the strength of the colour."""
    hues = np.array([[[HUES[label], 255, 255] for label in LABELS]], np.uint8)
    pure = cv2.cvtColor(hues, cv2.COLOR_HSV2RGB)[0].astype(np.float64) / 255
    centred = pure - pure.mean(axis=1, keepdims=True)
    return np.asarray(centred / (centred**2).sum(axis=1, keepdims=True), np.float64)


def make_small_object_module(favoured: float = _FAVOURED) -> Any:
    """The same network as a torch module."""
    torch = pytest.importorskip("torch")
    convolution = torch.nn.Conv2d(3, len(LABELS), 1)
    linear = torch.nn.Linear(len(LABELS), len(LABELS))
    with torch.no_grad():
        convolution.weight.copy_(torch.tensor(_colour_directions()[:, :, None, None]))
        convolution.bias.fill_(-_STRONG)
        linear.weight.copy_(100 * torch.eye(len(LABELS)) + 20)
        linear.bias.copy_(torch.tensor([100 * favoured, *[0.0] * (len(LABELS) - 1)]))
    pool = torch.nn.AdaptiveAvgPool2d(1)
    return torch.nn.Sequential(convolution, torch.nn.ReLU(), pool, torch.nn.Flatten(), linear)


def prepare_small_picture(picture: Image.Image) -> Any:
    """The transform of the module: squeezed to its size, levels 0..1."""
    torch = pytest.importorskip("torch")
    levels = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR), np.float32)
    return torch.from_numpy(levels).permute(2, 0, 1) / 255
