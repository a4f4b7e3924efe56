"""XImageNet-12's tables: accuracies by scenario and over folds, the variance score, the regression."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import ximagenet12
from counterfoil.published.archive import ArchiveCondition
from counterfoil.published.condition_scores import collect_notes, drop_empty, score_top1
from counterfoil.published.ximagenet_12.reader import KINDS
from counterfoil.report.content import PaperTable
from counterfoil.statistics.accuracy import FoldAccuracy, fold_accuracy, stratified_folds
from counterfoil.statistics.answers import Condition, Details
from counterfoil.statistics.regression import Coefficient, Regression, regress_accuracy, regress_pictures
from counterfoil.statistics.variance_score import (
    NOISE_OF_S,
    SCORE_DEFINITIONS,
    model_variance_score,
    scenario_accuracies,
    shapiro_wilk,
    variance_score,
)
from counterfoil.study.predictions import DETAIL_COLUMNS, details_from_tables
from counterfoil.study.runs import Study

FOLDS = 12
COLUMNS = {  # the paper's columns, by folder; others keep their folder's name
    "image": "original", "blur_background": "blur_bg", "blur_object": "blur_obj", "image_r": "color_r",
    "image_g": "color_g", "image_b": "color_b", "segmented_image": "seg_img",
}  # fmt: skip
_SEED = 0
_REGRESSION = "XImageNet-12, regression"
_REGRESSION_RULE = (
    "Accuracy in percent of each model, scenario and class by ordinary least squares on the three as factors; sums of"
    " squares of type II, and their share of the whole. Least squares treats the accuracies as independent, although"
    " the same photos are in every scenario; the last column does not."
)


def tables(study: Study) -> Sequence[PaperTable]:
    """Return accuracies by scenario, the same cross-validated, the score, and the regression with its coefficients."""
    details = details_from_tables({model: table.columns(DETAIL_COLUMNS) for model, table in study.predictions.items()})
    parts = [_accuracies(study), _cross_validated(study, details), _scores(study, details)]
    return [*parts, *_regression(study, details)]


def _scenarios(study: Study) -> dict[str, ArchiveCondition]:
    """The scenarios that the run has, by the paper's names."""
    folder_of = {kind: folder for folder, kind in KINDS.items()}
    kinds = [ArchiveCondition(*condition) for condition in study.answers.conditions]
    named = {kind: folder_of.get(kind, kind.edit) for kind in kinds}
    return {COLUMNS.get(name, name): kind for kind, name in named.items()}


def _accuracies(study: Study) -> PaperTable:
    scores, scenarios = score_top1(study), _scenarios(study)
    rows = [
        (model, *(scores.accuracy(model, [kind]) for kind in scenarios.values()), scores.accuracy(model))
        for model in study.files
    ]
    return PaperTable(
        title="XImageNet-12, accuracy by scenario",
        rule=f"Top-1 in percent; {_competing(study)}.",
        columns=("model", *scenarios, "all pictures"),
        rows=tuple(rows),
        footnotes=collect_notes(study),
    )


def _competing(study: Study) -> str:
    if study.run.scoring.startswith("subset"):
        return "only the columns of the twelve classes compete"
    return "all of a model's columns compete"


def _cross_validated(study: Study, details: Details) -> PaperTable:
    scenarios = _scenarios(study)
    rows = []
    for model in study.files:
        folds = [_folds(details, model, kind) for kind in scenarios.values()]
        rows.append((model, *(cell for fold in folds for cell in _cells(fold))))
    return PaperTable(
        title=f"XImageNet-12, {FOLDS}-fold",
        rule=f"Mean and sample deviation of top-1 over {FOLDS} parts of the pictures, every class spread evenly over"
        " them."
        " No model is trained between the parts, so the mean is the plain accuracy up to the parts' sizes.",
        columns=("model", *(f"{what}, {name}" for name in scenarios for what in ("folds mean", "folds deviation"))),
        rows=tuple(rows),
        footnotes=drop_empty(_too_few(details, scenarios)),
        decimals=2,
    )


def _folds(details: Details, model: str, kind: ArchiveCondition) -> FoldAccuracy | None:
    """The accuracy over the folds; None where there are fewer pictures than folds."""
    right, label = _right(details, model, kind)
    if len(right) < FOLDS:
        return None
    return fold_accuracy(right, stratified_folds(label, FOLDS, np.random.default_rng(_SEED)))


def _right(details: Details, model: str, kind: ArchiveCondition) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    answers = details.answers
    rates = answers.rates[answers.model_index(model)][answers.conditions.index(Condition(*kind))]
    known = np.isfinite(rates)
    return rates[known] > 0.5, details.photo_labels[known]


def _cells(folds: FoldAccuracy | None) -> tuple[float | None, float | None]:
    return (None, None) if folds is None else (folds.mean, folds.deviation)


