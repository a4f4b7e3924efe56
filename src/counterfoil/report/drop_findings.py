"""Findings on drops as sentences: what each model is right on, and which attributes cost it most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from counterfoil.report.attribute_words import capital_subject, describe_attribute, is_broad
from counterfoil.report.words import (
    brackets_to_comma,
    capitalize_first,
    count_words,
    describe_row,
    format_bounds,
    format_drop,
    format_gain,
    format_interval,
    format_number,
    format_range,
    join_words,
    name_attribute,
    pluralize,
)
from counterfoil.statistics.answers import FILL_CONTROL, NO_ATTRIBUTE
from counterfoil.statistics.attribute_verdicts import AttributeVerdict, costs
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.statistics.families import MAIN_FAMILY
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.background_answers import BackgroundAnswer
from counterfoil.study.judgements import Judgement
from counterfoil.study.runs import DropKey, OverallAccuracy
from counterfoil.types import Drop

_MOST_NAMED = 3  # attributes in one sentence; more are counted
_SIGNIFICANCE = 0.05
_OWN_CONTROL = {"", "none"}  # levels of this tool's control; an archive's control has its own name

Kind: TypeAlias = Literal[
    "data", "accuracy", "by_attribute", "weakest", "costly", "improved", "unclear", "control", "presence", "models",
    "surrogate", "judgement",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One or two sentences on the numbers; `model` is empty where they concern all models."""

    model: str
    kind: Kind
    text: str


@dataclass(frozen=True, kw_only=True)
class DropTable:
    """What the sentences are made of."""

    drops: Sequence[Drop]
    verdicts: Sequence[AttributeVerdict]
    accuracies: Sequence[OverallAccuracy] = ()  # on the unedited photos
    detectable_drops: Mapping[DropKey, float] = field(default_factory=dict)
    background_answers: Sequence[BackgroundAnswer] = ()  # without the object, against guessing
    judgements: Mapping[str, Judgement] = field(default_factory=dict)

    @property
    def enough(self) -> list[Drop]:
        """The rows with enough photos for a conclusion."""
        return [row for row in self.drops if has_enough(row)]

    def verdicts_on(self, model: str) -> list[AttributeVerdict]:
        """The model's attributes that have enough photos, the costliest first."""
        own = [verdict for verdict in self.verdicts if verdict.model == model and has_enough(verdict.representative)]
        return sorted(own, key=lambda verdict: -verdict.representative.drop_vs_reference)


def has_enough(row: Drop) -> bool:
    """Whether a row has enough photos, with the reference and edited, for a conclusion."""
    return row.n_reference >= FEWEST_PHOTOS and not math.isnan(row.drop_vs_reference)


def excludes_zero(row: Contrast | Estimate) -> bool:
    """Whether the 95 % interval excludes zero."""
    return row.ci_low > 0 or row.ci_high < 0


def differ_significantly(row: Contrast) -> bool:
    """Whether two models differ: enough photos, a corrected interval without zero, and an adjusted p below 0.05."""
    apart = row.adjusted_low > 0 or row.adjusted_high < 0
    return row.n >= FEWEST_PHOTOS and apart and row.p_adjusted < _SIGNIFICANCE


def report_too_few(most: int, picture: str, scored: str) -> Finding:
    """The finding where every row has too few pictures; `most` is the largest number in a row."""
    text = f"Too few {picture}s: at most {most} were {scored}, and at least {FEWEST_PHOTOS} are needed."
    if most == 0:
        text = f"No data: no {picture} was {scored}, so nothing can be said."
    return Finding(model="", kind="data", text=text)


def describe_drops(table: DropTable) -> list[Finding]:
    """Return the findings of each model in the order of the table; a model's words depend on its own rows alone."""
    if not table.enough:
        most = max((row.n_reference for row in table.drops), default=0)
        return [report_too_few(most, "photo", "scored before and after an edit")]
    findings = [
        finding
        for model in dict.fromkeys(row.model for row in table.enough)
        for finding in _describe_model(model, table)
    ]
    few = len(table.drops) - len(table.enough)
    if few:
        text = f"{few} of {len(table.drops)} rows of the table have fewer than {FEWEST_PHOTOS} photos"
        findings.append(Finding(model="", kind="data", text=f"{text}; nothing is said about them."))
    return findings


def find_largest_loss(model: str, table: DropTable) -> AttributeVerdict | None:
    """The attribute that a headline names: the costliest that is clear, neither surface nor a diagnostic."""
    return next((verdict for verdict in table.verdicts_on(model) if verdict.is_costliest), None)


