"""Headline of accuracies without originals.

Headline of a collection with originals; all findings before the tables; headline of drops.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from counterfoil.report.model_findings import (
    Finding,
    Known,
    differ_significantly,
    lead,
    model_findings,
    paired_models,
    too_few,
)
from counterfoil.report.report_input import ReportInput
from counterfoil.report.words import MEANING, attribute_name, count, interval, listed, number, number_of
from counterfoil.statistics.accuracy import ALL, GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.paired import Contrast
from counterfoil.study.runs import NO_ATTRIBUTE, Row, find_surrogates
from counterfoil.types import Drop, Run

_HEADING = "Right by attribute, all of its edits and levels together"
_MOST_NAMED = 6  # kinds in a sentence; nuisances come by the hundred


def accuracy_headline(rows: Sequence[GroupAccuracy], surrogates: Sequence[str]) -> list[Finding]:
    """Of pictures without originals: each model's accuracy, where it is lowest, and what tells the models apart."""
    overall = [row for row in rows if row.overall]
    enough = [row for row in overall if row.photos >= FEWEST_PHOTOS]
    if not enough:
        return [too_few(max((row.photos for row in overall), default=0), "picture", "scored")]
    found = [finding for row in enough for finding in (_accuracy(row, rows), *_lowest(rows, row.model))]
    return [*found, *_models(enough, surrogates)]


def with_accuracies(found: Sequence[Finding], rows: Sequence[GroupAccuracy]) -> list[Finding]:
    """Of pictures with originals: the findings, of each model its accuracy over all pictures first."""
    overall = {row.model: row for row in rows if row.overall and row.photos >= FEWEST_PHOTOS}
    models = dict.fromkeys([*overall, *(finding.model for finding in found if finding.model)])
    told: list[Finding] = []
    for model in models:
        own = [finding for finding in found if finding.model == model]
        if model in overall:
            own = [finding for finding in own if finding.kind != "accuracy"]  # of the originals alone
            told += [_accuracy(overall[model], rows), *_attributes(model, rows)]
        told += own
    return [*told, *(finding for finding in found if not finding.model)]


def _accuracy(row: GroupAccuracy, rows: Sequence[GroupAccuracy]) -> Finding:
    """With the accuracy on the originals, or where there are none, with that of the five best answers."""
    pictures = number_of(row.top1.n, "picture") if row.photos == row.top1.n else _counted(row)
    told = f"right on {_rate(row.top1)} of the {pictures}"
    before = [other for other in rows if other.model == row.model and other.attribute == "original"]
    qualified = [f"on {_rate(other.top1)} of the unedited photos (n = {count(other.photos)})" for other in before[:1]]
    if not before and row.top5.n:
        qualified = [f"the truth is among its five best answers on {_rate(row.top5)}"]
    return lead(row.model, "accuracy", (f"{row.model} is {told}", told), qualified)


def _attributes(model: str, rows: Sequence[GroupAccuracy]) -> list[Finding]:
    """Attributes as wholes: a mined set scatters few photos over many edits and levels."""
    whole = sorted((row for row in attributes_of(rows) if row.model == model), key=lambda row: row.top1.value)
    enough = [row for row in whole if row.photos >= FEWEST_PHOTOS]
    few = listed([f"{attribute_name(row.attribute)} ({row.photos})" for row in whole if row not in enough])
    if len(whole) < 2 or not enough:
        return []
    lines = [(attribute_name(row.attribute), f"{_rate(row.top1)} of {_counted(row)}") for row in enough]
    lines += [("too few photos:", few)] if few else []
    told = "; ".join(f"{name} {words}" for name, words in lines)
    return [
        Finding(model=model, kind="by_attribute", text=f"{_HEADING}: {told}.", heading=_HEADING, lines=tuple(lines))
    ]


def _counted(row: GroupAccuracy) -> str:
    return f"{number_of(row.top1.n, 'picture')} ({number_of(row.photos, 'photo')})"


def _rate(rate: Estimate) -> str:
    return f"{number(rate.value)} % {interval(rate)}"


def _lowest(rows: Sequence[GroupAccuracy], model: str) -> list[Finding]:
    """The kind of picture that a model is right on least often, as far as the intervals tell."""
    kinds = [row for row in kinds_of(rows) if row.model == model and row.photos >= FEWEST_PHOTOS]
    if len(kinds) < 2:
        return []
    lowest, *others = sorted(kinds, key=lambda row: row.top1.value)
    near = [row for row in others if row.top1.ci_low <= lowest.top1.ci_high]
    told = f"Lowest on {kind_name(lowest)}: {_rate(lowest.top1)} (n = {count(lowest.top1.n)})"
    if near:
        names = [kind_name(row) for row in near]
        told += f"; {listed(names) if len(near) <= _MOST_NAMED else f'{len(near)} other kinds'} may be as low"
    return [Finding(model=model, kind="weakest", text=f"{told}.")]


def kinds_of(rows: Sequence[GroupAccuracy]) -> list[GroupAccuracy]:
    """The coarsest division of the pictures that has more than one part: by attribute, by edit, by level."""
    telling = [row for row in rows if not row.overall and row.attribute not in NO_ATTRIBUTE]
    if len({row.attribute for row in telling}) > 1:
        return attributes_of(rows)
    edits = {row.edit for row in telling if row.edit != ALL}
    if len(edits) > 1:
        return [row for row in telling if row.edit != ALL and (row.level == ALL) == _divided(telling, row.edit)]
    return [row for row in telling if row.level != ALL]


