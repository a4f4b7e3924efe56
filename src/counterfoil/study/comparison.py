"""Comparison of two models, of one run or of two, photo by photo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from counterfoil.errors import UserError
from counterfoil.statistics.answers import REFERENCES, pool_by_attribute, pool_conditions
from counterfoil.statistics.contrasts import Contrast, compare_accuracies, compare_drops, contrast_attribute_drops
from counterfoil.study.judgements import Judgement
from counterfoil.study.runs import Study, find_surrogates, open_runs


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """The differences between two models, each the first minus the second."""

    first: str
    second: str
    accuracy: Contrast  # on the unedited photos, in percent; where there are none, on all pictures
    attributes: Sequence[Contrast]  # all edits and levels of an attribute together
    levels: Sequence[Contrast]  # edit by edit and level by level
    kind: Literal["drops", "accuracies"] = "drops"  # accuracies where there are no originals
    surrogates: tuple[str, ...] = ()  # which of the two selected the pictures
    edited: Contrast | None = None  # the accuracy on all edited pictures together; None where there are none
    judgements: Mapping[str, Judgement] = field(default_factory=dict)  # whether either may be judged


def compare_runs(
    folders: tuple[Path, Path], *, names: Sequence[str] = (), first: str | None = None, second: str | None = None
) -> RunComparison:
    """Compare a model of one run with a model of another or the same; both runs must be over the same pictures."""
    same = folders[0].resolve() == folders[1].resolve()
    study = open_runs(folders[:1] if same else folders, () if same else names)
    models = _choose_model(study, 0, first, "--first"), _choose_model(study, -1, second, "--second")
    if models[0] == models[1]:
        raise UserError(
            f"expected two models, got {models[0]} with the same weights twice; choose with --first, --second"
        )
    surrogates = tuple(model for model in find_surrogates(study.run) if model in models)
    compare = _compare_drops if any(row.n for row in study.drops) or not study.run.collection else _compare_accuracies
    judgements = {model: study.judgements[model] for model in models}
    return replace(compare(study, *models), surrogates=surrogates, judgements=judgements)


def _choose_model(study: Study, place: int, wanted: str | None, option: str) -> str:
    models = study.runs[place].models
    if wanted in models:
        return wanted
    if wanted is None and len(models) == 1:
        return models[0]
    got = "none" if wanted is None else f"'{wanted}'"
    raise UserError(f"expected {option} to name one of {', '.join(models)}, got {got}")


def _compare_accuracies(study: Study, first: str, second: str) -> RunComparison:
    (overall,) = compare_accuracies(pool_conditions(study.answers), first, second)
    if overall.n == 0:
        raise UserError("the runs are empty: no picture was answered by both models, so nothing can be compared")
    attributes, levels = (
        compare_accuracies(answers, first, second) for answers in (pool_by_attribute(study.answers), study.answers)
    )
    return RunComparison(
        first=first, second=second, accuracy=overall, attributes=attributes, levels=levels, kind="accuracies"
    )


def _compare_drops(study: Study, first: str, second: str) -> RunComparison:
    originals = [
        row for row in compare_accuracies(study.answers, first, second) if row.condition.attribute == "original"
    ]
    if not originals or originals[0].n == 0:
        raise UserError("the runs are empty: no unedited photo was answered by both models, so nothing can be compared")
    has_edits = any(condition.attribute not in REFERENCES for condition in study.answers.conditions)
    return RunComparison(
        first=first,
        second=second,
        accuracy=originals[0],
        edited=compare_accuracies(pool_conditions(study.answers), first, second)[0] if has_edits else None,
        attributes=contrast_attribute_drops(study.checked_answers, [(first, second)]),
        levels=compare_drops(study.checked_answers, first, second),
    )
