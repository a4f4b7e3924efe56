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
    balanced = f"; {content.kept} of them stay after balancing" if content.kept < content.chosen else ""
    return (
        f"{content.chosen} of {pluralize(whole.candidates, 'picture')} ({pluralize(content.photos, 'photo')}) are"
        f" chosen, {format_percent(whole.share)}: {content.rule}{balanced}."
    )


def describe_transfer(row: Transfer) -> str:
    """Say whether failures carry over to one model."""
    kin = "no surrogate is of this family" if row.unseen else "a surrogate is of this family"
    who = f"{row.name} ({row.family}; {kin})"
    if not row.failing.n:
        return f"{who}: none of its answers to the kept pictures could be scored."
    sentence = f"{who} is wrong on {format_percent(row.failing)} of the kept pictures"
    if row.more.value == row.more.value:
        sentence += f" and on {format_number(row.base.value)} % of all pictures: {format_points(row.more)} more"
    else:
        sentence += ". All pictures are kept, so there is nothing to compare with"
    if row.lost.n and row.lost.value == row.lost.value:
        sentence += f". Where it is right on the original, it is wrong on {format_percent(row.lost)}"
    return sentence + "."


def describe_curve(curves: Sequence[Curve]) -> Iterator[str]:
    """Say how more surrogates change the results of unseen models."""
    targets = [curve for curve in curves if curve.role == "target"]
    shown = targets or list(curves)
    who = "targets" if targets else "surrogates that did not choose"
    sizes = sorted({point.size for curve in shown for point in curve.points})
    means = {size: _mean_accuracy(shown, size) for size in sizes}
    known = {size: mean for size, mean in means.items() if mean == mean}
    if known:
        numbers = join_words([str(size) for size in known])
        shares = join_words([f"{format_number(mean)} %" for mean in known.values()])
        many = "surrogate chooses" if list(known) == [1] else "surrogates choose"
        yield f"Where {numbers} {many}, {who} are right on {shares} of the chosen pictures."


def describe_bias(row: SelectionBias) -> str:
    """Say how much of a surrogate's low accuracy is selection bias."""
    sentence = (
        f"{row.model} is right on {format_number(row.chosen_by_all.value)} % of what all surrogates chose and on"
        f" {format_number(row.chosen_by_others.value)} % of what the others chose without it: its own choice makes it"
        f" look worse by {format_points(row.bias)}"
    )
    if row.adjusted.value == row.adjusted.value:
        sentence += f", or {format_points(row.adjusted)} if both sets were equally hard for the targets"
    return sentence + "."


def _describe_spread(content: MiningContent) -> Iterator[str]:
    for row in content.spreads:
        if row.of == "kept" and row.spread.filled:
            plural = {"class": "classes", "attribute": "attributes"}[row.over]
            yield (
                f"The kept pictures are from {row.spread.filled} of {row.spread.groups} {plural}, most from"
                f" {content.names.get(row.largest, row.largest)} ({format_number(100 * row.spread.largest)} %); they"
                f" are spread as evenly as over {format_number(row.spread.effective)} {plural} of one size."
            )


def _mean_accuracy(curves: Sequence[Curve], size: int) -> float:
    values = [point.accuracy.value for curve in curves for point in curve.points if point.size == size]
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else float("nan")