def find_ties(model: str, table: DropTable) -> list[AttributeVerdict]:
    """The attributes that the photos cannot tell apart from the costliest."""
    return [verdict for verdict in table.verdicts_on(model) if verdict.ties_costliest]


def _describe_model(model: str, table: DropTable) -> list[Finding]:
    judgement = table.judgements.get(model, Judgement())
    if not judgement.is_judged:
        text = f"{model} {describe_accuracy(model, table)} and is not judged. {judgement.sentence}"
        return [Finding(model=model, kind="judgement", text=text)]
    rows = [row for row in table.enough if row.model == model]
    texts: list[tuple[Kind, str]] = [("weakest", describe_verdict(model, table))]
    texts += [(kind, text) for kind, text in _describe_rest(model, table) if text]
    texts += [("control", text) for row in rows if row.attribute == "control" and (text := _describe_control(row))]
    texts += [("presence", describe_presence(row, table)) for row in rows if row.attribute == "presence"]
    texts += [("judgement", f"A doubt about {model}: {judgement.sentence}")] if judgement.reason else []
    return [Finding(model=model, kind=kind, text=text) for kind, text in texts]


def describe_verdict(model: str, table: DropTable) -> str:
    """The sentence on one model: its accuracy on unedited photos, its costliest attribute, what may cost as much."""
    first = find_largest_loss(model, table)
    start = f"{model} {describe_accuracy(model, table)}"
    if first is None:
        return f"{start}; {_describe_no_loss(model, table)}."
    row = first.representative
    edit = "" if row == first.main and not is_broad(first.attribute) else f" ({brackets_to_comma(describe_row(row))})"
    when = describe_attribute(first.attribute).when
    return f"{start}. Its largest clear loss is {format_drop(row)}, {when}{edit}.{describe_ties(model, table)}"


def describe_accuracy(model: str, table: DropTable) -> str:
    """The model's accuracy on the unedited photos."""
    known = [row.accuracy for row in table.accuracies if row.model == model]
    widest = max((row for row in table.enough if row.model == model), key=lambda row: row.n)
    return f"is right on {format_number(known[0] if known else widest.accuracy_original)} % of unedited photos"


def describe_ties(model: str, table: DropTable) -> str:
    """A sentence on the attributes that cannot be told apart from the costliest; empty where there is none."""
    names = [name_attribute(verdict.attribute) for verdict in find_ties(model, table)]
    if not names:
        return ""
    if len(names) <= _MOST_NAMED:
        return f" {capitalize_first(join_words(names))}, also clear, may cost as much."
    return f" {capitalize_first(count_words(len(names)))} other clear losses may be as large."


def _describe_no_loss(model: str, table: DropTable) -> str:
    """No clear loss; where most rows have too few photos, this is not evidence of no loss."""
    rows = [verdict.representative for verdict in table.verdicts_on(model) if verdict.family == MAIN_FAMILY]
    own = [row for row in table.drops if row.model == model and row.attribute not in NO_ATTRIBUTE]
    few = [row for row in own if not has_enough(row)]
    if not rows or len(few) >= len(own) - len(few):
        count = f"{len(few)} of {len(own)} edits were scored on fewer than {FEWEST_PHOTOS}"
        return f"the photos are too few to say what costs it most: {count}"
    largest = rows[0]
    return (
        f"no attribute clearly costs it points; the largest loss, {format_drop(largest)}, is"
        f" {describe_attribute(largest.attribute).when}"
    )


def _describe_rest(model: str, table: DropTable) -> Iterable[tuple[Kind, str]]:
    """The other attributes: clear losses, surface edits, gains, and those that may cost nothing."""
    verdicts = [verdict for verdict in table.verdicts_on(model) if not verdict.is_costliest]
    plain = [verdict for verdict in verdicts if verdict.family == MAIN_FAMILY]
    yield "costly", _list_losses(f"{model} also clearly loses to", [verdict for verdict in plain if verdict.costs])
    surface = [verdict for verdict in verdicts if verdict.family != MAIN_FAMILY and verdict.costs]
    yield "costly", _list_losses(f"Edits that replace the object's own look cost {model}", surface)
    better = [row for row in table.enough if row.model == model and is_significant(row) and row.drop_vs_reference < 0]
    gains = [f"{describe_row(row)} ({format_gain(row)})" for row in better if row.attribute not in NO_ATTRIBUTE]
    yield "improved", f"{model} gains from {join_words(gains)}." if gains else ""
    unclear = [verdict.representative for verdict in plain if not is_significant(verdict.representative)]
    yield "unclear", describe_unclear(unclear, table) if find_largest_loss(model, table) else ""


