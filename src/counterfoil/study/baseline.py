"""A run beside the run of a baseline on the same photos, and which of their models belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.statistics.growth import Growth, measure_growth
from counterfoil.store.prediction_tables import read_run
from counterfoil.study.judgements import Judgement
from counterfoil.study.runs import Study, open_runs

_NAMES = ("baseline", "new")  # tell equal models apart


@dataclass(frozen=True)
class BaselinePair:
    """A model of a run and the model of the baseline that it is compared with."""

    study: Study  # of both runs
    model: str  # as the run names it
    old: str  # as the study names them
    new: str

    @property
    def growth(self) -> list[Growth]:
        """How much more the model loses than the baseline, attribute by attribute."""
        return measure_growth(self.study.answers, self.old, self.new)

    @property
    def judgements(self) -> dict[str, Judgement]:
        """Whether either of the two may be judged, by a name to show."""
        judgements = self.study.judgements
        return {self.model: judgements[self.new], f"the baseline of {self.model}": judgements[self.old]}


def pair_with_baseline(
    run: Path, against: Path, *, model: str | None = None, against_model: str | None = None
) -> list[BaselinePair]:
    """Pair the models of a run with those of a baseline: by name, or with the baseline's only model.

    Args:
        run: Folder of the run to judge.
        against: Folder of the baseline's run; both must be over the same pictures.
        model: Only this model of the run.
        against_model: The model of the baseline to compare with, where names differ.

    Raises:
        UserError: The runs are over other pictures, or a model has no partner.
    """
    study = open_runs((against, run), _NAMES)
    theirs, ours = (read_run(folder).models for folder in (against, run))
    chosen = [_choose(ours, model, "--model")] if model is not None else list(ours)
    old_names, new_names = (
        dict(zip(own, seen.models, strict=True)) for own, seen in zip((theirs, ours), study.runs, strict=True)
    )
    return [
        BaselinePair(study, name, old_names[_find_partner(name, theirs, against_model)], new_names[name])
        for name in chosen
    ]


def _find_partner(model: str, baseline: Sequence[str], wanted: str | None) -> str:
    if wanted is not None:
        return _choose(baseline, wanted, "--against-model")
    if model in baseline:
        return model
    if len(baseline) == 1:
        return baseline[0]
    raise UserError(
        f"expected a model of the baseline to compare {model} with, it has {', '.join(baseline)};"
        " choose one with --against-model"
    )


def _choose(models: Sequence[str], wanted: str, option: str) -> str:
    if wanted not in models:
        raise UserError(f"expected {option} to name one of {', '.join(models)}, got '{wanted}'")
    return wanted
