"""Guidance of a painted background against a surrogate: by gradient or by candidates."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

from counterfoil.errors import UserError, how_to_install
from counterfoil.models.onnx_classifier import OnnxClassifier
from counterfoil.painters.guidance import gradient_guide, log_probability
from counterfoil.painters.sampler import Guide
from counterfoil.types import Classifier, Preprocessing


def why_no_gradient(surrogate: Classifier) -> str:
    """Why there is no gradient; empty where there is one."""
    if not isinstance(surrogate, OnnxClassifier):
        return "expected an ONNX surrogate, got another kind of model"
    if importlib.util.find_spec("torch") is None:
        return f"expected torch, which is not installed; {how_to_install('torch')}"
    return _why_no_gradient_of(surrogate.path, surrogate.preprocessing)


@lru_cache(maxsize=8)
def _why_no_gradient_of(path: Path, preprocessing: Preprocessing) -> str:
    try:
        log_probability(path, 0, preprocessing)
    except UserError as error:
        return str(error)
    return ""


def guide_against(surrogate: Classifier, label: str) -> Guide:
    """What leads the painter away from this label, by the surrogate's gradient."""
    if not isinstance(surrogate, OnnxClassifier):
        raise UserError(f"expected an ONNX surrogate for by: gradient, got {type(surrogate).__name__}")
    return _guide(surrogate.path, surrogate.labels.index(label), surrogate.preprocessing)


@lru_cache(maxsize=64)
def _guide(path: Path, column: int, preprocessing: Preprocessing) -> Guide:
    return gradient_guide(log_probability(path, column, preprocessing))
