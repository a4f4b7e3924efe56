"""What a person wants to know first, in sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from counterfoil.analyse import FEWEST_PHOTOS, Contrast, significant
from counterfoil.report.content import Row
from counterfoil.report.finding import NO_ATTRIBUTE, Finding
from counterfoil.report.models_apart import better_model, overlapping_models, paired_models, told_apart
from counterfoil.report.wording import aside, attribute_name, doing, gain, listed, number, points, sentence_start
from counterfoil.types import Drop


def headline(
    drops: Sequence[Drop], contrasts: Sequence[Contrast] = (), unseen: Mapping[Row, float] | None = None
) -> tuple[Finding, ...]:
    """The findings of each model in the order of the table, then what tells the models apart.

    Models are compared photo by photo where their contrasts are given, else by whether their intervals overlap.
    `unseen` says how large a drop may be without being noticed.
    """
    enough = [row for row in drops if row.n >= FEWEST_PHOTOS]
    if not enough:
        return (Finding("", "data", _too_little(drops)),)
    models = dict.fromkeys(row.model for row in enough)
    clear = [row for row in contrasts if told_apart(row)]
    findings = [
        finding
        for model in models
        for finding in _of_model([row for row in enough if row.model == model], clear, unseen or {})
    ]
    between = paired_models(clear) if contrasts else overlapping_models(enough)
    return (*findings, *between, *_left_unsaid(drops))


def _of_model(rows: Sequence[Drop], clear: Sequence[Contrast], unseen: Mapping[Row, float]) -> list[Finding]:
    attributes = [row for row in rows if row.attribute not in NO_ATTRIBUTE]
    return [
        _accuracy(rows),
        *_weakest(attributes, clear),
        *_improved(attributes),
        *_unclear(attributes, unseen),
        *_control(rows),
        *_presence(rows),
    ]


def _accuracy(rows: Sequence[Drop]) -> Finding:
    row = max(rows, key=lambda row: row.n)
    told = f"{row.model} is right on {number(row.accuracy_original)} % of the unedited photos (n = {row.n})."
    return Finding(row.model, "accuracy", told)


def _weakest(rows: Sequence[Drop], clear: Sequence[Contrast]) -> list[Finding]:
    """The attribute that costs most, as far as the intervals tell, and the others that cost something."""
    costly = sorted(_worst_by_attribute(rows, _costs), key=lambda row: -row.drop)
    if not costly:
        return _nothing_costs(rows)
    first, others = costly[0], costly[1:]
    near = [row for row in _worst_by_attribute(rows) if row.attribute != first.attribute and row.ci_high > first.ci_low]
    name = sentence_start(attribute_name(first.attribute))
    if near:
        apart = listed([attribute_name(row.attribute) for row in near])
        told = (
            f"{name} costs {first.model} most: {doing(first)}, {points(first)} (n = {first.n}); "
            f"its interval overlaps that of {apart}, so which is weakest is not settled"
        )
    else:
        told = f"{name} is the weakest attribute of {first.model}: {doing(first)} costs {points(first)} (n = {first.n})"
    found = [Finding(first.model, "weakest", f"{told}{better_model(first, clear)}.")]
    if others:
        found.append(Finding(first.model, "costly", f"Also significant: {_told(others)}."))
    return found


def _nothing_costs(rows: Sequence[Drop]) -> list[Finding]:
    if not rows:
        return []
    largest = max(rows, key=lambda row: row.drop)
    told = (
        f"No attribute costs {largest.model} a significant number of points; the largest drop measured is "
        f"{attribute_name(largest.attribute)}: {doing(largest)}, {points(largest)} (n = {largest.n})."
    )
    return [Finding(largest.model, "weakest", told)]


def _improved(rows: Sequence[Drop]) -> list[Finding]:
    better = [row for row in rows if significant(row) and row.drop < 0]
    if not better:
        return []
    told = listed([f"{attribute_name(row.attribute)} ({aside(doing(row))}: {gain(row)})" for row in better])
    return [Finding(better[0].model, "improved", f"Accuracy rises through {told}.")]


def _unclear(rows: Sequence[Drop], unseen: Mapping[Row, float]) -> list[Finding]:
    """The attributes of which no edit is significant, where another attribute is."""
    settled = {row.attribute for row in rows if significant(row)}
    open_rows = [row for row in _worst_by_attribute(rows) if row.attribute not in settled]
    if not open_rows or not settled:
        return []
    fewest = min(row.n for row in open_rows)
    told = f"Not significant: {_told(open_rows)}. With n = {fewest} this does not prove that they cost nothing"
    missed = [unseen[row.model, row.edit, row.level] for row in open_rows if (row.model, row.edit, row.level) in unseen]
    told += f": a drop of {number(max(missed), 0)} points would still go unseen in one run of five." if missed else "."
    return [Finding(open_rows[0].model, "unclear", told)]


def _control(rows: Sequence[Drop]) -> list[Finding]:
    return [Finding(row.model, "control", _tool_cost(row)) for row in rows if row.attribute == "control"]


def _tool_cost(row: Drop) -> str:
    effect = f"costs {points(row)}" if row.drop >= 0 else f"gives {gain(row)}"
    verdict = ": read the other drops against the control." if significant(row) else ", not significant."
    return f"Going through the tool with nothing changed (control) {effect}{verdict}"


def _presence(rows: Sequence[Drop]) -> list[Finding]:
    return [
        Finding(
            row.model,
            "presence",
            f"Diagnostic, no attribute: without the object ({row.edit}) it still answers right on "
            f"{number(row.accuracy)} % (n = {row.n}); that much the background alone gives away.",
        )
        for row in rows
        if row.attribute == "presence"
    ]


def _left_unsaid(drops: Sequence[Drop]) -> list[Finding]:
    few = [row for row in drops if row.n < FEWEST_PHOTOS]
    if not few:
        return []
    told = (
        f"Too few photos: {len(few)} of {len(drops)} rows of the table rest on fewer than {FEWEST_PHOTOS} photos; "
        "nothing is said about them."
    )
    return [Finding("", "data", told)]


def _too_little(drops: Sequence[Drop]) -> str:
    most = max((row.n for row in drops), default=0)
    if most == 0:
        return "No data: no photo was scored both before and after an edit, so nothing can be said."
    return f"Too few photos: at most {most} were scored before and after an edit, and {FEWEST_PHOTOS} are the least."


def _costs(row: Drop) -> bool:
    return significant(row) and row.drop > 0


def _worst_by_attribute(rows: Iterable[Drop], wanted: Callable[[Drop], bool] = lambda row: True) -> list[Drop]:
    worst: dict[str, Drop] = {}
    for row in filter(wanted, rows):
        if row.attribute not in worst or row.drop > worst[row.attribute].drop:
            worst[row.attribute] = row
    return list(worst.values())


def _told(rows: Sequence[Drop]) -> str:
    return "; ".join(f"{attribute_name(row.attribute)} ({aside(doing(row))}: {points(row)})" for row in rows)