def _list_losses(start: str, verdicts: Sequence[AttributeVerdict]) -> str:
    rows = [verdict.representative for verdict in verdicts]
    parts = [f"{name_attribute(row.attribute)} {format_number(row.drop_vs_reference)} {_bounds(row)}" for row in rows]
    return f"{start}: {', '.join(parts)}." if parts else ""


def describe_unclear(rows: Sequence[Drop], table: DropTable) -> str:
    """Attributes that may cost nothing, and how large a loss so few photos can miss."""
    if not rows:
        return ""
    text = f"{capitalize_first(join_words([name_attribute(row.attribute) for row in rows]))} may cost nothing"
    keys = [(row.model, row.edit, row.level) for row in rows]
    missed = sorted(
        (table.detectable_drops[key], row.n_reference, name_attribute(row.attribute))
        for row, key in zip(rows, keys, strict=True)
        if key in table.detectable_drops
    )
    if not missed:
        return f"{text}."
    (least, of_least, first), (most, of_most, last) = missed[0], missed[-1]
    if format_number(least, 0) == format_number(most, 0):
        return f"{text}; {pluralize(of_most, 'photo')} can miss a loss of {format_number(most, 0)} points."
    lowest, highest = f"{first}, {pluralize(of_least, 'photo')}", f"{last}, {pluralize(of_most, 'photo')}"
    return (
        f"{text}; what can be missed is a loss of {format_number(least, 0)} points ({lowest}) to"
        f" {format_number(most, 0)} ({highest})."
    )


def _bounds(row: Drop) -> str:
    return format_bounds(row.reference_low, row.reference_high)


def _describe_control(row: Drop) -> str:
    """What the editing alone or a visible fill changes; empty where that is not clear."""
    if not is_significant(row):
        return ""
    effect = f"costs {format_drop(row)}" if row.drop_vs_reference >= 0 else f"adds {format_gain(row)}"
    if row.edit == FILL_CONTROL:
        return (
            f"A hole of the object's shape, filled elsewhere in the background ({row.edit}), {effect} with the object"
            " untouched; a loss under an edit that shows the fill is clear only beyond it."
        )
    name = f"Editing alone ({row.edit})"
    if row.edit == "control" and row.level not in _OWN_CONTROL:
        name = f"The collection's own control ({row.level})"
    return (
        f"{name} {effect} with nothing changed; a loss under an edit that cuts the object out is clear only beyond it."
    )


def describe_presence(row: Drop, table: DropTable) -> str:
    """How often the model is right without the object, and whether that is more than guessing."""
    sentence = f"Without the object {row.model} is right on {format_number(row.accuracy, 0)} %"
    of_photos = f"of {pluralize(row.n, 'photo')}"
    key = row.model, (row.attribute, row.edit, row.level)
    answer = next((own for own in table.background_answers if (own.model, own.condition) == key), None)
    if answer is None:
        return f"{sentence} {of_photos}."
    sentence = f"{sentence} {format_interval(answer.accuracy)} {of_photos}"
    guessing = f"guessing gives {format_number(answer.chance)} %"
    if answer.above_chance:
        return f"{sentence}, from what is left of the picture; {guessing}."
    return f"{sentence}, which is not shown to be more than guessing; {guessing}."


def summarize_attribute(rows: Sequence[Drop]) -> str:
    """One sentence on what an attribute's main edit costs the models; `rows` has one per model."""
    clear, unclear = [row for row in rows if costs(row)], [row for row in rows if not costs(row)]
    words = describe_attribute(rows[0].attribute)
    subject = capital_subject(rows[0].attribute)
    if is_broad(rows[0].attribute) and len({(row.edit, row.level) for row in rows}) == 1:
        subject = f"{subject} ({brackets_to_comma(describe_row(rows[0]))})"
    if not clear:
        most = max(rows, key=lambda row: row.reference_high)
        bound = f"at most {format_number(most.reference_high)} points"
        return f"{subject} may cost nothing, and {bound}."
    if len(rows) == 1:
        return f"{subject} {words.costs} {format_drop(clear[0])}."
    if not unclear:
        return f"{subject} {words.costs} {format_range(clear)}."
    whom, spared = (_name_models(group, len(rows)) for group in (clear, unclear))
    return f"{subject} {words.costs} {whom} {format_range(clear)}. For {spared} it may cost nothing."


def _name_models(rows: Sequence[Drop], models: int) -> str:
    names = [row.model for row in rows]
    return join_words(names) if len(names) <= _MOST_NAMED else f"{len(names)} of {models} models"
