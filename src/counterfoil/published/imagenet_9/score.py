"""ImageNet-9's tables: accuracies over nine super-classes, BG-gap, survival, and the challenge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from counterfoil.published.condition_scores import collect_notes, describe_missing, present_kinds, score_top1
from counterfoil.published.imagenet_9 import composite as imagenet_9_composite
from counterfoil.published.imagenet_9.reader import KINDS
from counterfoil.report.content import PaperTable
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.intervals import RATE, Estimate, estimate
from counterfoil.study.runs import Study


def background_gap(answers: Answers, model: str, *, same: Condition, other: Condition) -> Estimate:
    """BG-gap in points: accuracy on backgrounds of the same class minus accuracy on other classes', paired by photo."""
    rates = answers.rates[answers.model_index(model)]
    gaps = rates[answers.conditions.index(same)] - rates[answers.conditions.index(other)]
    return estimate(gaps).scaled(100)


def survive_all(answers: Answers, model: str, conditions: Sequence[Condition]) -> Estimate:
    """Percent of photos that are right under all conditions and replicates; incomplete photos are left out."""
    tally = answers.tally
    chosen = [answers.conditions.index(condition) for condition in conditions]
    place = answers.model_index(model)
    right, scored = tally.right[place, chosen], tally.scored[place, chosen]
    survived = np.where((scored > 0).all(axis=0), (right == scored).all(axis=0), np.nan)
    return estimate(survived, RATE).scaled(100)


_MIXED = ("mixed_same", "mixed_rand", "mixed_next")
_SUPER_CLASS = (
    "The arg-max over all of a model's columns, mapped to nine super-classes; an ImageNet class of none of them is"
    " wrong."
)
_DRAWN = (  # column, title and rule; a figure over some backgrounds must not be listed with those over all
    "challenge, drawn",
    f"Backgrounds challenge, {imagenet_9_composite.BACKGROUNDS} drawn backgrounds",
    f"each of {imagenet_9_composite.BACKGROUNDS} backgrounds, drawn for it; over all backgrounds it is at most this",
)
_EVERY = ("challenge", "Backgrounds challenge, every background", "every background, as the authors' script has it")


def tables(study: Study) -> Sequence[PaperTable]:
    """Return accuracies by variation with BG-gap and survival, or the challenge's table where the run is over it."""
    for kind in (imagenet_9_composite.KIND, imagenet_9_composite.KIND_EVERY):
        if Condition(*kind) in study.answers.conditions:
            return _challenge(study, Condition(*kind))
    return [_accuracies(study), _gaps(study)]


def _challenge(study: Study, condition: Condition) -> Sequence[PaperTable]:
    scores = score_top1(study)
    drawn = any(imagenet_9_composite.UPPER_BOUND in note for note in study.run.notes)
    called, title, met = _DRAWN if drawn else _EVERY
    rows = []
    for model in study.files:
        survival = survive_all(study.answers, model, [condition])
        clean = scores.accuracy(model, [KINDS["original"]])
        rows.append((model, clean, survival.value, survival.ci_low, survival.ci_high, float(survival.n)))
    return [
        PaperTable(
            title=title,
            rule=f"{_SUPER_CLASS} Challenge accuracy = percent of foregrounds that are right on {met}.",
            columns=("model", "original", called, f"{called}, low", f"{called}, high", "foregrounds"),
            rows=tuple(rows),
            footnotes=collect_notes(study),
        )
    ]


def _accuracies(study: Study) -> PaperTable:
    scores, kinds = score_top1(study), present_kinds(study, KINDS)
    rows = [(model, *(scores.accuracy(model, [kind]) for kind in kinds.values())) for model in study.files]
    return PaperTable(
        title="ImageNet-9, accuracy", rule=f"{_SUPER_CLASS} In percent.", columns=("model", *kinds), rows=tuple(rows),
        footnotes=collect_notes(study, describe_missing(study, KINDS, "the table")),
    )  # fmt: skip


def _gaps(study: Study) -> PaperTable:
    kinds = present_kinds(study, KINDS)
    mixed = [Condition(*kinds[name]) for name in _MIXED if name in kinds]
    rows = [(model, *_gap(study, model), *_survival(study, model, mixed)) for model in study.files]
    return PaperTable(
        title="ImageNet-9, backgrounds",
        rule="bg_gap = accuracy on mixed_same minus accuracy on mixed_rand, in points, with the paired interval over"
        " the foregrounds that are in both. Survival = percent of foregrounds that are right in every mixed picture of"
        " the archive; the challenge accuracy, over all backgrounds, is imagenet-9-challenge.",
        columns=("model", "bg_gap", "bg_gap, low", "bg_gap, high", "survival", "survival, foregrounds"),
        rows=tuple(rows),
    )


def _gap(study: Study, model: str) -> tuple[float | None, float | None, float | None]:
    """The difference of the two folders' accuracies, as in the paper; the interval is of the paired difference."""
    scores = score_top1(study)
    same, other = (scores.accuracy(model, [KINDS[name]]) for name in ("mixed_same", "mixed_rand"))
    if same is None or other is None:
        return None, None, None
    conditions = {"same": Condition(*KINDS["mixed_same"]), "other": Condition(*KINDS["mixed_rand"])}
    paired = background_gap(study.answers, model, **conditions)
    return same - other, paired.ci_low, paired.ci_high


def _survival(study: Study, model: str, mixed: Sequence[Condition]) -> tuple[float | None, float | None]:
    if len(mixed) < len(_MIXED):
        return None, None
    survival = survive_all(study.answers, model, mixed)
    return (survival.value, float(survival.n)) if survival.n else (None, 0.0)