def attributes_of(rows: Sequence[GroupAccuracy]) -> list[GroupAccuracy]:
    """Every attribute as a whole, for each model: its first group, since rows come from coarse to fine."""
    telling = [row for row in rows if not row.overall and row.attribute not in NO_ATTRIBUTE]
    first: dict[str, tuple[str, str]] = {}
    for row in telling:
        first.setdefault(row.attribute, (row.edit, row.level))
    return [row for row in telling if (row.edit, row.level) == first[row.attribute]]


def _divided(rows: Sequence[GroupAccuracy], edit: str) -> bool:
    return any(row.edit == edit and row.level == ALL for row in rows)


def kind_name(row: GroupAccuracy) -> str:
    """What people call a kind of picture."""
    if row.edit == ALL:
        return attribute_name(row.attribute)
    return row.edit if row.level in (ALL, "", row.edit) else f"{row.edit} {row.level}"


def _models(overall: Sequence[GroupAccuracy], surrogates: Sequence[str]) -> list[Finding]:
    judged = sorted((row for row in overall if row.model not in surrogates), key=lambda row: -row.top1.value)
    left_out = " Surrogates are left out of this comparison." if len(judged) < len(overall) else ""
    if len(judged) < 2:
        return []
    best, *others = judged
    clear = [row for row in others if not set(row.letters) & set(best.letters)]
    if not clear:
        told = "The pictures do not tell the models apart overall: a ranking of them would be noise."
        return [Finding(model="", kind="models", text=told + left_out)]
    tied = [row.model for row in others if row not in clear]
    told = f"Overall {best.model} is right more often than {listed([row.model for row in clear])}"
    told += f" ({number(best.top1.value)} % against {listed([f'{number(row.top1.value)} %' for row in clear])})"
    told += f"; it cannot be told apart from {listed(tied)}" if tied else ""
    return [Finding(model="", kind="models", text=f"{told}.{left_out}")]


def headline(
    drops: Sequence[Drop], contrasts: Sequence[Contrast] = (), unseen: Mapping[Row, float] | None = None
) -> tuple[Finding, ...]:
    """The findings of each model in the order of the table, then what tells the models apart.

    Models are compared photo by photo where their contrasts are given.
    `unseen` says how large a drop may be without being noticed.
    """
    enough = [row for row in drops if row.n >= FEWEST_PHOTOS]
    if not enough:
        most = max((row.n for row in drops), default=0)
        return (too_few(most, "photo", "scored before and after an edit"),)
    clear = [row for row in contrasts if differ_significantly(row)]
    known = Known(sum(not math.isnan(row.p_value) for row in drops), clear, unseen or {})
    found = [
        finding
        for model in dict.fromkeys(row.model for row in enough)
        for finding in model_findings(
            [row for row in enough if row.model == model], replace(known, few=_scattered(drops, model))
        )
    ]
    between = paired_models(clear) if contrasts else []
    return (*found, *between, *_left_unsaid(drops))


def _scattered(drops: Sequence[Drop], model: str) -> int:
    """Rows of a model's attributes that rest on too few photos."""
    own = [row for row in drops if row.model == model and row.attribute not in NO_ATTRIBUTE]
    return sum(row.n < FEWEST_PHOTOS for row in own)


def _left_unsaid(drops: Sequence[Drop]) -> list[Finding]:
    few = [row for row in drops if row.n < FEWEST_PHOTOS]
    if not few:
        return []
    told = (
        f"Too few photos: {len(few)} of {len(drops)} rows of the table rest on fewer than {FEWEST_PHOTOS} photos; "
        "nothing is said about them."
    )
    return [Finding(model="", kind="data", text=told)]


class Summarised(Protocol):
    """What findings are drawn from: a study, or the content of its page."""

    @property
    def run(self) -> Run:
        """The record of the run."""

    @property
    def drops(self) -> Sequence[Drop]:
        """What each edit costs each model."""

    @property
    def accuracies(self) -> Sequence[GroupAccuracy]:
        """How often each model is right on a collection's pictures."""

    @property
    def contrasts(self) -> Sequence[Contrast]:
        """How far every two models lie apart."""

    @property
    def unseen(self) -> Mapping[Row, float]:
        """How large a drop may be in each row without being noticed."""


def findings_of(content: ReportInput) -> tuple[Finding, ...]:
    """What the page and the summary say first."""
    return headline_of(content)


def headline_of(study: Summarised) -> tuple[Finding, ...]:
    """The findings of a study in sentences."""
    return findings(study.run, study.drops, study.accuracies, study.contrasts, study.unseen)


def findings(
    run: Run,
    drops: Sequence[Drop],
    accuracies: Sequence[GroupAccuracy] = (),
    contrasts: Sequence[Contrast] = (),
    unseen: Mapping[Row, float] | None = None,
) -> tuple[Finding, ...]:
    """The findings of each model, those that chose the pictures marked first, then what tells the models apart."""
    surrogates = find_surrogates(run)
    alone = bool(accuracies) and not any(row.n for row in drops)
    if alone:
        return tuple(_with_marks(accuracy_headline(accuracies, surrogates), surrogates))
    return tuple(_with_marks(with_accuracies(headline(drops, contrasts, unseen), accuracies), surrogates))


def _with_marks(found: Sequence[Finding], surrogates: Sequence[str]) -> Iterator[Finding]:
    """Every surrogate is marked before anything is said of it, or of all models."""
    waiting = list(surrogates)
    for finding in found:
        told = waiting if not finding.model else [model for model in waiting if model == finding.model]
        yield from map(_mark, told)
        waiting = [model for model in waiting if model not in told]
        yield finding
    yield from map(_mark, waiting)


def _mark(model: str) -> Finding:
    return Finding(model=model, kind="surrogate", text=f"{model} – {MEANING}.")
