"""What verification changed, in sentences: models that had no say first, surrogates in one line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from counterfoil.analyse import Estimate
from counterfoil.analyse.accuracies import ALL
from counterfoil.report.wording import interval, number

_FEWEST = 10  # kept pictures below which an attribute is not told


class Confirmed(NamedTuple):
    """How many pictures of an attribute people confirmed."""

    attribute: str  # or "all"
    decided: int
    undecided: int  # answered, but the rule came to nothing
    kept: int
    share: Estimate  # kept of decided, in percent


class Changed(NamedTuple):
    """One model and attribute; accuracies in percent, drops and changes in points."""

    model: str
    surrogate: bool  # it chose the pictures: its accuracies are low by construction
    attribute: str  # or "all"
    accuracy_without: Estimate  # without verification
    accuracy_with: Estimate
    accuracy_change: Estimate  # with minus without
    drop_without: Estimate  # against the originals; n counts photos
    drop_with: Estimate
    drop_change: Estimate


def told_confirmed(row: Confirmed) -> str:
    """How much people kept."""
    what = "pictures" if row.attribute == ALL else f"pictures of {row.attribute}"
    undecided = f", {row.undecided} undecided" if row.undecided else ""
    return (
        f"People keep {row.kept} of {row.decided} {what}: {number(row.share.value)} % {interval(row.share)}{undecided}."
    )


def told_changes(rows: Sequence[Changed]) -> Iterator[str]:
    """Every model that had no say in the choice, then the surrogates together."""
    others = [row for row in rows if not row.surrogate]
    if others:
        yield (
            "Accuracies below are over the pictures that people decided on (without verification) and over those that"
            " they kept (with it); drops are against the originals; in brackets 95 % intervals over photos."
        )
    for model in dict.fromkeys(row.model for row in others):
        yield from _told_model(model, [row for row in others if row.model == model])
    surrogates = [row for row in rows if row.surrogate and row.attribute == ALL]
    if surrogates:
        told = "; ".join(f"{row.model} (surrogate) {_sides(row)}" for row in surrogates)
        yield f"Surrogates chose the pictures, so their accuracies are low by construction: {told}."


def _told_model(model: str, rows: Sequence[Changed]) -> Iterator[str]:
    """All pictures, then the attributes of which enough is kept."""
    enough = [row for row in rows if row.attribute == ALL or _kept(row) >= _FEWEST]
    few = [f"{row.attribute} ({_kept(row)})" for row in rows if row not in enough and _kept(rows[0])]
    for row in enough:
        yield f"{model}, {row.attribute}: accuracy {_sides(row)}{_changes(row)}."
    if few:
        yield f"{model}: fewer than {_FEWEST} pictures are kept, too few to say anything, of {', '.join(few)}."


def _kept(row: Changed) -> int:
    return row.accuracy_change.n


def _sides(row: Changed) -> str:
    without, with_it = row.accuracy_without, row.accuracy_with
    kept = f"{number(with_it.value)} % with it (n = {with_it.n})" if with_it.n else "none with it, since none is kept"
    return f"{number(without.value)} % without verification (n = {without.n}), {kept}"


def _changes(row: Changed) -> str:
    """What became of the accuracy and the drop; nothing where people kept no picture, once where they kept all."""
    if not row.accuracy_with.n:
        return ""
    if row.accuracy_with.n == row.accuracy_without.n:
        return ": nothing changes on these photos"
    drop = f"; drop {_drops(row)}" if row.drop_without.n else ""
    return f", change {_change(row.accuracy_change)}{drop}"


def _drops(row: Changed) -> str:
    change = _change(row.drop_change)
    photos = f"n = {row.drop_without.n} and {row.drop_with.n} photos"
    return f"{number(row.drop_without.value)} and {number(row.drop_with.value)} points ({photos}), change {change}"


def _change(found: Estimate) -> str:
    """A change with its interval, or why it has none."""
    if math.isnan(found.value):
        return "undefined, since nothing that is kept has an original to compare with"
    if math.isnan(found.ci_low):
        return f"{number(found.value)} points (no interval: too few photos)"
    return f"{number(found.value)} points {interval(found)}"