def _too_few(details: Details, scenarios: dict[str, ArchiveCondition]) -> str:
    model = details.answers.models[0]
    small = [name for name, kind in scenarios.items() if len(_right(details, model, kind)[0]) < FOLDS]
    return f"Fewer than {FOLDS} pictures, so no parts: {', '.join(small)}." if small else ""


def _scores(study: Study, details: Details) -> PaperTable:
    rows: list[tuple[str | float | None, ...]] = []
    other: list[str] = []
    for model in study.files:
        try:
            score, clean = model_variance_score(details, model, np.random.default_rng(_SEED))
        except UserError:  # no photo is in every scenario: there is no score, and the table says so
            rows.append((model, *[None] * 6))
            continue
        parts = (score.sigma_classes, score.sigma_scenarios)
        rows.append((model, score.score, *(_known(value) for value in clean[:3]), *parts))
        other.append(f"{model}: {_readings(details, model)}")
    unknown = "" if other else "No photo is in every scenario, so there is no score."
    return PaperTable(
        title="XImageNet-12, robustness score",
        rule=f"{SCORE_DEFINITIONS[0].name}; accuracies as shares, over the photos that are in every scenario. The paper"
        f" leaves open which spread it means. {NOISE_OF_S}",
        columns=("model", "S", "S without noise", "low", "high", "sigma over classes", "sigma over scenarios"),
        rows=tuple(rows),
        footnotes=drop_empty(unknown, *other),
        decimals=4,
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _readings(details: Details, model: str) -> str:
    """How far apart the other readings of the definition lie."""
    table = scenario_accuracies(details, model).accuracies
    scores = [variance_score(table, definition).score for definition in SCORE_DEFINITIONS]
    known = [value for value in scores if not math.isnan(value)]
    spread = (
        f"the {len(SCORE_DEFINITIONS)} readings of the definition give S from {min(known):.4f} to {max(known):.4f}."
    )
    try:
        test = shapiro_wilk(table)
    except UserError:  # too few accuracies, or no scipy: the regression's table says how to install it
        return spread
    return (
        f"{spread} Shapiro and Wilk's test of its {test.n} accuracies by scenario and class: W = {test.statistic:.3f},"
        f" p = {test.p_value:.3g}; the smaller p, the less a score made of variances says."
    )


def _regression(study: Study, details: Details) -> Sequence[PaperTable]:
    """The share that each factor explains and the effect of each level; a line with the reason where there is none."""
    try:
        fit = regress_accuracy(details)
    except UserError as error:
        return [
            PaperTable(
                title=_REGRESSION,
                rule=_REGRESSION_RULE,
                columns=("factor",),
                rows=(),
                footnotes=(f"No regression: {error}.",),
            )
        ]
    names = {f"{kind.edit} {kind.level}": name for name, kind in _scenarios(study).items()}
    names |= {label: ximagenet12().name_of(label) for label in ximagenet12().labels}
    clustered, why = _clustered(details)
    rows = [
        (row.name, float(row.degrees), row.sum_of_squares, row.statistic, row.p_value, 100 * row.share,
         clustered.get(row.name))
        for row in fit.factors
    ]  # fmt: skip
    columns = ("factor", "degrees of freedom", "sum of squares", "F", "p", "share of variance", "p, clustered by photo")
    return [
        PaperTable(
            title=_REGRESSION,
            rule=_REGRESSION_RULE,
            columns=columns,
            rows=tuple(rows),
            footnotes=drop_empty(_whole(fit), why),
            decimals=4,
        ),
        _coefficients(fit, names),
    ]


def _clustered(details: Details) -> tuple[dict[str, float], str]:
    """The p value of each factor with pictures clustered by photo, or why there is none."""
    try:
        fit = regress_pictures(details)
    except UserError as error:
        return {}, f"No p clustered by photo: {error}."
    return {row.name: row.p_value for row in fit.factors}, (
        f"Clustered by photo: logistic model of {fit.n:,} single pictures of {fit.clusters:,} photos, without class."
    )


def _whole(fit: Regression) -> str:
    return (
        f"All factors together, over {fit.n:,} accuracies: F = {fit.statistic:.4g}, p = {fit.p_value:.3g},"
        f" R2 = {fit.r_squared:.4f}."
    )


def _coefficients(fit: Regression, names: dict[str, str]) -> PaperTable:
    def line(row: Coefficient) -> tuple[str | float | None, ...]:
        return (row.factor, names.get(row.level, row.level), row.value, row.ci_low, row.ci_high, row.p_value)

    first = ", ".join(f"{row.name} {names.get(row.reference, row.reference)}" for row in fit.factors)
    return PaperTable(
        title=f"{_REGRESSION}, coefficients",
        rule=f"Points of accuracy that a level adds to the first of its factor ({first}), with 95 % intervals.",
        columns=("factor", "level", "points", "points, low", "points, high", "p"),
        rows=tuple(line(row) for row in fit.coefficients),
        decimals=3,
    )
