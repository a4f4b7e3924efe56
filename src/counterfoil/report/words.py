"""Texts of a report: edits and levels in words, marks of surrogate models, formatted numbers and names."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from counterfoil.edits.corruptions.severity import Corruption
from counterfoil.edits.edit_protocol import format_percent
from counterfoil.edits.registry import EDITS, describe_edit
from counterfoil.statistics.confusion import DonorConfusion
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.dose import DropThreshold
from counterfoil.statistics.intervals import Estimate
from counterfoil.types import Drop, PhotoInput, Preprocessing

_CORRUPTION = "corruption-"  # ImageNet-C's archive has corruptions that this tool does not have
_LAST_BRACKETS = re.compile(r" \((.*)\)$")


def describe_row(row: Drop) -> str:
    """Describe the edit of a row, as the subject of a sentence."""
    return describe_change(row.edit, row.level)


def describe_change(edit: str, level: str) -> str:
    """Describe an edit, as the subject of a sentence."""
    if edit.startswith(_CORRUPTION) and edit not in EDITS:
        return Corruption.describe_named(edit.removeprefix(_CORRUPTION), level)
    plain, _, rate = level.partition("@")
    share = format_percent(rate) if rate else ""
    return f"{describe_edit(edit, plain)}, at {share} of the picture" if share else describe_edit(edit, level)


def brackets_to_comma(change: str) -> str:
    """Return a change for use inside brackets: its own brackets become a comma."""
    return _LAST_BRACKETS.sub(r", \1", change)


ABSENT = "–"  # shown where there is no number
MINUS = "−"
_UNBREAKABLE = re.compile(r"\[[^\[\]]{1,30}\]|\d %|n = \d|\d points")
_NAMES = {"presence": "object presence", "second-object": "second object"}


def format_number(value: float, decimals: int = 1) -> str:
    """Format a number with a true minus sign and no negative zero; a dash where there is none."""
    if math.isnan(value):
        return ABSENT
    text = f"{round(value, decimals) + 0.0:.{decimals}f}"
    return text.replace("-", MINUS)


def format_p_value(p: float) -> str:
    """Format a p value so that small ones stay readable."""
    if math.isnan(p):
        return ABSENT
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}".replace("e-0", "e-").replace("-", MINUS)


def format_bounds(low: float, high: float) -> str:
    """Format an interval."""
    return f"[{format_number(low)}, {format_number(high)}]"


def format_interval(row: Drop | Contrast | Estimate) -> str:
    """Format the 95 % interval."""
    return format_bounds(row.ci_low, row.ci_high)


def describe_interval(low: float, high: float) -> str:
    """Describe the 95 % interval for screen readers."""
    return f"95 % interval {format_number(low)} to {format_number(high)}"


def format_drop(row: Drop) -> str:
    """Format a drop against its reference with the interval that the verdict rests on."""
    return f"{format_number(row.drop_vs_reference)} points {format_bounds(row.reference_low, row.reference_high)}"


def format_gain(row: Drop) -> str:
    """Format a negative drop as a gain, with its interval."""
    return f"{format_number(-row.drop_vs_reference)} points {format_bounds(-row.reference_high, -row.reference_low)}"


def format_range(rows: Sequence[Drop]) -> str:
    """Format the points that several rows lose, from the least to the most."""
    values = sorted(row.drop_vs_reference for row in rows)
    low, high = (format_number(value) for value in (values[0], values[-1]))
    return f"{low} points" if low == high else f"{low} to {high} points"


def name_attribute(attribute: str) -> str:
    """Return the readable name of an attribute."""
    return _NAMES.get(attribute, attribute)


def format_count(things: int) -> str:
    """Format a count, with separators where it is large."""
    return f"{things:,}"


def capitalize_first(text: str) -> str:
    """Capitalise the first letter; the rest is unchanged, since it may hold names."""
    return text[:1].upper() + text[1:]


_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def count_words(things: int, name: str = "") -> str:
    """Return a small count in words, with its noun where one is given: "three models"."""
    number = _NUMBERS[things] if things < len(_NUMBERS) else format_count(things)
    return f"{number} {name}{'' if things == 1 else 's'}" if name else number


def pluralize(things: int, name: str) -> str:
    """Return a count with its noun, in the singular for one."""
    return f"{format_count(things)} {name}{'' if things == 1 else 's'}"


def complete_sentence(text: str) -> str:
    """Turn a note into a sentence: a capital first letter and a full stop."""
    return capitalize_first(text) + ("" if text.endswith((".", "!", "?")) else ".")


def join_without_breaks(text: str) -> str:
    """Return the text with non-breaking spaces: within intervals, before %, around =."""
    return _UNBREAKABLE.sub(lambda match: match[0].replace(" ", "\u00a0"), text)


def join_words(items: Sequence[str]) -> str:
    """Join items as in a sentence."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def describe_preprocessing(applied: Preprocessing | None) -> str:
    """Describe the preprocessing of a picture for the network."""
    if applied is None:
        return "done inside the model"
    height, width = applied.size
    fitted = (
        f"whole picture squeezed to {width} × {height}"
        if applied.resize is None
        else f"shorter side to {applied.resize}, centre crop {width} × {height}"
    )
    mean, std = (", ".join(f"{value:g}" for value in values) for values in (applied.mean, applied.std))
    fitted = f"takes the photo and prepares it: {fitted}" if isinstance(applied, PhotoInput) else fitted
    return f"{fitted} ({applied.interpolation}); {applied.colour_order}, minus ({mean}), divided by ({std})"


def describe_threshold(fall: DropThreshold) -> str:
    """Describe how small the object may be before so many points are lost; names an open end."""
    lost = f"{format_number(fall.points, 0)} points"
    if fall.reached == "not reached":
        return f"{fall.model} does not lose {lost} at any of these sizes (n = {fall.n})."
    low = "below the smallest size" if math.isnan(fall.ci_low) else f"{format_number(fall.ci_low)} %"
    high = "above the largest size" if math.isnan(fall.ci_high) else f"{format_number(fall.ci_high)} %"
    return (
        f"{fall.model} has lost {lost} where the object covers {format_number(fall.level)} % of the picture "
        f"(95 % interval from {low} to {high}, n = {fall.n})."
    )


def describe_donor_confusion(row: DonorConfusion) -> str:
    """Describe whether wrong answers name the class that the background is from."""
    share = f"{format_number(row.share.value)} % {format_interval(row.share)}"
    return (
        f"{row.model}: of {row.share.n} wrong answers on another photo's background, {share} name the class of that "
        f"photo; {format_number(row.chance)} % would by chance."
    )


SURROGATE_MARK = "surrogate"
SURROGATE_MEANING = "surrogate: chose pictures by failing on them; its accuracy on those is low by construction"


def mark_surrogate(model: str, surrogates: tuple[str, ...]) -> str:
    """Return a model's name in plain text, with its mark where it has one."""
    return f"{model} ({SURROGATE_MARK})" if model in surrogates else model
