"""The row that represents an attribute.

Record of a finding; findings on one model; findings on differences between models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from counterfoil.report.words import (
    aside,
    attribute_name,
    describe_change,
    describe_row,
    gain,
    interval,
    listed,
    number,
    number_of,
    points,
    sentence_start,
)
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.statistics.paired import Contrast
from counterfoil.study.runs import NO_ATTRIBUTE, Row
from counterfoil.types import Drop

Kind: TypeAlias = Literal[
    "data", "accuracy", "by_attribute", "weakest", "costly", "improved", "unclear", "control", "presence", "models",
    "surrogate",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence or two that the numbers support; `model` is empty where it is about all of them."""

    model: str
    kind: Kind
    text: str
    heading: str = ""  # of `lines`, where there are any
    lines: tuple[tuple[str, str], ...] = ()  # the same as a list: attribute, and what is said of it
    brief: str = ""  # the same where the model's name stands above it; `text` where empty
    aside: str = ""  # what qualifies `brief`, in smaller letters


def lead(model: str, kind: Kind, sentence: tuple[str, str], qualified: Sequence[str]) -> Finding:
    """A finding from its sentence, with the model's name and without, and what qualifies it; no full stops."""
    text, brief = sentence
    aside = sentence_start(f"{'; '.join(qualified)}.") if qualified else ""
    return Finding(
        model=model, kind=kind, text=f"{'; '.join([text, *qualified])}.", brief=f"{sentence_start(brief)}.", aside=aside
    )


def too_few(most: int, picture: str, scored: str) -> Finding:
    """All that is said where no row has enough of them; `most` is the number of the row that has most."""
    if most == 0:
        return Finding(model="", kind="data", text=f"No data: no {picture} was {scored}, so nothing can be said.")
    told = f"Too few {picture}s: at most {most} were {scored}, and {FEWEST_PHOTOS} are the least."
    return Finding(model="", kind="data", text=told)


def representative_row(rows: Sequence[Drop]) -> list[Drop]:
    """The row by which an attribute is judged: its costliest significant one, or where none is, its costliest."""
    telling = [row for row in rows if row.attribute not in NO_ATTRIBUTE]
    clear = {row.attribute: row for row in worst_by_attribute(telling, costs)}
    return [clear.get(row.attribute, row) for row in worst_by_attribute(telling)]


def worst_by_attribute(rows: Iterable[Drop], wanted: Callable[[Drop], bool] = lambda row: True) -> list[Drop]:
    """Of each attribute the row with the largest drop, of those that are wanted."""
    worst: dict[str, Drop] = {}
    for row in filter(wanted, rows):
        if row.attribute not in worst or row.drop > worst[row.attribute].drop:
            worst[row.attribute] = row
    return list(worst.values())


def costs(row: Drop) -> bool:
    """Whether an edit costs accuracy for sure."""
    return is_significant(row) and row.drop > 0


def leaves_out_zero(row: Drop) -> bool:
    """Whether the interval says so before any correction."""
    return row.ci_low > 0 or row.ci_high < 0


_MOST_COMPARISONS = 3
_SIGNIFICANCE = 0.05


def differ_significantly(row: Contrast) -> bool:
    """Whether two models differ under a condition: the interval leaves out zero and the adjusted p is below 0.05."""
    return row.n >= FEWEST_PHOTOS and (row.ci_low > 0 or row.ci_high < 0) and row.p_holm < _SIGNIFICANCE


def better_model(row: Drop, clear: Sequence[Contrast]) -> str:
    """The model that loses least where this one loses most, if the photos tell the two apart."""
    here = [_seen_from(contrast, row.model) for contrast in clear if _under(contrast, row)]
    better = [contrast for contrast in here if contrast.first == row.model and contrast.difference > 0]
    if not better:
        return ""
    best = max(better, key=lambda contrast: contrast.difference)
    return f"{best.second} is {_gap(best)} better {interval(best)}"


def _under(contrast: Contrast, row: Drop) -> bool:
    return (contrast.condition.edit, contrast.condition.level) == (row.edit, row.level)


def _seen_from(contrast: Contrast, model: str) -> Contrast:
    """The contrast with this model first, where it takes part."""
    return turned(contrast) if contrast.second == model else contrast


def turned(contrast: Contrast) -> Contrast:
    """The same contrast with the models exchanged."""
    return contrast._replace(
        first=contrast.second,
        second=contrast.first,
        value_first=contrast.value_second,
        value_second=contrast.value_first,
        difference=-contrast.difference,
        ci_low=-contrast.ci_high,
        ci_high=-contrast.ci_low,
    )


