"""Models compared in sentences: by what they get right on edited pictures, then by attribute."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.report.drop_findings import Finding, differ_significantly
from counterfoil.report.words import format_bounds, format_number, join_words, name_attribute
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.families import MAIN_FAMILY, family_of
from counterfoil.statistics.significance import SIGNIFICANCE

_MOST_NAMED = 4  # models in one sentence
_MOST_DIFFERENCES = 3  # attributes in one sentence


def compare_models(edited: Sequence[GroupAccuracy], differences: Sequence[Contrast]) -> list[Finding]:
    """Return one finding on all models: who is ahead on edited pictures, and which attributes tell them apart."""
    rows = sorted((row for row in edited if row.photos >= FEWEST_PHOTOS), key=lambda row: -row.top1.value)
    if len(rows) < 2:
        return []
    return [Finding(model="", kind="models", text=f"{_describe_lead(rows)}; {_describe_differences(differences)}.")]


def _describe_lead(rows: Sequence[GroupAccuracy]) -> str:
    """Who is ahead; models that share a letter cannot be told apart."""
    best = rows[0]
    tied = [row for row in rows if _share(row, best)]
    behind = [row for row in rows if row not in tied]
    if not behind:
        return f"On edited photos {_name(rows)} cannot be told apart"
    ahead = [row for row in tied if not any(_share(row, other) for other in behind)]
    between = [row for row in tied if row not in ahead]
    verb = "is" if len(ahead) < 2 else "are"
    text = f"On edited photos {_name(ahead or [best])} {verb} clearly ahead of {_name(behind)}"
    return f"{text}, and {_name(between)} cannot be told apart from either" if between and ahead else text


def _share(first: GroupAccuracy, second: GroupAccuracy) -> bool:
    return bool(set(first.letters) & set(second.letters))


def _name(rows: Sequence[GroupAccuracy]) -> str:
    if len(rows) > _MOST_NAMED:
        low, high = (format_number(row.top1.value) for row in (rows[-1], rows[0]))
        return f"{len(rows)} models ({low} to {high} % right)"
    named = [f"{row.model} ({format_number(row.top1.value)} % right)" for row in rows[:1]]
    return join_words([*named, *(f"{row.model} ({format_number(row.top1.value)} %)" for row in rows[1:])])


def _describe_differences(differences: Sequence[Contrast]) -> str:
    """The attributes under which two models differ, the largest difference of each.

    The rows are corrected within their two models. The sentence chooses among all pairs and is corrected for these too.
    """
    pairs = len({(row.first, row.second) for row in differences})
    clear = [_turn(row) for row in differences if differ_significantly(row) and pairs * row.p_adjusted < SIGNIFICANCE]
    clear = [row for row in clear if family_of(row.condition.attribute) == MAIN_FAMILY]
    widest: dict[str, Contrast] = {}
    for row in sorted(clear, key=lambda row: -row.difference):
        widest.setdefault(row.condition.attribute, row)
    if not widest:
        return "no single attribute was shown to tell them apart"
    shown = list(widest.values())[:_MOST_DIFFERENCES]
    return join_words([_describe_difference(row) for row in shown])


def _describe_difference(row: Contrast) -> str:
    bounds = format_bounds(row.adjusted_low, row.adjusted_high)
    points = f"{format_number(row.difference)} points less than {row.first} {bounds}"
    return f"{row.second} loses {points} to {name_attribute(row.condition.attribute)}"


def _turn(row: Contrast) -> Contrast:
    """The contrast with the model first that loses more."""
    if row.difference >= 0:
        return row
    return row._replace(
        first=row.second,
        second=row.first,
        value_first=row.value_second,
        value_second=row.value_first,
        difference=-row.difference,
        ci_low=-row.ci_high,
        ci_high=-row.ci_low,
        adjusted_low=-row.adjusted_high,
        adjusted_high=-row.adjusted_low,
    )
