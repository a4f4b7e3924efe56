"""The title of a report: the finding, in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from counterfoil.report.attribute_words import capital_subject, describe_attribute, is_broad
from counterfoil.report.content import MANY_MODELS, ReportContent
from counterfoil.report.drop_findings import find_largest_loss, find_ties
from counterfoil.report.headline import make_drop_table
from counterfoil.report.words import (
    capitalize_first,
    count_words,
    describe_change,
    format_number,
    join_words,
    name_attribute,
)
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Attribute

_MOST_NAMED = 3  # attributes
_MOST_LETTERS = 90  # of a title with names in it


def write_title(content: ReportContent) -> str:
    """Return the finding as a title."""
    if content.is_mined or (content.accuracies and not content.has_drops):
        return _title_of_accuracies(content)
    if len(content.judged_models) >= MANY_MODELS:
        return _title_of_ranking(content)
    unjudged = len(content.run.models) - len(content.judged_models)
    if not unjudged:
        return _title_of_losses(content)
    left_out = f"{capitalize_first(count_words(unjudged, 'model'))} {'was' if unjudged == 1 else 'were'} not judged"
    rest = _title_of_losses(content) if content.judged_models else ""
    return f"{left_out}; {rest[:1].lower()}{rest[1:]}" if rest else left_out


def _title_of_losses(content: ReportContent) -> str:
    table = make_drop_table(content)
    models = content.judged_models
    if not table.enough:
        return "Too few photos for a finding"
    leads = {model: first.attribute for model in models if (first := find_largest_loss(model, table)) is not None}
    if not leads:
        whom = models[0] if len(models) == 1 else "these models"
        return f"No attribute clearly costs {whom} points"
    ties = {model: [row.attribute for row in find_ties(model, table)] for model in leads}
    attribute, count = Counter(leads.values()).most_common(1)[0]
    if count < len(models):
        return _title_of_different(content, leads, ties)
    verb = "may cost" if any(ties.values()) else describe_attribute(attribute).costs
    return f"{_capital_cause(attribute, content)} {verb} {_name_all(models)} most"


def _title_of_different(
    content: ReportContent, leads: Mapping[str, Attribute], ties: Mapping[str, Sequence[Attribute]]
) -> str:
    """Models whose costliest attributes differ: what clearly costs all of them, else each of two, else most of them."""
    models = content.judged_models
    if len(leads) == len(models):
        common = [name for name in dict.fromkeys(leads.values()) if all(_may_lead(name, m, leads, ties) for m in leads)]
        if common:
            names = join_words([_name_cause(name, content) for name in common[:_MOST_NAMED]])
            return f"{capitalize_first(names)} clearly {'costs' if len(common) == 1 else 'cost'} {_name_all(models)}"
    if len(models) == 2 and len(leads) == 2 and not any(ties.values()) and (both := _title_of_two(leads)):
        return both
    attribute, count = Counter(leads.values()).most_common(1)[0]
    own = [model for model, lead in leads.items() if lead == attribute]
    verb = "may cost" if any(ties[model] for model in own) else describe_attribute(attribute).costs
    whom = own[0] if count == 1 else f"{count_words(count)} of {count_words(len(models), 'model')}"
    return f"{_capital_cause(attribute, content)} {verb} {whom} most"


def _name_cause(attribute: Attribute, content: ReportContent) -> str:
    """The attribute; of one that holds very different edits, the only edit that was made."""
    edits = {(row.edit, row.level) for row in content.drops if row.attribute == attribute}
    if not is_broad(attribute) or len(edits) > 1:
        return name_attribute(attribute)
    return describe_change(*edits.pop()).partition(" (")[0]


def _capital_cause(attribute: Attribute, content: ReportContent) -> str:
    """The same as the subject of a sentence."""
    cause = _name_cause(attribute, content)
    return capital_subject(attribute) if cause == name_attribute(attribute) else capitalize_first(cause)


def _may_lead(
    attribute: Attribute, model: str, leads: Mapping[str, Attribute], ties: Mapping[str, Sequence[Attribute]]
) -> bool:
    return attribute == leads[model] or attribute in ties[model]


def _name_all(models: Sequence[str]) -> str:
    if len(models) == 1:
        return models[0]
    return "both models" if len(models) == 2 else f"all {count_words(len(models), 'model')}"


def _title_of_two(leads: Mapping[str, Attribute]) -> str:
    """Each model's own costliest attribute, where both fit into a line."""
    parts = [
        f"{describe_attribute(lead).subject} {describe_attribute(lead).costs} {model}" for model, lead in leads.items()
    ]
    text = capitalize_first(f"{parts[0]} most, {parts[1]}")
    return text if len(text) <= _MOST_LETTERS else ""


def _title_of_ranking(content: ReportContent) -> str:
    rows = sorted((row for row in content.edited_accuracies), key=lambda row: -row.top1.value)
    tied = [row for row in rows if set(row.letters) & set(rows[0].letters)]
    if len(tied) == 1:
        return f"{rows[0].model} is the best of {len(rows)} models on edited photos"
    return f"{capitalize_first(count_words(len(tied)))} of {len(rows)} models may be the best"


def _title_of_accuracies(content: ReportContent) -> str:
    surrogates = find_surrogates(content.run)
    rows = [row for row in content.accuracies if row.overall and row.photos >= FEWEST_PHOTOS]
    rows = sorted((row for row in rows if row.model not in surrogates), key=lambda row: -row.top1.value)
    if not rows:
        return "Too few pictures for a finding"
    if len(rows) == 1:
        return f"{rows[0].model} is right on {format_number(rows[0].top1.value)} % of the pictures"
    return _title_of_best(rows)


def _title_of_best(rows: Sequence[GroupAccuracy]) -> str:
    tied = [row for row in rows if set(row.letters) & set(rows[0].letters)]
    if len(tied) == 1:
        return f"{rows[0].model} is right most often, on {format_number(rows[0].top1.value)} %"
    low, high = (format_number(row.top1.value) for row in (tied[-1], tied[0]))
    if len(tied) == len(rows):
        return f"The pictures cannot tell {count_words(len(rows), 'model')} apart: {low} to {high} % right"
    return f"{capitalize_first(count_words(len(tied)))} of {len(rows)} models may be the best: {low} to {high} % right"
