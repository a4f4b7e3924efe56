"""The result of a repair: the five columns of every candidate, the effects by attribute, the verdict, as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from counterfoil import __version__
from counterfoil.recipes.edit_recipe import Recipe
from counterfoil.remedies.candidates import RefusedRemedy, RemedyCandidate
from counterfoil.remedies.effects import Change, Effect, RateTable
from counterfoil.remedies.photo_parts import FOLDS
from counterfoil.remedies.repair_config import FITTING_SEED, RepairPlan
from counterfoil.remedies.repair_verdict import LossCheck, RepairVerdict
from counterfoil.run_config import environment
from counterfoil.store.files import hash_file


@dataclass(frozen=True, kw_only=True)
class CandidateRow:
    """The five columns of one candidate, judged on photos that it has not seen."""

    name: str
    edited: Change  # all classes competing
    among: Change  # only the photos' classes competing
    unedited: Change  # only the photos' classes competing
    others: Change | None  # photos of other classes, all classes competing; None where there are none
    milliseconds: float  # a picture, one thread
    passes: float
    note: str
    effects: tuple[Effect, ...] = ()  # one per attribute

    @property
    def shrunk(self) -> tuple[str, ...]:
        """The attributes whose drop shrinks significantly."""
        return tuple(row.attribute for row in self.effects if row.is_significant and row.drop.change.value > 0)


@dataclass(frozen=True, kw_only=True, repr=False)
class RepairResult:
    """What a repair made and what it is worth."""

    plan: RepairPlan
    folder: Path
    verdict: RepairVerdict
    method: str  # of the model that was written
    chosen: tuple[str, ...]  # the method that each fold chose
    candidates: tuple[RemedyCandidate, ...]
    refused: tuple[RefusedRemedy, ...]
    rows: tuple[CandidateRow, ...]  # one per candidate
    milliseconds_before: float
    table: RateTable
    effects: tuple[Effect, ...]  # by attribute, then by edit and level
    losses: tuple[LossCheck, ...]
    left_out: Mapping[str, Effect] = field(default_factory=dict)  # fitted without an attribute, judged by it
    fitted_on: Mapping[tuple[str, str], str] = field(default_factory=dict)  # edit and level to the attribute
    pictures: Mapping[str, object] = field(default_factory=dict)  # mined ones that were fitted on too
    skipped: int = 0

    def __repr__(self) -> str:
        return f"RepairResult({self.verdict.outcome}: {self.method}) in {self.folder}"

    @property
    def model(self) -> Path:
        """The written network."""
        return self.folder / "model.onnx"

    @property
    def attributes(self) -> list[Effect]:
        """One row per attribute."""
        return [row for row in self.effects if not row.edit]

    @property
    def is_fitted(self) -> bool:
        """Whether the written model learnt from photos."""
        return any(row.is_fitted for row in self.candidates if row.name == self.method)

    def relation_to_fitting(self, row: Effect) -> str:
        """How what is judged relates to what the model was fitted on, in words; empty where nothing was fitted."""
        if not self.is_fitted:
            return ""
        if row.attribute not in set(self.fitted_on.values()):
            return "attribute left out of fitting"
        if not row.edit:
            return "attribute fitted, other pictures"
        return "same edit, other seed" if (row.edit, row.level) in self.fitted_on else "other edit or level"

    @property
    def sentences(self) -> list[str]:
        """The verdict and its reasons, for the terminal."""
        return [f"{self.verdict.outcome}: {self.method}", *self.verdict.reasons]


def record_result(result: RepairResult) -> dict[str, Any]:
    """repair.json: method, settings, seeds, the photos of each part, digests of both models, and all figures."""
    plan = result.plan
    config, chosen = plan.config, next(row for row in result.candidates if row.name == result.method)
    return {
        "counterfoil": __version__,
        "command": config.command,
        "verdict": result.verdict.outcome,
        "status": result.verdict.status,
        "reasons": list(result.verdict.reasons),
        "method": result.method,
        "chosen_by_fold": list(result.chosen),
        "settings": {**{name: asdict(row) for name, row in config.settings.items()}, "chosen": dict(chosen.settings)},
        "note": chosen.final.note,
        "seeds": {"judged": config.seed, "fitted": config.seed + FITTING_SEED},
        "recipes": {"judged": plan.judged.recipe.name, "judged_digest": plan.judged.recipe.digest,
                    "fitted": _name_recipe(config.fitting_recipe)},
        "allow_loss": config.allow_loss,
        "folds": [fold._asdict() for fold in FOLDS],
        "parts": plan.parts.record(),
        "near_duplicates": plan.parts.alike,
        "others": {"photos": len(plan.others), "unknown_classes": plan.others_skipped,
                   "digests": [sample.digest for sample in plan.others]},
        "models": {
            "before": {"address": config.address, "digest": plan.model.digest},
            "after": {"file": result.model.name, "digest": hash_file(result.model)},
            "folds": [model.digest for model in chosen.folds],
        },
        "milliseconds_before": result.milliseconds_before,
        "candidates": [_plain(_candidate(result, row)) for row in result.rows],
        "refused": [asdict(row) for row in result.refused],
        "effects": [_plain(_effect(result, row)) for row in result.effects],
        "left_out": {name: _plain(_effect(result, row)) for name, row in result.left_out.items()},
        "losses": [_plain(_loss(check)) for check in result.losses],
        "pictures": dict(result.pictures),
        "skipped": result.skipped,
        "environment": environment(),
    }  # fmt: skip


def _name_recipe(recipe: str | Recipe) -> str:
    return recipe if isinstance(recipe, str) else recipe.name


def _candidate(result: RepairResult, row: CandidateRow) -> dict[str, Any]:
    columns = {name: value for name, value in asdict(row).items() if name != "effects"}
    return {**columns, "shrunk": row.shrunk, "effects": [_effect(result, effect) for effect in row.effects]}


def _effect(result: RepairResult, row: Effect) -> dict[str, Any]:
    return {
        "attribute": row.attribute, "edit": row.edit, "level": row.level, "reference": row.reference,
        "all_classes": _change(row.every), "photos_classes": _change(row.among), "drop": _change(row.drop),
        "p_adjusted": row.p_adjusted,
        "fitting": result.relation_to_fitting(row),
    }  # fmt: skip


def _change(row: Change) -> dict[str, Any]:
    return {"before": row.before, "after": row.after, **row.change._asdict()}


def _loss(check: LossCheck) -> dict[str, Any]:
    growth = check.growth._asdict() if check.growth is not None else None
    return {"subject": check.subject, "verdict": check.verdict, "allowed": check.allowed, "growth": growth}


def _plain(value: Any) -> Any:
    """As JSON has it: NaN is null, tuples are lists."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
