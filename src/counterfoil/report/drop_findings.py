"""Findings on drops as sentences: which attributes cost each model most, and which models differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from counterfoil.report.words import (
    brackets_to_comma,
    capitalize_first,
    describe_change,
    describe_row,
    format_drop,
    format_gain,
    format_interval,
    format_number,
    join_words,
    name_attribute,
)
from counterfoil.statistics.answers import NO_ATTRIBUTE
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.statistics.families import SURFACE
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.runs import DropKey
from counterfoil.types import Drop

_MOST_NAMED = 3  # attributes whose intervals overlap the first one's; more are counted
_MOST_COMPARISONS = 3
_SIGNIFICANCE = 0.05
_APART = "surface edits, which replace the object's own look, apart"
_OWN_CONTROL = {"", "none"}  # levels of this tool's control; an archive's control has its own name

Kind: TypeAlias = Literal[
    "data", "accuracy", "by_attribute", "weakest", "costly", "improved", "unclear", "control", "presence", "models",
    "surrogate",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One or two sentences on the numbers; `model` is empty where they concern all models."""

    model: str
    kind: Kind
    text: str
    heading: str = ""  # heading of `lines`, where there are any
    lines: tuple[tuple[str, str], ...] = ()  # the finding as a list: attribute and text
    brief: str = ""  # the finding below the model's name; `text` where empty
    qualification: str = ""  # qualification of `brief`, in smaller letters


def make_finding(model: str, kind: Kind, sentence: tuple[str, str], qualified: Sequence[str] = ()) -> Finding:
    """Make a finding from its sentence with and without the model's name, and its qualification; no full stops."""
    text, brief = sentence
    return Finding(
        model=model,
        kind=kind,
        text=f"{'; '.join([text, *qualified])}.",
        brief=f"{capitalize_first(brief)}.",
        qualification=capitalize_first(f"{'; '.join(qualified)}.") if qualified else "",
    )


def report_too_few(most: int, picture: str, scored: str) -> Finding:
    """The finding where every row has too few pictures; `most` is the largest number in a row."""
    text = f"Too few {picture}s: at most {most} were {scored}, and {FEWEST_PHOTOS} are the least."
    if most == 0:
        text = f"No data: no {picture} was {scored}, so nothing can be said."
    return Finding(model="", kind="data", text=text)


@dataclass(frozen=True, kw_only=True)
class _Table:
    """What the sentences on one model need besides its own rows."""

    clear: Sequence[Contrast]  # significant differences between models
    detectable_drops: Mapping[DropKey, float]
    few: int  # rows of the model's attributes with too few photos for a conclusion

    @property
    def correction(self) -> str:
        """Why a row whose interval excludes zero is not significant."""
        return "after the correction for many tests and for the tool"


def describe_drops(
    drops: Sequence[Drop], contrasts: Sequence[Contrast] = (), detectable_drops: Mapping[DropKey, float] | None = None
) -> list[Finding]:
    """Return the findings of each model in the order of the table, then the differences between models.

    Models are compared photo by photo where their contrasts are given.
    `detectable_drops` says how large an undetected drop may be.
    """
    enough = [row for row in drops if row.n >= FEWEST_PHOTOS]
    few = [row for row in drops if row.n < FEWEST_PHOTOS]
    if not enough:
        return [report_too_few(max((row.n for row in drops), default=0), "photo", "scored before and after an edit")]
    clear = [row for row in contrasts if differ_significantly(row)]
    findings: list[Finding] = []
    for model in dict.fromkeys(row.model for row in enough):
        table = _Table(
            clear=clear,
            detectable_drops=detectable_drops or {},
            few=sum(row.model == model and row.attribute not in NO_ATTRIBUTE for row in few),
        )
        findings += _describe_model([row for row in enough if row.model == model], table)
    findings += _compare_models(clear) if contrasts else []
    if few:
        text = f"Too few photos: {len(few)} of {len(drops)} rows of the table rest on fewer than {FEWEST_PHOTOS} photos"
        findings.append(Finding(model="", kind="data", text=f"{text}; nothing is said about them."))
    return findings


def representative_rows(rows: Sequence[Drop]) -> list[Drop]:
    """The row that each attribute is judged by: the largest significant drop, else the largest."""
    attributes = [row for row in rows if row.attribute not in NO_ATTRIBUTE]
    clear = {row.attribute: row for row in _worst_by_attribute(attributes, _costs)}
    return [clear.get(row.attribute, row) for row in _worst_by_attribute(attributes)]


def _worst_by_attribute(rows: Iterable[Drop], counts: Callable[[Drop], bool] = lambda row: True) -> list[Drop]:
    """The row with the largest drop of each attribute, among those that count."""
    worst: dict[str, Drop] = {}
    for row in filter(counts, rows):
        if row.attribute not in worst or row.drop_vs_reference > worst[row.attribute].drop_vs_reference:
            worst[row.attribute] = row
    return list(worst.values())


