"""The headline of a report in sentences: drops against originals, accuracies where there are no originals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from counterfoil.report.content import ReportContent
from counterfoil.report.drop_findings import DropTable, Finding, describe_drops, report_too_few
from counterfoil.report.model_comparison import compare_models
from counterfoil.report.words import (
    SURROGATE_MEANING,
    format_count,
    format_interval,
    format_number,
    join_words,
    name_attribute,
    pluralize,
)
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.answers import ALL, NO_ATTRIBUTE
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.runs import Study, find_surrogates

_HEADING = "Right by attribute, all of its edits and levels together"
_MOST_NAMED = 6  # kinds in a sentence; some collections have hundreds


def describe_accuracies(rows: Sequence[GroupAccuracy], surrogates: Sequence[str]) -> list[Finding]:
    """Findings on pictures without originals: accuracies, the lowest of each model, and differences between models."""
    overall = [row for row in rows if row.overall]
    enough = [row for row in overall if row.photos >= FEWEST_PHOTOS]
    if not enough:
        return [report_too_few(max((row.photos for row in overall), default=0), "picture", "scored")]
    findings = [finding for row in enough for finding in (_accuracy(row, rows), *_lowest(rows, row.model))]
    return [*findings, *_compare_models(enough, surrogates)]


def with_accuracies(findings: Sequence[Finding], rows: Sequence[GroupAccuracy]) -> list[Finding]:
    """Findings on pictures with originals: each model's accuracy over all pictures, then its findings on drops."""
    overall = {row.model: row for row in rows if row.overall and row.photos >= FEWEST_PHOTOS}
    models = dict.fromkeys([*overall, *(finding.model for finding in findings if finding.model)])
    merged: list[Finding] = []
    for model in models:
        own = [finding for finding in findings if finding.model == model]
        if model in overall:
            own = [finding for finding in own if finding.kind != "accuracy"]  # these are of the originals alone
            merged += [_accuracy(overall[model], rows), *_attributes(model, rows)]
        merged += own
    return [*merged, *(finding for finding in findings if not finding.model)]


def _accuracy(row: GroupAccuracy, rows: Sequence[GroupAccuracy]) -> Finding:
    """The accuracy, with that on the originals, or where there are none, with the top-5 accuracy."""
    pictures = pluralize(row.top1.n, "picture") if row.photos == row.top1.n else _counted(row)
    sentence = f"right on {_rate(row.top1)} of the {pictures}"
    before = [other for other in rows if other.model == row.model and other.attribute == "original"]
    qualified = [
        f"on {_rate(other.top1)} of the unedited photos (n = {format_count(other.photos)})" for other in before[:1]
    ]
    if not before and row.top5.n:
        qualified = [f"the truth is among its five best answers on {_rate(row.top5)}"]
    return Finding(model=row.model, kind="accuracy", text=f"{'; '.join([f'{row.model} is {sentence}', *qualified])}.")


def _attributes(model: str, rows: Sequence[GroupAccuracy]) -> list[Finding]:
    """Accuracy by whole attribute: a mined set spreads few photos over many edits and levels."""
    whole = sorted((row for row in whole_attributes(rows) if row.model == model), key=lambda row: row.top1.value)
    enough = [row for row in whole if row.photos >= FEWEST_PHOTOS]
    few = join_words([f"{name_attribute(row.attribute)} ({row.photos})" for row in whole if row not in enough])
    if len(whole) < 2 or not enough:
        return []
    lines = [(name_attribute(row.attribute), f"{_rate(row.top1)} of {_counted(row)}") for row in enough]
    lines += [("too few photos:", few)] if few else []
    text = f"{_HEADING}: {'; '.join(f'{name} {words}' for name, words in lines)}."
    return [Finding(model=model, kind="by_attribute", text=text)]


def _counted(row: GroupAccuracy) -> str:
    return f"{pluralize(row.top1.n, 'picture')} ({pluralize(row.photos, 'photo')})"


def _rate(rate: Estimate) -> str:
    return f"{format_number(rate.value)} % {format_interval(rate)}"


def _lowest(rows: Sequence[GroupAccuracy], model: str) -> list[Finding]:
    """The kind of picture with a model's lowest accuracy, as far as the intervals tell."""
    kinds = [row for row in divide_pictures(rows) if row.model == model and row.photos >= FEWEST_PHOTOS]
    if len(kinds) < 2:
        return []
    lowest, *others = sorted(kinds, key=lambda row: row.top1.value)
    near = [row for row in others if row.top1.ci_low <= lowest.top1.ci_high]
    text = f"Lowest on {kind_name(lowest)}: {_rate(lowest.top1)} (n = {format_count(lowest.top1.n)})"
    if near:
        names = [kind_name(row) for row in near]
        text += f"; {join_words(names) if len(near) <= _MOST_NAMED else f'{len(near)} other kinds'} may be as low"
    return [Finding(model=model, kind="weakest", text=f"{text}.")]


