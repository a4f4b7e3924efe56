"""The answers of surrogates and targets to the pictures of a workspace.

Every model has its own run folder below WORKSPACE/mining/run, named by the model, the workspace's pictures and the
options of loading: when a target is added later, only that target is asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.evaluation import EvaluationConfig, evaluate_shard, run_evaluation
from counterfoil.mining.mining_config import MiningConfig, address_of
from counterfoil.mining.rules import AnswerMatrix
from counterfoil.run_result import ExecutionPlan, Result
from counterfoil.statistics.answers import encode_labels
from counterfoil.store.folder_lock import FolderClaimedError
from counterfoil.store.folder_mirror import describe_place
from counterfoil.store.picture_collection import WorkspaceCollection
from counterfoil.store.prediction_tables import make_table_name
from counterfoil.store.workspace import Workspace
from counterfoil.study.predictions import DETAIL_COLUMNS, Predictions
from counterfoil.types import Model, Skipped, StoredVariant

EXCLUDED_ATTRIBUTES = frozenset({"original", "control", "presence"})  # nothing was edited, or the object is absent


@dataclass(frozen=True)
class _Pictures(WorkspaceCollection):
    """The workspace under a fixed name, so that no model is asked again after it was moved or renamed."""

    @property
    def name(self) -> str:
        return "workspace"

    @property
    def notes(self) -> Sequence[str]:
        return ()  # notes on an earlier mining do not apply to this one

    @property
    def surrogates(self) -> Mapping[str, str]:
        return {}  # nor do its models: the records are the same after one that was finished, or was stopped at its end


class AskedModel(NamedTuple):
    """A model and the place of its answers."""

    name: str  # as in the tables
    address: str
    digest: str
    table: Predictions


@dataclass(frozen=True)
class SurrogateAnswers:
    """The answers of every model, the surrogates first; a candidate is a picture that may be kept."""

    workspace: Workspace
    models: tuple[AskedModel, ...]
    surrogates: int
    skipped: tuple[Skipped, ...]

    @cached_property
    def candidates(self) -> tuple[StoredVariant, ...]:
        """The pictures that may be kept, in the order of the manifest."""
        return tuple(e for e in self.workspace.pictures if e.variant.attribute not in EXCLUDED_ATTRIBUTES)

    @cached_property
    def originals(self) -> dict[str, StoredVariant]:
        """The unedited picture of each photo that has one."""
        photos = {e.variant.sample_id for e in self.candidates if e.variant.sample_id}
        originals = [e for e in self.workspace.pictures if e.variant.attribute == "original"]
        return {e.variant.sample_id: e for e in originals if e.variant.sample_id in photos}

    @cached_property
    def samples(self) -> tuple[tuple[str, ...], NDArray[np.intp]]:
        """The photos of the candidates, and the position of each candidate's photo among them."""
        return encode_labels(e.variant.sample_id or e.variant.id for e in self.candidates)

    @property
    def photo(self) -> NDArray[np.intp]:
        """The position of each candidate's photo."""
        return self.samples[1]

    @cached_property
    def said(self) -> AnswerMatrix:
        """Right, probability of the true class, right on the original; (models, candidates)."""
        rows = [self._said_by(model) for model in self.models]
        return AnswerMatrix(*(np.stack(parts) for parts in zip(*rows, strict=True)))

    @cached_property
    def answers(self) -> NDArray[np.intp]:
        """The class that each model names first, as a position in a common list; -1 where there is none."""
        tables = [model.table.columns(["variant_id", "rank_1"]) for model in self.models]
        words = [dict(zip(table["variant_id"], table["rank_1"], strict=True)) for table in tables]
        texts = [[word.get(e.variant.id, "") for e in self.candidates] for word in words]
        _, codes = encode_labels((text for row in texts for text in row), [""])
        return codes.reshape(len(self.models), -1) - 1

    def _said_by(self, model: AskedModel) -> tuple[NDArray[np.float64], ...]:
        # what the page needs later too, so that the file is read once
        table = model.table.columns(("variant_id", *DETAIL_COLUMNS))
        scored = table["outcome"] == "scored"
        right = np.where(scored, np.asarray(table["correct"], np.float64), np.nan)
        truth = np.where(scored, np.asarray(table["true_score"], np.float64), np.nan)
        place = {name: row for row, name in enumerate(table["variant_id"])}
        own = _rows(place, [e.variant.id for e in self.candidates])
        before = _rows(place, [self._original_id(e) for e in self.candidates])
        return _values_at(right, own), _values_at(truth, own), _values_at(right, before)

    def _original_id(self, stored: StoredVariant) -> str:
        original = self.originals.get(str(stored.variant.sample_id))
        return "" if original is None else original.variant.id


