"""What is said first of a collection whose pictures have originals: how often each model is right on all of them."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.analyse import FEWEST_PHOTOS
from counterfoil.analyse.accuracies import GroupAccuracy
from counterfoil.report.accuracy_headline import attributes_of
from counterfoil.report.finding import Finding
from counterfoil.report.wording import attribute_name, count, interval, listed, number, number_of, sentence_start

_HEADING = "Right by attribute, all of its edits and levels together"


def with_accuracies(found: Sequence[Finding], rows: Sequence[GroupAccuracy]) -> list[Finding]:
    """The findings with the accuracy over all pictures first, of each model; it stands for that on originals alone."""
    overall = {row.model: row for row in rows if row.overall and row.photos >= FEWEST_PHOTOS}
    models = dict.fromkeys([*overall, *(finding.model for finding in found if finding.model)])
    told: list[Finding] = []
    for model in models:
        own = [finding for finding in found if finding.model == model]
        if model in overall:
            own = [finding for finding in own if finding.kind != "accuracy"]
            told += [_accuracy(overall[model], rows), *_attributes(model, rows)]
        told += own
    return [*told, *(finding for finding in found if not finding.model)]


def _accuracy(row: GroupAccuracy, rows: Sequence[GroupAccuracy]) -> Finding:
    rate = row.top1
    told = f"right on {_rate(row)} of the {number_of(rate.n, 'picture')} ({number_of(row.photos, 'photo')})"
    before = [other for other in rows if other.model == row.model and other.attribute == "original"]
    beside = f"on {_rate(before[0])} of the unedited photos (n = {count(before[0].photos)})" if before else ""
    return Finding(
        row.model,
        "accuracy",
        f"{row.model} is {told}{f'; {beside}' if beside else ''}.",
        brief=sentence_start(f"{told}."),
        aside=sentence_start(f"{beside}.") if beside else "",
    )


def _attributes(model: str, rows: Sequence[GroupAccuracy]) -> list[Finding]:
    """Attributes as wholes: a mined set scatters few photos over many edits and levels."""
    whole = sorted((row for row in attributes_of(rows) if row.model == model), key=lambda row: row.top1.value)
    enough = [row for row in whole if row.photos >= FEWEST_PHOTOS]
    few = listed([f"{attribute_name(row.attribute)} ({row.photos})" for row in whole if row not in enough])
    if len(whole) < 2 or not enough:
        return []
    lines = [(attribute_name(row.attribute), _told(row)) for row in enough]
    lines += [("too few photos", few)] if few else []
    told = "; ".join(f"{name}{':' if name == 'too few photos' else ''} {words}" for name, words in lines)
    return [Finding(model, "by_attribute", f"{_HEADING}: {told}.", _HEADING, tuple(lines))]


def _told(row: GroupAccuracy) -> str:
    return f"{_rate(row)} of {number_of(row.top1.n, 'picture')} ({number_of(row.photos, 'photo')})"


def _rate(row: GroupAccuracy) -> str:
    return f"{number(row.top1.value)} % {interval(row.top1)}"
