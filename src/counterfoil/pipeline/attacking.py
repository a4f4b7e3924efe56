"""Painted backgrounds that a surrogate finds hard: by its gradient, or the worst of several candidates.

Which of the two it was stands in the variant's settings, and so in the manifest.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from counterfoil.edit import edit_named, settings_of
from counterfoil.edit.painted import PaintedAdversarial
from counterfoil.errors import UserError, how_to_install
from counterfoil.models import load_model
from counterfoil.models.onnx import OnnxClassifier
from counterfoil.paint.adversarial import gradient_guide
from counterfoil.paint.onnx_gradient import log_probability
from counterfoil.paint.sampler import Guide
from counterfoil.types import Model, Picture, Preprocessing, Variant


def by_gradient(edit: PaintedAdversarial, surrogate: Model) -> bool:
    """Whether the surrogate's gradient leads; raises `UserError` where that was asked for and cannot be."""
    if edit.by == "candidates" or edit.candidate is not None:
        return edit.by == "gradient"
    lack = _lack(surrogate)
    if lack and edit.by == "gradient":
        raise UserError(f"by: gradient with {edit.surrogate}: {lack}; use by: candidates")
    return not lack


def _lack(surrogate: Model) -> str:
    """Why there is no gradient; empty where there is one."""
    if not isinstance(surrogate, OnnxClassifier):
        return "expected an ONNX surrogate, got another kind of model"
    if importlib.util.find_spec("torch") is None:
        return f"expected torch, which is not installed; {how_to_install('torch')}"
    return _lack_of_file(surrogate.path, surrogate.preprocessing)


@lru_cache(maxsize=8)
def _lack_of_file(path: Path, preprocessing: Preprocessing) -> str:
    try:
        log_probability(path, 0, preprocessing)
    except UserError as error:
        return str(error)
    return ""


def attacked(picture: Picture, surrogate: Model, variant: Variant) -> Variant:
    """The variant with what was chosen in its settings."""
    edit = edit_named(variant.edit, json.loads(variant.settings))
    assert isinstance(edit, PaintedAdversarial)
    if edit.candidate is not None:
        return variant
    gradient = by_gradient(edit, surrogate)
    chosen = replace(edit, by="gradient", candidate=0) if gradient else _worst(edit, picture, surrogate, variant)
    settings = json.dumps(settings_of(chosen), sort_keys=True)
    identity = hashlib.sha256(f"{variant.id} {settings}".encode()).hexdigest()[:20]
    return replace(variant, id=identity, settings=settings)


def _worst(edit: PaintedAdversarial, picture: Picture, surrogate: Model, variant: Variant) -> PaintedAdversarial:
    """The candidate that leaves the true label the least probability."""
    tried = [replace(edit, by="candidates", candidate=number) for number in range(edit.candidates)]
    images = [each(picture, np.random.default_rng(variant.seed)).image for each in tried]
    return tried[int(np.argmin(surrogate(images)[:, surrogate.labels.index(variant.label)]))]


def painted_against(edit: PaintedAdversarial, picture: Picture, variant: Variant) -> Picture:
    """The picture of a settled variant."""
    guide = _guide(edit.surrogate, variant.label) if edit.by == "gradient" else None
    return edit.against(picture, np.random.default_rng(variant.seed), guide)


@lru_cache(maxsize=64)
def _guide(surrogate: str, label: str) -> Guide:
    model = load_model(surrogate)
    if not isinstance(model, OnnxClassifier):
        raise UserError(f"expected an ONNX surrogate for by: gradient, got {surrogate}")
    return gradient_guide(log_probability(model.path, model.labels.index(label), model.preprocessing))
