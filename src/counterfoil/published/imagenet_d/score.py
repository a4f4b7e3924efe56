"""ImageNet-D's tables: classifiers, zero-shot models and two-choice questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from counterfoil.published.archive import ArchiveCondition
from counterfoil.published.condition_scores import Scores, collect_notes, present_kinds, score_top1, score_top5
from counterfoil.published.imagenet_d.reader import KINDS
from counterfoil.report.content import PaperTable
from counterfoil.study.runs import Study

_ZERO_SHOT = ("open_clip:", "clip-hf:")
_ASKED = "vlm:"
_RULES = {
    "classifiers": (
        "The arg-max over all of a model's columns, 1,000 for ImageNet's, is right if it is any of the category's ids;"
        " top-5 counts a category once, however many of its ids are among the five best."
    ),
    "zero-shot": (
        'The arg-max over the 113 categories, each described by the prompt "A photo of a {c}" unless the run gave'
        " another (--template), is right or wrong."
    ),
    "subset": (
        "The arg-max over the columns of the 113 categories alone is right if it is any of the category's ids; the"
        " paper lets all columns compete."
    ),
}


def tables(study: Study) -> Sequence[PaperTable]:
    """Return one table for each way in which the run's models answer."""
    by_rule: dict[str, list[str]] = {}
    for model in study.files:
        by_rule.setdefault(_rule(study, model), []).append(model)
    return [
        _questions(study, models) if rule == "questions" else _accuracies(study, rule, models)
        for rule, models in by_rule.items()
    ]


def _rule(study: Study, model: str) -> str:
    if model.startswith(_ASKED):
        return "questions"
    if model.startswith(_ZERO_SHOT):
        return "zero-shot"
    return "subset" if study.run.scoring.startswith("subset") else "classifiers"


def _accuracies(study: Study, rule: str, models: Sequence[str]) -> PaperTable:
    kinds = present_kinds(study, KINDS)
    best, among = score_top1(study), score_top5(study)
    columns = ("model", *_columns("top-1", kinds), *_columns("top-5", kinds), "pictures")
    rows = [
        (model, *_cells(best, model, kinds), *_cells(among, model, kinds), float(best.count(model))) for model in models
    ]
    return PaperTable(
        title=f"ImageNet-D, {rule}",
        rule=_RULES[rule],
        columns=columns,
        rows=tuple(rows),
        footnotes=collect_notes(study),
    )


def _questions(study: Study, models: Sequence[str]) -> PaperTable:
    kinds = present_kinds(study, KINDS)
    scores = score_top1(study)
    outcomes = {model: Counter(study.predictions[model].outcomes) for model in models}
    ends = sorted({end for counts in outcomes.values() for end in counts})
    rows = [
        (
            model, _order(model), *_cells(scores, model, kinds), float(scores.count(model)),
            *(float(outcomes[model][end]) for end in ends),
        )
        for model in models
    ]  # fmt: skip
    return PaperTable(
        title="ImageNet-D, two-choice questions",
        rule="The truth and a wrong category are offered; an answer that names only the truth is right, only the other"
        " wrong, both or neither unparsed and left out. Wrong categories come from the archive's questions, which took"
        " CLIP's best wrong answer. The release always offers the truth first, which favours models that repeat the"
        " first choice: drawn order is the default here.",
        columns=("model", "order", *_columns("right", kinds), "scored", *ends),
        rows=tuple(rows),
        footnotes=collect_notes(study),
    )


def _order(model: str) -> str:
    return "truth first, as released" if "order=faithful" in model else "drawn"


def _columns(what: str, kinds: dict[str, ArchiveCondition]) -> list[str]:
    return [*(f"{what}, {name}" for name in kinds), f"{what}, all"]


def _cells(scores: Scores, model: str, kinds: dict[str, ArchiveCondition]) -> list[float | None]:
    return [*(scores.accuracy(model, [kind]) for kind in kinds.values()), scores.accuracy(model)]