def _gap(contrast: Contrast) -> str:
    return f"{number(contrast.difference)} points"


def paired_models(clear: Sequence[Contrast]) -> list[Finding]:
    """What tells models apart photo by photo: of each attribute the widest gap."""
    ordered = sorted(
        (row if row.difference > 0 else turned(row) for row in clear if row.condition.attribute not in NO_ATTRIBUTE),
        key=lambda row: -row.difference,
    )
    widest: dict[str, Contrast] = {}
    for row in ordered:
        widest.setdefault(row.condition.attribute, row)
    if not widest:
        told = "Photo by photo, no single edit tells the models apart: a ranking of them by these drops would be noise."
        return [Finding(model="", kind="models", text=told)]
    return [
        Finding(model="", kind="models", text=_paired_comparison(row))
        for row in list(widest.values())[:_MOST_COMPARISONS]
    ]


def _paired_comparison(row: Contrast) -> str:
    name = sentence_start(attribute_name(row.condition.attribute))
    done = aside(describe_change(row.condition.edit, row.condition.level))
    return (
        f"{name} ({done}): {row.second} loses {_gap(row)} less than "
        f"{row.first} {interval(row)}, paired by photo (n = {row.n})."
    )


SURFACE = {"texture", "material", "shape"}  # the object's own look is gone: every model loses, so these come second

_MOST_NAMED = 3  # attributes whose intervals overlap the lead's; more are counted
_APART = "surface edits, which replace the object's own look, apart"
_OWN_CONTROL = {"", "none"}  # levels of this tool's control; an archive's has a name of its own


@dataclass(frozen=True)
class Known:
    """What is known beyond a model's own rows."""

    tested: int  # rows that Holm's method corrects for
    clear: Sequence[Contrast] = ()  # differences between models that the photos show
    unseen: Mapping[Row, float] | None = None
    few: int = 0  # rows of the model's attributes that rest on too few photos to say anything

    @property
    def correction(self) -> str:
        """What stands between an interval without zero and significance."""
        return f"after Holm's correction over {number_of(self.tested, 'row')}"


def model_findings(rows: Sequence[Drop], known: Known) -> list[Finding]:
    """The findings of one model; `rows` are its rows of enough photos."""
    attributes = [row for row in rows if row.attribute not in NO_ATTRIBUTE]
    return [
        _accuracy(rows),
        *_weakest(attributes, known),
        *_improved(attributes),
        *_unclear(attributes, known),
        *_control(rows, known),
        *_presence(rows),
    ]


def _accuracy(rows: Sequence[Drop]) -> Finding:
    row = max(rows, key=lambda row: row.n)
    told = f"right on {number(row.accuracy_original)} % of the unedited photos (n = {row.n})"
    return lead(row.model, "accuracy", (f"{row.model} is {told}", told), [])


def _weakest(rows: Sequence[Drop], known: Known) -> list[Finding]:
    """The attribute that costs most, as far as the intervals tell, and the others that cost something."""
    costly = sorted(worst_by_attribute(rows, costs), key=lambda row: -row.drop)
    if not costly:
        return _nothing_costs(rows, known)
    keeping = [row for row in costly if row.attribute not in SURFACE]
    first, *others = keeping or costly
    rivals = [row for row in rows if not keeping or row.attribute not in SURFACE]
    found = [_most(first, rivals, "" if len(rivals) == len(rows) else _APART, known)]
    found += _list("Also significant, each at its costliest edit", others)
    if keeping:
        surface = [row for row in costly if row.attribute in SURFACE]
        found += _list("Significant surface edits, which replace the look of the object itself", surface)
    return found


def _most(first: Drop, rivals: Sequence[Drop], apart: str, known: Known) -> Finding:
    name = sentence_start(attribute_name(first.attribute))
    others = [row for row in worst_by_attribute(rivals) if row.attribute != first.attribute]
    near = [attribute_name(row.attribute) for row in others if row.ci_high > first.ci_low]
    open_end = f"{_few(near)} may cost as much" if near else ""
    cost = f"{describe_row(first)}, {points(first)}"
    qualified = [part for part in (open_end, better_model(first, known.clear), apart) if part]
    sentence = (f"{name} costs {first.model} most: {cost} (n = {first.n})", f"{name} costs most: {cost}")
    return lead(first.model, "weakest", sentence, qualified)


def _few(names: Sequence[str]) -> str:
    """Names where they are few, else how many they are."""
    return listed(names) if len(names) <= _MOST_NAMED else f"{len(names)} other attributes"


