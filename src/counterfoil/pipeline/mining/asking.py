"""What surrogates and targets say to every picture of a workspace; each model is asked once, whatever is mined later.

Every model has a run folder of its own below WORKSPACE/mining/run, named by the model, the workspace's pictures and the
way of loading: a target that is added later is the only one to be asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import coded
from counterfoil.analyse.prediction_tables import DETAIL_COLUMNS
from counterfoil.errors import UserError
from counterfoil.mine import Said
from counterfoil.pipeline.claiming import TakenError
from counterfoil.pipeline.collected import Evaluation, WorkspaceCollection, run_evaluation
from counterfoil.pipeline.mining.job import MiningJob
from counterfoil.pipeline.recorded.answers import Predictions
from counterfoil.pipeline.result import Result, Work
from counterfoil.store import Workspace
from counterfoil.store.results import table_name
from counterfoil.types import Exhibit, Skipped

NO_CANDIDATES = frozenset({"original", "control", "presence"})  # nothing was changed, or there is nothing to see


@dataclass(frozen=True)
class _Pictures(WorkspaceCollection):
    """The workspace under a name of its own: moved or renamed, it is the same, and no model is asked twice."""

    @property
    def name(self) -> str:
        return "workspace"

    @property
    def notes(self) -> Sequence[str]:
        return ()  # what an earlier mining kept is not of this one


class AskedModel(NamedTuple):
    """A model and where its answers are."""

    name: str  # as it stands in the tables
    address: str
    digest: str
    table: Predictions


@dataclass(frozen=True)
class Asked:
    """What every model said, the surrogates' answers first; a candidate is a picture that may be kept."""

    workspace: Workspace
    models: tuple[AskedModel, ...]
    surrogates: int
    skipped: tuple[Skipped, ...]

    @cached_property
    def candidates(self) -> tuple[Exhibit, ...]:
        """The pictures that may be kept, in the order of the manifest."""
        return tuple(e for e in self.workspace.exhibits if e.variant.attribute not in NO_CANDIDATES)

    @cached_property
    def originals(self) -> dict[str, Exhibit]:
        """The unedited picture of each photo, where there is one."""
        photos = {e.variant.sample_id for e in self.candidates if e.variant.sample_id}
        originals = [e for e in self.workspace.exhibits if e.variant.attribute == "original"]
        return {e.variant.sample_id: e for e in originals if e.variant.sample_id in photos}

    @cached_property
    def samples(self) -> tuple[tuple[str, ...], NDArray[np.intp]]:
        """The photos that candidates are of, and which of them each candidate is of."""
        return coded(e.variant.sample_id or e.variant.id for e in self.candidates)

    @property
    def photo(self) -> NDArray[np.intp]:
        """The position of each candidate's photo."""
        return self.samples[1]

    @cached_property
    def said(self) -> Said:
        """Right, probability of the truth, right on the original; (models, candidates)."""
        rows = [self._said_by(model) for model in self.models]
        return Said(*(np.stack(parts) for parts in zip(*rows, strict=True)))

    @cached_property
    def answers(self) -> NDArray[np.intp]:
        """The class each model names first, as a position in a common list; -1 where there is none."""
        tables = [model.table.columns(["variant_id", "rank_1"]) for model in self.models]
        words = [dict(zip(table["variant_id"], table["rank_1"], strict=True)) for table in tables]
        texts = [[word.get(e.variant.id, "") for e in self.candidates] for word in words]
        _, codes = coded((text for row in texts for text in row), [""])
        return codes.reshape(len(self.models), -1) - 1

    def _said_by(self, model: AskedModel) -> tuple[NDArray[np.float64], ...]:
        table = model.table.columns(DETAIL_COLUMNS)  # what the page needs later too, in one reading
        scored = table["outcome"] == "scored"
        right = np.where(scored, np.asarray(table["correct"], np.float64), np.nan)
        truth = np.where(scored, np.asarray(table["true_score"], np.float64), np.nan)
        place = {name: row for row, name in enumerate(table["variant_id"])}
        own = _rows(place, [e.variant.id for e in self.candidates])
        before = _rows(place, [self._original_id(e) for e in self.candidates])
        return _at(right, own), _at(truth, own), _at(right, before)

    def _original_id(self, exhibit: Exhibit) -> str:
        original = self.originals.get(str(exhibit.variant.sample_id))
        return "" if original is None else original.variant.id


def ask(job: MiningJob, before: Callable[[Work], None] | None = None) -> Asked:
    """Show the workspace to every model that has not seen it yet."""
    workspace = Workspace(job.workspace)
    if all(exhibit.variant.attribute in NO_CANDIDATES for exhibit in workspace.exhibits):
        raise UserError(f"expected edited pictures in '{workspace.folder}', got originals and controls alone")
    found: list[AskedModel] = []
    skipped: dict[Skipped, None] = {}
    for address in (*job.surrogates, *job.targets):
        result = _evaluated(job, workspace, address, before)
        found.append(_model(address, result))
        skipped |= dict.fromkeys(result.skipped)
    _refuse_the_same_weights(found[: len(job.surrogates)], found[len(job.surrogates) :])
    return Asked(workspace, tuple(found), len(job.surrogates), tuple(skipped))


def _evaluated(job: MiningJob, workspace: Workspace, address: str, before: Callable[[Work], None] | None) -> Result:
    asked = Evaluation(
        _Pictures(workspace), (address,), workers=job.workers, batch_size=job.batch_size,
        classes=job.classes, options=job.options, address=str(workspace.folder.absolute()), command=job.command,
    )  # fmt: skip
    about = repr((workspace.digest, address, job.classes, job.options))
    name = f"{table_name(address)}-{hashlib.sha256(about.encode()).hexdigest()[:8]}"
    folder = workspace.folder / "mining" / "run" / name
    try:
        return run_evaluation(asked, folder, before, thumbnails=False)
    except TakenError as error:
        raise UserError(
            f"expected {address} as it was when it was asked before, got another {error.different}; remove the folder"
            f" {folder} to ask it anew"
        ) from error


def _model(address: str, result: Result) -> AskedModel:
    (name,) = result.prepared.models
    table = result.study.predictions[name]
    return AskedModel(name, address, result.prepared.run.model_digests[name], table)


def _refuse_the_same_weights(surrogates: Sequence[AskedModel], targets: Sequence[AskedModel]) -> None:
    """Another address does not make another model, nor a second vote; a Python file's digest may cover several."""
    chose: dict[str, str] = {}
    for model in (model for model in (*surrogates, *targets) if not model.address.startswith("python:")):
        if model.digest in chose:
            wanted = "targets that had no say in the choice" if model in targets else "each surrogate once"
            raise UserError(
                f"expected {wanted}, but {model.address} has the weights of the surrogate {chose[model.digest]};"
                " drop one of them"
            )
        if model.digest and model in surrogates:
            chose[model.digest] = model.address


def _rows(place: Mapping[str, int], names: Sequence[str]) -> NDArray[np.intp]:
    return np.array([place.get(name, -1) for name in names], np.intp)


def _at(values: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """The values at these rows; NaN where there is none."""
    return np.where(rows >= 0, np.append(values, np.nan)[rows], np.nan)