def divide_pictures(rows: Sequence[GroupAccuracy]) -> list[GroupAccuracy]:
    """The coarsest division of the pictures with more than one part: by attribute, by edit, by level."""
    telling = [row for row in rows if not row.overall and row.attribute not in NO_ATTRIBUTE]
    if len({row.attribute for row in telling}) > 1:
        return whole_attributes(rows)
    edits = {row.edit for row in telling if row.edit != ALL}
    if len(edits) > 1:
        return [row for row in telling if row.edit != ALL and (row.level == ALL) == _divided(telling, row.edit)]
    return [row for row in telling if row.level != ALL]


def whole_attributes(rows: Sequence[GroupAccuracy]) -> list[GroupAccuracy]:
    """Every attribute as a whole, for each model: its first group, since rows go from coarse to fine."""
    telling = [row for row in rows if not row.overall and row.attribute not in NO_ATTRIBUTE]
    first: dict[str, tuple[str, str]] = {}
    for row in telling:
        first.setdefault(row.attribute, (row.edit, row.level))
    return [row for row in telling if (row.edit, row.level) == first[row.attribute]]


def _divided(rows: Sequence[GroupAccuracy], edit: str) -> bool:
    return any(row.edit == edit and row.level == ALL for row in rows)


def kind_name(row: GroupAccuracy) -> str:
    """The readable name of a kind of picture."""
    if row.edit == ALL:
        return name_attribute(row.attribute)
    return row.edit if row.level in (ALL, "", row.edit) else f"{row.edit} {row.level}"


def _compare_models(overall: Sequence[GroupAccuracy], surrogates: Sequence[str]) -> list[Finding]:
    judged = sorted((row for row in overall if row.model not in surrogates), key=lambda row: -row.top1.value)
    left_out = " Surrogates are left out of this comparison." if len(judged) < len(overall) else ""
    if len(judged) < 2:
        return []
    best, *others = judged
    clear = [row for row in others if not set(row.letters) & set(best.letters)]
    if not clear:
        text = "The pictures do not tell the models apart overall."
        return [Finding(model="", kind="models", text=text + left_out)]
    tied = [row.model for row in others if row not in clear]
    text = f"Overall {best.model} is right more often than {join_words([row.model for row in clear])}"
    rates = join_words([f"{format_number(row.top1.value)} %" for row in clear])
    text += f" ({format_number(best.top1.value)} % against {rates})"
    text += f"; it cannot be told apart from {join_words(tied)}" if tied else ""
    return [Finding(model="", kind="models", text=f"{text}.{left_out}")]


def write_headline(study: Study | ReportContent) -> tuple[Finding, ...]:
    """Return the findings of each model, surrogates marked first, then the differences between models."""
    surrogates = find_surrogates(study.run)
    if study.accuracies and not any(row.n for row in study.drops):
        findings = describe_accuracies(study.accuracies, surrogates)
    else:
        findings = describe_drops(make_drop_table(study))
        findings += [] if study.accuracies else compare_models(*_judged_only(study))
        findings = with_accuracies(findings, study.accuracies)
    return tuple(_with_surrogates(findings, surrogates))


def make_drop_table(study: Study | ReportContent) -> DropTable:
    """Return what the sentences on drops are made of."""
    return DropTable(
        drops=study.drops,
        verdicts=study.verdicts,
        accuracies=study.overall_accuracies,
        detectable_drops=study.detectable_drops,
        background_answers=study.background_answers,
        judgements=study.judgements,
    )


def _judged_only(study: Study | ReportContent) -> tuple[list[GroupAccuracy], list[Contrast]]:
    """The accuracies on edited pictures and the differences of models that are judged."""
    unjudged = {model for model, judgement in study.judgements.items() if not judgement.is_judged}
    edited = [row for row in study.edited_accuracies if row.model not in unjudged]
    return edited, [row for row in study.attribute_differences if unjudged.isdisjoint((row.first, row.second))]


def _with_surrogates(findings: Sequence[Finding], surrogates: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings with each surrogate marked before the first that concerns it or all models."""
    unmarked = list(surrogates)
    for finding in findings:
        due = [model for model in unmarked if finding.model in ("", model)]
        yield from map(_surrogate_finding, due)
        unmarked = [model for model in unmarked if model not in due]
        yield finding
    yield from map(_surrogate_finding, unmarked)


def _surrogate_finding(model: str) -> Finding:
    return Finding(model=model, kind="surrogate", text=f"{model} – {SURROGATE_MEANING}.")