def _costs(row: Drop) -> bool:
    return is_significant(row) and row.drop_vs_reference > 0


def excludes_zero(row: Drop | Contrast | Estimate) -> bool:
    """Whether the test rejects zero before any correction."""
    return row.p_value < _SIGNIFICANCE if isinstance(row, Drop) else row.ci_low > 0 or row.ci_high < 0


def differ_significantly(row: Contrast) -> bool:
    """Whether two models differ under a condition: the interval excludes zero and the adjusted p is below 0.05."""
    return row.n >= FEWEST_PHOTOS and excludes_zero(row) and row.p_adjusted < _SIGNIFICANCE


def _describe_model(rows: Sequence[Drop], table: _Table) -> list[Finding]:
    """The findings of one model; `rows` are its rows with enough photos."""
    attributes = [row for row in rows if row.attribute not in NO_ATTRIBUTE]
    return [
        _accuracy(rows),
        *_weakest(attributes, table),
        *_improved(attributes),
        *_unclear(attributes, table),
        *_control(rows, table),
        *_presence(rows),
    ]


def _accuracy(rows: Sequence[Drop]) -> Finding:
    row = max(rows, key=lambda row: row.n)
    sentence = f"right on {format_number(row.accuracy_original)} % of the unedited photos (n = {row.n})"
    return make_finding(row.model, "accuracy", (f"{row.model} is {sentence}", sentence))


def _weakest(rows: Sequence[Drop], table: _Table) -> list[Finding]:
    """The attribute with the largest drop, as far as the intervals tell, and the others with a drop."""
    costly = sorted(_worst_by_attribute(rows, _costs), key=lambda row: -row.drop_vs_reference)
    if not costly:
        return _nothing_costs(rows, table)
    other = [row for row in costly if row.attribute not in SURFACE]
    first, *next_ones = other or costly
    rivals = [row for row in rows if not other or row.attribute not in SURFACE]
    findings = [_describe_largest_drop(first, rivals, "" if len(rivals) == len(rows) else _APART, table)]
    findings += _list_drops("Also significant, each at its costliest edit", next_ones)
    if other:
        surface = [row for row in costly if row.attribute in SURFACE]
        findings += _list_drops("Significant surface edits, which replace the look of the object itself", surface)
    return findings


def _describe_largest_drop(first: Drop, rivals: Sequence[Drop], apart: str, table: _Table) -> Finding:
    name = capitalize_first(name_attribute(first.attribute))
    others = [row for row in _worst_by_attribute(rivals) if row.attribute != first.attribute]
    near = [name_attribute(row.attribute) for row in others if row.reference_high > first.reference_low]
    named = join_words(near) if len(near) <= _MOST_NAMED else f"{len(near)} other attributes"
    qualified = [f"{named} may cost as much" if near else "", _better_model(first, table.clear), apart]
    cost = f"{describe_row(first)}, {format_drop(first)}"
    sentence = (f"{name} costs {first.model} most: {cost} (n = {first.n})", f"{name} costs most: {cost}")
    return make_finding(first.model, "weakest", sentence, [part for part in qualified if part])


def _better_model(row: Drop, clear: Sequence[Contrast]) -> str:
    """The model that loses least where this one loses most, if the two differ significantly."""
    same_edit = [it for it in clear if (it.condition.edit, it.condition.level) == (row.edit, row.level)]
    seen_from_row = [_exchanged(contrast) if contrast.second == row.model else contrast for contrast in same_edit]
    better = [contrast for contrast in seen_from_row if contrast.first == row.model and contrast.difference > 0]
    if not better:
        return ""
    best = max(better, key=lambda contrast: contrast.difference)
    return f"{best.second} is {format_number(best.difference)} points better {format_interval(best)}"


def _exchanged(contrast: Contrast) -> Contrast:
    """The contrast with the models exchanged."""
    return contrast._replace(
        first=contrast.second,
        second=contrast.first,
        value_first=contrast.value_second,
        value_second=contrast.value_first,
        difference=-contrast.difference,
        ci_low=-contrast.ci_high,
        ci_high=-contrast.ci_low,
    )


def _list_drops(heading: str, rows: Sequence[Drop]) -> list[Finding]:
    """One finding: a short sentence for the terminal, one line per attribute for the page."""
    if not rows:
        return []
    first, *others = rows
    parts = [f"{name_attribute(first.attribute)} {format_drop(first)}"]
    parts += [f"{name_attribute(row.attribute)} {format_drop(row)}" for row in others]
    lines = tuple((name_attribute(row.attribute), f"{format_drop(row)}, {describe_row(row)}") for row in rows)
    text = f"{heading}: {'; '.join(parts)}."
    return [Finding(model=first.model, kind="costly", text=text, heading=heading, lines=lines)]


