"""All questions put to a run, and the answers as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil import __version__
from counterfoil.analysis.benchmark_questions import (
    ask_background_gap,
    ask_corruption_error,
    ask_effective_robustness,
    ask_error_ratios,
    ask_shape_bias,
)
from counterfoil.analysis.evidence import AnalysisOptions, Ask, Evidence, MeasuredNumber, NotJudged, Reply
from counterfoil.analysis.failure_questions import (
    ask_calibration,
    ask_error_consistency,
    ask_failure_modes,
    ask_other_classes,
    ask_set_biases,
)
from counterfoil.analysis.score_questions import (
    FOLDS,
    ask_folds,
    ask_normality,
    ask_other_measures,
    ask_regression,
    ask_variance_score,
)
from counterfoil.analysis.shared_failures import ask_surrogates, ask_transfer
from counterfoil.analysis.tool_questions import ask_controls, ask_natural_ground
from counterfoil.analysis.verification_questions import ask_agreement, ask_verification
from counterfoil.errors import UserError
from counterfoil.study.runs import Study, open_runs

SCHEMA = "counterfoil-analysis-1"


class RunQuestion(NamedTuple):
    """A question that runs are asked."""

    id: str
    origin: str  # the paper that leaves it open, or whose measure it is
    words: str
    ask: Ask


_OPEN_D, _OPEN_X = "open question of the ImageNet-D paper", "open question of the XImageNet-12 paper"
QUESTIONS = (  # the papers' open questions first, then measures
    RunQuestion(
        "transfer",
        _OPEN_D,
        "Do failures that models share transfer to other models, and to other families?",
        ask_transfer,
    ),
    RunQuestion("surrogates", _OPEN_D, "Does difficulty still rise with more than four surrogates?", ask_surrogates),
    RunQuestion(
        "failure-modes",
        _OPEN_D,
        "Are there systematic failure modes, such as naming the background's or the texture's class?",
        ask_failure_modes,
    ),
    RunQuestion("set-biases", _OPEN_D, "Is the set biased towards some classes or nuisances?", ask_set_biases),
    RunQuestion("normality", _OPEN_X, "Are the accuracies normal enough for a score made of variances?", ask_normality),
    RunQuestion("verification", _OPEN_D, "What does human verification change?", ask_verification),
    RunQuestion("annotator-agreement", _OPEN_D, "How far do annotators agree?", ask_agreement),
    RunQuestion(
        "score-and-other-measures",
        _OPEN_X,
        "How does the variance score relate to other measures of robustness?",
        ask_other_measures,
    ),
    RunQuestion("other-classes", _OPEN_X, "Do the findings carry over to other classes?", ask_other_classes),
    RunQuestion(
        "variance-score",
        "XImageNet-12",
        "How robust is each model by XImageNet-12's variance score S?",
        ask_variance_score,
    ),
    RunQuestion(
        "regression", "XImageNet-12", "How much of the accuracy do model, scenario and class explain?", ask_regression
    ),
    RunQuestion(
        "cross-validation", "XImageNet-12", f"How much do accuracies vary over {FOLDS} folds of the photos?", ask_folds
    ),
    RunQuestion("controls", "controls", "What do the controls cost, and which losses do they explain?", ask_controls),
    RunQuestion(
        "natural-ground",
        "controls",
        "Does an edit cost as much on another photo's background, without a fill of its own?",
        ask_natural_ground,
    ),
    RunQuestion(
        "background-gap",
        "ImageNet-9",
        "How much does a background of another class cost beyond one of the same class?",
        ask_background_gap,
    ),
    RunQuestion("corruption-error", "ImageNet-C", "How large is the mean corruption error?", ask_corruption_error),
    RunQuestion(
        "error-ratios",
        "ImageNet-X",
        "On which factors do the models err more often than on average?",
        ask_error_ratios,
    ),
    RunQuestion(
        "shape-bias",
        "cue conflict",
        "Where shape and texture disagree, which one do the models follow?",
        ask_shape_bias,
    ),
    RunQuestion(
        "effective-robustness",
        "effective robustness",
        "Which models are more robust than their accuracy on unedited photos suggests?",
        ask_effective_robustness,
    ),
    RunQuestion("calibration", "calibration", "Do the models know when an edit makes them wrong?", ask_calibration),
    RunQuestion(
        "error-consistency", "error consistency", "Do the models fail on the same pictures?", ask_error_consistency
    ),
)


@dataclass(frozen=True)
class QuestionAnswer:
    """A question with what the run replies, or what it would need."""

    question: RunQuestion
    reply: Reply
    judged: bool = True


@dataclass(frozen=True)
class Analysis:
    """The answers of a run to all questions, in the order of `QUESTIONS`."""

    study: Study
    answers: tuple[QuestionAnswer, ...]

    @property
    def judged(self) -> tuple[QuestionAnswer, ...]:
        """The questions that the run answers."""
        return tuple(answer for answer in self.answers if answer.judged)


def analyse_runs(
    folders: Sequence[str | Path], options: AnalysisOptions | None = None, names: Sequence[str] = ()
) -> Analysis:
    """Put every question to a finished run, or to several over the same pictures.

    Args:
        folders: Run folders, of `run`, `evaluate` or `import`.
        options: The reading of S, reference models, the workspace of people's verdicts.
        names: One per run, to tell equal models apart.

    Returns:
        An answer to every question, or what it would need.

    Raises:
        UserError: Where a folder is no run, holds no answer, or a file that was named cannot be read.
    """
    study = open_runs(folders, names)
    if not len(study.answers.samples):
        raise UserError(f"expected answers in {', '.join(map(str, folders))}, got none; see skipped.csv there")
    evidence = Evidence(study, options or AnalysisOptions())
    _ = evidence.baselines, evidence.workspace  # files that were named wrongly are said before the work
    return Analysis(study, tuple(_ask(question, evidence) for question in QUESTIONS))


def _ask(question: RunQuestion, evidence: Evidence) -> QuestionAnswer:
    try:
        return QuestionAnswer(question, question.ask(evidence))
    except NotJudged as reason:
        return QuestionAnswer(question, Reply(answer=str(reason)), judged=False)


def render_analysis_json(analysis: Analysis) -> dict[str, Any]:
    """The answers as JSON values, described by analysis.schema.json."""
    run = analysis.study.run
    return {
        "schema": SCHEMA,
        "counterfoil": __version__,
        "run": {
            "folders": [str(folder) for folder in analysis.study.folders],
            "collection": run.collection,
            "recipe": run.recipe,
            "models": list(analysis.study.predictions),
            "photos": len(analysis.study.answers.samples),
        },
        "questions": [
            {
                "id": row.question.id,
                "question": row.question.words,
                "origin": row.question.origin,
                "judged": row.judged,
                "answer": row.reply.answer,
                "numbers": [_plain(number) for number in row.reply.numbers],
                "notes": list(row.reply.notes),
            }
            for row in analysis.answers
        ],
    }


def _plain(number: MeasuredNumber) -> dict[str, Any]:
    """JSON has no NaN: an unknown number is null."""
    values = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in number._asdict().items()
    }
    return {key: value for key, value in values.items() if key != "decimals"}
