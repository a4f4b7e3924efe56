"""Counterfoil: find out which attributes of an object break an image classifier, and prove it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.checks import check_classifier, check_edit, check_model, check_painter, check_source
    from counterfoil.edit import Edit, Needs, Resolution, Subject, Supplied, edit_named
    from counterfoil.errors import Unusable, UserError
    from counterfoil.evaluate import ModelBase
    from counterfoil.models import load_model
    from counterfoil.paint.painter import Painter, PainterBase, Refusal, Wish
    from counterfoil.pipeline import Result, evaluate_collection, rebuild, run
    from counterfoil.types import (
        Classifier,
        Drop,
        Model,
        Picture,
        Prediction,
        Sample,
        Skipped,
        Source,
        SourceBase,
        Variant,
    )

__version__ = "0.1.0"

_ROOM_OF = {
    "run": "pipeline", "rebuild": "pipeline", "Result": "pipeline",
    "evaluate_collection": "pipeline",
    "load_model": "models", "edit_named": "edit", "Edit": "edit", "Needs": "edit", "Resolution": "edit",
    "Subject": "edit", "Supplied": "edit",
    "check_edit": "checks", "check_classifier": "checks", "check_model": "checks", "check_painter": "checks",
    "check_source": "checks", "ModelBase": "evaluate",
    "Painter": "paint.painter", "PainterBase": "paint.painter", "Refusal": "paint.painter", "Wish": "paint.painter",
    "UserError": "errors", "Unusable": "errors",
    "Classifier": "types", "Drop": "types", "Model": "types", "Picture": "types",
    "Prediction": "types", "Sample": "types", "Skipped": "types", "Source": "types", "SourceBase": "types",
    "Variant": "types",
}  # fmt: skip
__all__ = [
    "Classifier", "Drop", "Edit", "Model", "ModelBase", "Needs", "Painter", "PainterBase", "Picture", "Prediction",
    "Refusal", "Resolution", "Result", "Sample", "Skipped", "Source", "SourceBase", "Subject", "Supplied", "Unusable",
    "UserError", "Variant", "Wish", "check_classifier", "check_edit", "check_model", "check_painter", "check_source",
    "edit_named", "evaluate_collection", "load_model", "rebuild", "run",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a room when its name is first used, so that `import counterfoil` stays light."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'counterfoil' has no attribute '{name}'")
    return getattr(import_module(f"counterfoil.{_ROOM_OF[name]}"), name)
