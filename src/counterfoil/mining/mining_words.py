"""The findings of mining as sentences, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from counterfoil.mining.mining_results import Curve, MiningContent, SelectionBias, Transfer
from counterfoil.report.words import format_interval, format_number, join_words, pluralize
from counterfoil.statistics.intervals import Estimate


def describe_mining(content: MiningContent) -> list[str]:
    """Return the findings, the most important first."""
    return [
        describe_yield(content),
        *(describe_transfer(row) for row in content.transfers),
        *(describe_curve(content.curves) if content.curves else ()),
        *(describe_bias(row) for row in content.biases),
        *_describe_spread(content),
        *content.notes,
    ]


def format_percent(value: Estimate) -> str:
    """Format a share with its interval."""
    return f"{format_number(value.value)} % {format_interval(value)}"


def format_points(value: Estimate) -> str:
    """Format a difference with its interval."""
    return f"{format_number(value.value)} points {format_interval(value)}"


def describe_yield(content: MiningContent) -> str:
    """Say how much was kept, and by which rule."""
    whole = content.yields[0]
    balanced = f", {content.kept} after balancing" if content.kept < content.chosen else ""
    return (
        f"Of {pluralize(whole.candidates, 'picture')} of {pluralize(content.photos, 'photo')} {content.chosen} are"
        f" chosen ({format_percent(whole.share)}){balanced}: {content.rule}."
    )


def describe_transfer(row: Transfer) -> str:
    """Say whether failures carry over to one model."""
    kin = "a family no surrogate is of" if row.unseen else "a family that chose"
    who = f"{row.name} ({row.family}, {kin})"
    if not row.failing.n:
        return f"{who} has no answer to what is kept that could be scored."
    sentence = f"{who} fails on {format_percent(row.failing)} of what is kept, "
    if row.more.value == row.more.value:
        sentence += f"against {format_number(row.base.value)} % of all candidates: {format_points(row.more)} more"
    else:
        sentence += "which is every candidate: there is nothing to compare with"
    if row.lost.n and row.lost.value == row.lost.value:
        sentence += f"; where it has the original right, on {format_percent(row.lost)}"
    return sentence + "."


def describe_curve(curves: Sequence[Curve]) -> Iterator[str]:
    """Say how more surrogates change the results of unseen models."""
    targets = [curve for curve in curves if curve.role == "target"]
    shown = targets or list(curves)
    who = "targets" if targets else "surrogates that were left out of choosing"
    sizes = sorted({point.size for curve in shown for point in curve.points})
    means = {size: _mean_accuracy(shown, size) for size in sizes}
    shares = [f"{format_number(mean)} % for {size}" for size, mean in means.items() if mean == mean]
    if shares:
        yield f"By the number of surrogates that choose together, {who} are right on {join_words(shares)}."


def describe_bias(row: SelectionBias) -> str:
    """Say how much of a surrogate's low accuracy is selection bias."""
    sentence = (
        f"{row.model} is right on {format_number(row.chosen_by_all.value)} % of what all surrogates chose and on "
        f"{format_number(row.chosen_by_others.value)} % of what the others chose: choosing costs it"
        f" {format_points(row.bias)}"
    )
    if row.adjusted.value == row.adjusted.value:
        sentence += f", {format_points(row.adjusted)} adjusted for how hard the two sets are to the targets"
    return sentence + "."


def _describe_spread(content: MiningContent) -> Iterator[str]:
    for row in content.spreads:
        if row.of == "kept" and row.spread.filled:
            plural = {"class": "classes", "attribute": "attributes"}[row.over]
            yield (
                f"What is kept comes from {row.spread.filled} of {row.spread.groups} {plural}, as even as "
                f"{format_number(row.spread.effective)} equal ones; "
                f"{content.names.get(row.largest, row.largest)} has most, {format_number(100 * row.spread.largest)} %."
            )


def _mean_accuracy(curves: Sequence[Curve], size: int) -> float:
    values = [point.accuracy.value for curve in curves for point in curve.points if point.size == size]
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else float("nan")