def _list(heading: str, rows: Sequence[Drop]) -> list[Finding]:
    """One finding: a short sentence for the terminal, one line per attribute for the page."""
    if not rows:
        return []
    first, *others = rows
    told = [f"{attribute_name(first.attribute)} {points(first)}"]
    told += [f"{attribute_name(row.attribute)} {number(row.drop)} {interval(row)}" for row in others]
    lines = tuple((attribute_name(row.attribute), f"{points(row)}, {describe_row(row)}") for row in rows)
    return [
        Finding(model=first.model, kind="costly", text=f"{heading}: {'; '.join(told)}.", heading=heading, lines=lines)
    ]


def _nothing_costs(rows: Sequence[Drop], known: Known) -> list[Finding]:
    """No significant drop; where most rows say nothing, that is no sign that nothing costs anything."""
    if not rows:
        return []
    largest = max(rows, key=lambda row: row.drop)
    start, end = "No attribute costs", "a significant number of points"
    if known.few >= len(rows):
        rest = "rests" if known.few == 1 else "rest"
        few = f"{known.few} of its {known.few + len(rows)} rows {rest} on fewer than {FEWEST_PHOTOS} photos"
        start, end = "The table of drops is too thin to say which attribute costs", f"most: {few}"
    corrected = f" {known.correction}" if leaves_out_zero(largest) else ""
    most = f"{attribute_name(largest.attribute)}: {describe_row(largest)}, {points(largest)} (n = {largest.n})"
    qualified = [f"the largest drop measured, not significant{corrected}, is {most}"]
    return [lead(largest.model, "weakest", (f"{start} {largest.model} {end}", f"{start} {end}"), qualified)]


def _improved(rows: Sequence[Drop]) -> list[Finding]:
    better = [row for row in rows if is_significant(row) and row.drop < 0]
    if not better:
        return []
    told = listed([f"{attribute_name(row.attribute)} ({gain(row)}, {describe_row(row)})" for row in better])
    lines = tuple((attribute_name(row.attribute), f"{gain(row)}, {describe_row(row)}") for row in better)
    return [
        Finding(
            model=better[0].model,
            kind="improved",
            text=f"Accuracy rises through {told}.",
            heading="Accuracy rises through",
            lines=lines,
        )
    ]


def _unclear(rows: Sequence[Drop], known: Known) -> list[Finding]:
    """The attributes of which no edit is significant, where another attribute is."""
    settled = {row.attribute for row in rows if is_significant(row)}
    open_rows = [row for row in rows if row.attribute not in settled]
    if not open_rows or not settled:
        return []
    corrected = {row.attribute for row in open_rows if leaves_out_zero(row)}
    names = dict.fromkeys(row.attribute for row in open_rows)
    plain = [attribute_name(name) for name in names if name not in corrected]
    told = f"Not significant: {listed(plain)}. " if plain else ""
    if corrected:
        close = listed([attribute_name(name) for name in names if name in corrected])
        told += f"Not significant {known.correction}: {close}. "
    return [Finding(model=open_rows[0].model, kind="unclear", text=told + _doubt(worst_by_attribute(open_rows), known))]


def _doubt(rows: Sequence[Drop], known: Known) -> str:
    told = f"With n = {min(row.n for row in rows)}"
    unseen = known.unseen or {}
    missed = [unseen[row.model, row.edit, row.level] for row in rows if (row.model, row.edit, row.level) in unseen]
    if not missed:
        return f"{told} this does not prove that they cost nothing."
    return f"{told} a drop of {number(max(missed), 0)} points would go unseen in one run of five."


def _control(rows: Sequence[Drop], known: Known) -> list[Finding]:
    return [
        Finding(model=row.model, kind="control", text=_control_cost(row, known))
        for row in rows
        if row.attribute == "control"
    ]


def _control_cost(row: Drop, known: Known) -> str:
    way = "Control, the object cut out and pasted back"
    if row.level not in _OWN_CONTROL:
        way = f"The collection's own control ({row.level}), made by its authors with nothing changed"
    if is_significant(row):
        effect = f"costs {points(row)}" if row.drop >= 0 else f"raises accuracy by {gain(row)}"
        return f"{way}: {effect} by itself, so read the other drops against it."
    corrected = f" {known.correction}" if leaves_out_zero(row) else ""
    return f"{way}: no significant change{corrected}, drop {points(row)}."


def _presence(rows: Sequence[Drop]) -> list[Finding]:
    return [
        Finding(
            model=row.model,
            kind="presence",
            text=f"Diagnostic: without the object ({row.edit}) still right on {number(row.accuracy)} % (n = {row.n}), "
            "from the background alone.",
        )
        for row in rows
        if row.attribute == "presence"
    ]