def ask_models(job: MiningConfig, before: Callable[[ExecutionPlan], None] | None = None) -> SurrogateAnswers:
    """Show the workspace to every model that has not been asked yet."""
    workspace = Workspace(job.workspace)
    if all(stored.variant.attribute in EXCLUDED_ATTRIBUTES for stored in workspace.pictures):
        raise UserError(f"expected edited pictures in '{workspace.folder}', got originals and controls alone")
    models: list[AskedModel] = []
    skipped: dict[Skipped, None] = {}
    for given in (*job.surrogates, *job.targets):
        result = _evaluate(job, workspace, given, before)
        models.append(_model(address_of(given), result))
        skipped |= dict.fromkeys(result.skipped)
    _refuse_the_same_weights(models[: len(job.surrogates)], models[len(job.surrogates) :])
    return SurrogateAnswers(workspace, tuple(models), len(job.surrogates), tuple(skipped))


def _evaluate(
    job: MiningConfig, workspace: Workspace, model: str | Model, before: Callable[[ExecutionPlan], None] | None
) -> Result:
    address = address_of(model)
    asked, folder = _locate_evaluation(job, workspace, model)
    try:
        return run_evaluation(asked, folder, before, thumbnails=False)
    except FolderClaimedError as error:
        raise UserError(
            f"expected {address} as it was when it was asked before, got another {error.different}; remove the folder"
            f" {folder} to ask it anew"
        ) from error


def _locate_evaluation(job: MiningConfig, workspace: Workspace, model: str | Model) -> tuple[EvaluationConfig, Path]:
    """How one model is asked, and the folder of its answers."""
    address = address_of(model)
    asked = EvaluationConfig(
        collection=_Pictures(workspace), models=(model,), workers=job.workers, batch_size=job.batch_size,
        classes=job.classes, options=job.options, address=describe_place(workspace.folder.absolute()),
        command=job.command, execution=job.execution,
    )  # fmt: skip
    known = address if isinstance(model, str) else model.identity
    about = repr((workspace.digest, known, job.classes, job.options))
    name = f"{make_table_name(address)}-{hashlib.sha256(about.encode()).hexdigest()[:8]}"
    return asked, workspace.folder / "mining" / "run" / name


def ask_shard(job: MiningConfig) -> None:
    """Make one shard of every model's answers."""
    workspace = Workspace(job.workspace)
    for model in (*job.surrogates, *job.targets):
        evaluate_shard(*_locate_evaluation(job, workspace, model))


def _model(address: str, result: Result) -> AskedModel:
    (name,) = result.plan.model_names
    table = result.study.predictions[name]
    return AskedModel(name, address, result.plan.run.model_digests[name], table)


def _refuse_the_same_weights(surrogates: Sequence[AskedModel], targets: Sequence[AskedModel]) -> None:
    """Raise `UserError` where a model repeats a surrogate's weights; Python files may hold several and are exempt."""
    chose: dict[str, str] = {}
    for model in (model for model in (*surrogates, *targets) if not model.address.startswith("python:")):
        if model.digest in chose:
            wanted = "targets that take no part in the choice" if model in targets else "each surrogate once"
            raise UserError(
                f"expected {wanted}, but {model.address} has the weights of the surrogate {chose[model.digest]};"
                " drop one of them"
            )
        if model.digest and model in surrogates:
            chose[model.digest] = model.address


def _rows(place: Mapping[str, int], names: Sequence[str]) -> NDArray[np.intp]:
    return np.array([place.get(name, -1) for name in names], np.intp)


def _values_at(values: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """The values at these rows; NaN where there is none."""
    return np.where(rows >= 0, np.append(values, np.nan)[rows], np.nan)
