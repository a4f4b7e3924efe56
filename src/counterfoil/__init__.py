"""Counterfoil: find out which attributes of an object break an image classifier, and prove it."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.builder import rebuild
    from counterfoil.contract_checks import check_classifier, check_edit, check_model, check_painter, check_source
    from counterfoil.edits.edit_protocol import Edit, Needs, Resolution, Supplied
    from counterfoil.edits.registry import edit_named
    from counterfoil.edits.subject import Subject
    from counterfoil.errors import Unusable, UserError
    from counterfoil.models.model_loaders import load_model
    from counterfoil.models.model_protocol import ModelBase
    from counterfoil.painters.painter_protocol import Painter, PainterBase, PaintRefused, PaintRequest
    from counterfoil.published.catalogue import evaluate_collection
    from counterfoil.run_result import Result
    from counterfoil.runner import run
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

_MODULE_OF = {
    "run": "runner", "Result": "run_result", "rebuild": "builder", "evaluate_collection": "published.catalogue",
    "load_model": "models.model_loaders", "ModelBase": "models.model_protocol", "edit_named": "edits.registry",
    "Edit": "edits.edit_protocol", "Needs": "edits.edit_protocol", "Resolution": "edits.edit_protocol",
    "Supplied": "edits.edit_protocol", "Subject": "edits.subject",
    "check_classifier": "contract_checks", "check_edit": "contract_checks", "check_model": "contract_checks",
    "check_painter": "contract_checks", "check_source": "contract_checks",
    "Painter": "painters.painter_protocol", "PainterBase": "painters.painter_protocol",
    "PaintRefused": "painters.painter_protocol", "PaintRequest": "painters.painter_protocol",
    "UserError": "errors", "Unusable": "errors",
    "Classifier": "types", "Drop": "types", "Model": "types", "Picture": "types", "Prediction": "types",
    "Sample": "types", "Skipped": "types", "Source": "types", "SourceBase": "types", "Variant": "types",
}  # fmt: skip
_RENAMED = {"Refusal": "PaintRefused", "Wish": "PaintRequest"}  # names of version 0.1, kept for one release
__all__ = [
    "Classifier", "Drop", "Edit", "Model", "ModelBase", "Needs", "PaintRefused", "PaintRequest", "Painter",
    "PainterBase", "Picture", "Prediction", "Resolution", "Result", "Sample", "Skipped", "Source", "SourceBase",
    "Subject", "Supplied", "Unusable", "UserError", "Variant", "check_classifier", "check_edit", "check_model",
    "check_painter", "check_source", "edit_named", "evaluate_collection", "load_model", "rebuild", "run",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a module when one of its names is first used, so that `import counterfoil` is fast."""
    if name in _RENAMED:
        warnings.warn(f"counterfoil.{name} is now counterfoil.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'counterfoil' has no attribute '{name}'")
    return getattr(import_module(f"counterfoil.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted([*__all__, "__version__"])
