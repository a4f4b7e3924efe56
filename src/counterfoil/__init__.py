"""Counterfoil: find out which attributes of an object break an image classifier, and prove it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil import edits
    from counterfoil.benchmark.frozen_benchmark import Benchmark, open_benchmark
    from counterfoil.benchmark.release import freeze
    from counterfoil.builder import rebuild
    from counterfoil.contract_checks import check_classifier, check_edit, check_model, check_painter, check_source
    from counterfoil.edits.edit_functions import edit
    from counterfoil.edits.edit_protocol import Edit, Needs, Resolution, Supplied
    from counterfoil.edits.registry import edit_named
    from counterfoil.edits.subject import Subject
    from counterfoil.errors import Unusable, UserError
    from counterfoil.mining.miner import MiningOutcome, mine
    from counterfoil.models.model_loaders import load_model
    from counterfoil.models.model_objects import wrap_model
    from counterfoil.models.model_options import ModelOptions
    from counterfoil.models.model_protocol import ModelBase
    from counterfoil.painters.painter_protocol import Painter, PainterBase, PaintRefused, PaintRequest
    from counterfoil.picture_sheet import PictureSheet, show
    from counterfoil.published.catalogue import evaluate, evaluate_collection
    from counterfoil.remedies.remedy_advice import RunAdvice, advise
    from counterfoil.remedies.repair_result import RepairResult
    from counterfoil.remedies.repairer import repair
    from counterfoil.run_result import Result
    from counterfoil.run_verdicts import Comparison, GateResult, compare, gate
    from counterfoil.runner import run
    from counterfoil.store.workspace import Workspace
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
    from counterfoil.variant_stream import VariantStream, build, open_photos, variants
    from counterfoil.verification.collected_answers import verify

__version__ = "0.1.0"

_NAMES_OF = {  # module to public names; "" for the module itself
    "builder": ("rebuild",),
    "contract_checks": ("check_classifier", "check_edit", "check_model", "check_painter", "check_source"),
    "edits": ("",),
    "edits.edit_functions": ("edit",),
    "edits.edit_protocol": ("Edit", "Needs", "Resolution", "Supplied"),
    "edits.registry": ("edit_named",),
    "edits.subject": ("Subject",),
    "errors": ("Unusable", "UserError"),
    "models.model_loaders": ("load_model",),
    "models.model_objects": ("wrap_model",),
    "models.model_options": ("ModelOptions",),
    "models.model_protocol": ("ModelBase",),
    "painters.painter_protocol": ("Painter", "PainterBase", "PaintRefused", "PaintRequest"),
    "published.catalogue": ("evaluate", "evaluate_collection"),
    "remedies.remedy_advice": ("RunAdvice", "advise"),
    "remedies.repair_result": ("RepairResult",),
    "remedies.repairer": ("repair",),
    "run_result": ("Result",),
    "runner": ("run",),
    "store.workspace": ("Workspace",),
    "benchmark.release": ("freeze",),
    "benchmark.frozen_benchmark": ("Benchmark", "open_benchmark",),
    "mining.miner": ("MiningOutcome", "mine",),
    "picture_sheet": ("PictureSheet", "show",),
    "run_verdicts": ("Comparison", "GateResult", "compare", "gate",),
    "types": (
        "Classifier", "Drop", "Model", "Picture", "Prediction", "Sample", "Skipped", "Source", "SourceBase", "Variant",
    ),
    "verification.collected_answers": ("verify",),
    "variant_stream": ("VariantStream", "build", "open_photos", "variants"),
}  # fmt: skip
_MODULE_OF = {name or module: module for module, names in _NAMES_OF.items() for name in names}
_RENAMED = {"Refusal": "PaintRefused", "Wish": "PaintRequest"}  # names of version 0.1, kept for one release
__all__ = [
    "Benchmark", "Classifier", "Comparison", "Drop", "Edit", "GateResult", "MiningOutcome", "Model", "ModelBase",
    "ModelOptions", "Needs", "PaintRefused", "PaintRequest", "Painter", "PainterBase", "Picture", "PictureSheet",
    "Prediction", "RepairResult", "Resolution", "Result", "RunAdvice", "Sample", "Skipped", "Source", "SourceBase",
    "Subject", "Supplied", "Unusable", "UserError", "Variant", "VariantStream", "Workspace", "advise", "build",
    "check_classifier", "check_edit", "check_model", "check_painter", "check_source", "compare", "edit", "edit_named",
    "edits", "evaluate", "evaluate_collection", "freeze", "gate", "load_model", "mine", "open_benchmark",
    "open_photos", "rebuild", "repair", "run", "show", "variants", "verify", "wrap_model"
]  # fmt: skip

if not TYPE_CHECKING:  # a checker knows the names above, and refuses others

    def __getattr__(name: str) -> object:
        """Load a module when one of its names is first used, so that `import counterfoil` is fast."""
        if name in _RENAMED:
            import warnings

            warnings.warn(f"counterfoil.{name} is now counterfoil.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
            name = _RENAMED[name]
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'counterfoil' has no attribute '{name}'")
        module = import_module(f"counterfoil.{_MODULE_OF[name]}")
        return module if _MODULE_OF[name] == name else getattr(module, name)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted([*__all__, "__version__"])
