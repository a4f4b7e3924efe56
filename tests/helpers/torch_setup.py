"""Torch and its libraries for the tests, and small networks of every library, with random weights.

PyPI's torchvision is built for a GPU build of torch; beside a CPU build its compiled operators are missing and it does
not even import. No classifier needs them, so they are declared here, without a body, before torchvision is imported.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,"
    " int sampling_ratio, bool aligned) -> Tensor",
)
_KEPT: list[Any] = []  # the declarations last as long as the library object


def library(name: str) -> Any:
    """A package of the torch world, or a skip that names what is missing."""
    for needed in ("torch", name.partition(".")[0]):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"needs {needed}, which this machine lacks")
    _declare_operators()
    return importlib.import_module(name)


def _declare_operators() -> None:
    import torch

    if _KEPT or importlib.util.find_spec("torchvision") is None or _has_operators(torch):
        return
    _KEPT.append(torch.library.Library("torchvision", "DEF"))
    for operator in _OPERATORS:
        _KEPT[0].define(operator)


def _has_operators(torch: Any) -> bool:
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        return False
    return hasattr(torch.ops.torchvision, "nms")


def seeded(torch: Any, module: Any) -> Any:
    """The module with weights that spread its answers, always the same."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                scale = 2.0 / parameter[0].numel() ** 0.5
                parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return module.eval()


def write_json(path: Path, **keys: object) -> Path:
    path.write_text(json.dumps(keys))
    return path