def _nothing_costs(rows: Sequence[Drop], table: _Table) -> list[Finding]:
    """No significant drop; where most rows have too few photos, this is not evidence of no drop."""
    if not rows:
        return []
    largest = max(rows, key=lambda row: row.drop_vs_reference)
    start, end = "No attribute costs", "a significant number of points"
    if table.few >= len(rows):
        rest = "rests" if table.few == 1 else "rest"
        few = f"{table.few} of its {table.few + len(rows)} rows {rest} on fewer than {FEWEST_PHOTOS} photos"
        start, end = "The table of drops is too thin to say which attribute costs", f"most: {few}"
    corrected = f" {table.correction}" if excludes_zero(largest) else ""
    most = f"{name_attribute(largest.attribute)}: {describe_row(largest)}, {format_drop(largest)} (n = {largest.n})"
    qualified = [f"the largest drop measured, not significant{corrected}, is {most}"]
    return [make_finding(largest.model, "weakest", (f"{start} {largest.model} {end}", f"{start} {end}"), qualified)]


def _improved(rows: Sequence[Drop]) -> list[Finding]:
    better = [row for row in rows if is_significant(row) and row.drop_vs_reference < 0]
    if not better:
        return []
    lines = tuple((name_attribute(row.attribute), f"{format_gain(row)}, {describe_row(row)}") for row in better)
    heading = "Accuracy rises through"
    text = f"{heading} {join_words([f'{name} ({rise})' for name, rise in lines])}."
    return [Finding(model=better[0].model, kind="improved", text=text, heading=heading, lines=lines)]


def _unclear(rows: Sequence[Drop], table: _Table) -> list[Finding]:
    """The attributes without a significant edit, where another attribute has one."""
    clear = {row.attribute for row in rows if is_significant(row)}
    unclear = [row for row in rows if row.attribute not in clear]
    if not unclear or not clear:
        return []
    corrected = {row.attribute for row in unclear if excludes_zero(row)}
    attributes = dict.fromkeys(row.attribute for row in unclear)
    plain = [name_attribute(name) for name in attributes if name not in corrected]
    text = f"Not significant: {join_words(plain)}. " if plain else ""
    if corrected:
        close = [name_attribute(name) for name in attributes if name in corrected]
        text += f"Not significant {table.correction}: {join_words(close)}. "
    text += _power(_worst_by_attribute(unclear), table)
    return [Finding(model=unclear[0].model, kind="unclear", text=text)]


def _power(rows: Sequence[Drop], table: _Table) -> str:
    """How large a drop so few photos could miss."""
    start = f"With n = {min(row.n for row in rows)}"
    keys = [(row.model, row.edit, row.level) for row in rows]
    missed = [table.detectable_drops[key] for key in keys if key in table.detectable_drops]
    if not missed:
        return f"{start} this does not prove that they cost nothing."
    return f"{start} a drop of {format_number(max(missed), 0)} points would go unseen in one run of five."


def _control(rows: Sequence[Drop], table: _Table) -> list[Finding]:
    controls = [row for row in rows if row.attribute == "control"]
    return [Finding(model=row.model, kind="control", text=_control_cost(row, table)) for row in controls]


def _control_cost(row: Drop, table: _Table) -> str:
    name = "Control, the object cut out and pasted back"
    if row.level not in _OWN_CONTROL:
        name = f"The collection's own control ({row.level}), made by its authors with nothing changed"
    if is_significant(row):
        effect = f"costs {format_drop(row)}" if row.drop_vs_reference >= 0 else f"raises accuracy by {format_gain(row)}"
        return f"{name}: {effect} by itself, so read the other drops against it."
    corrected = f" {table.correction}" if excludes_zero(row) else ""
    return f"{name}: no significant change{corrected}, drop {format_drop(row)}."


def _presence(rows: Sequence[Drop]) -> list[Finding]:
    return [
        Finding(
            model=row.model,
            kind="presence",
            text=f"Diagnostic: without the object ({row.edit}) still right on {format_number(row.accuracy)} % "
            f"(n = {row.n}), from the background alone.",
        )
        for row in rows
        if row.attribute == "presence"
    ]


def _compare_models(clear: Sequence[Contrast]) -> list[Finding]:
    """The differences between models, photo by photo: the largest of each attribute."""
    attributes = [row for row in clear if row.condition.attribute not in NO_ATTRIBUTE]
    turned = [row if row.difference > 0 else _exchanged(row) for row in attributes]
    widest: dict[str, Contrast] = {}
    for row in sorted(turned, key=lambda row: -row.difference):
        widest.setdefault(row.condition.attribute, row)
    texts = [_compare_pair(row) for row in widest.values()] or [
        "Photo by photo, no single edit was shown to cost one model more than another."
    ]
    return [Finding(model="", kind="models", text=text) for text in texts[:_MOST_COMPARISONS]]


def _compare_pair(row: Contrast) -> str:
    name = capitalize_first(name_attribute(row.condition.attribute))
    change = brackets_to_comma(describe_change(row.condition.edit, row.condition.level))
    return (
        f"{name} ({change}): {row.second} loses {format_number(row.difference)} points less than "
        f"{row.first} {format_interval(row)}, paired by photo (n = {row.n})."
    )
