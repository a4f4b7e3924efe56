"""A small real network for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from counterfoil.assets.onnx_graph import Graph


def mean_colour_network(path: Path, classes: int = 3) -> Path:
    """A real network: the mean of each colour channel, then a linear layer."""
    graph = Graph("mean-colour")
    weights = np.random.default_rng(0).normal(size=(3, classes)).astype(np.float32)
    pooled = graph.node("GlobalAveragePool", ["pictures"])
    flat = graph.node("Flatten", [pooled])
    logits = graph.node("MatMul", [flat, graph.constant("weights", weights)])
    path.write_bytes(graph.model({"pictures": (3, 32, 32)}, {"logits": (logits, (classes,))}))
    return path
