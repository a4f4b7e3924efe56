"""XImageNet-12's measures on any run: the score S, its normality, cross-validation, the regression, other measures."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from counterfoil.analysis.evidence import (
    SEED,
    Evidence,
    MeasuredNumber,
    NotJudged,
    Reply,
    join_clauses,
    measured,
    name_condition,
    replace_value,
)
from counterfoil.errors import UserError
from counterfoil.report.words import format_number, format_p_value, join_words
from counterfoil.statistics.accuracy import fold_accuracy, stratified_folds
from counterfoil.statistics.drops import mean_drops
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.rank_correlation import FEWEST_MODELS, correlate_ranks
from counterfoil.statistics.regression import Regression, regress_accuracy, regress_pictures
from counterfoil.statistics.significance import SIGNIFICANCE
from counterfoil.statistics.variance_score import (
    NO_SCENARIO,
    NOISE_OF_S,
    SCORE_DEFINITIONS,
    model_variance_score,
    scenario_accuracies,
    shapiro_wilk,
    variance_score,
)

FOLDS = 12
_MOST_CLASSES = 200  # as a factor of the regression; with more, there is a coefficient for every few photos


def _scenarios(evidence: Evidence) -> int:
    return int((~evidence.answers.conditions_of(NO_SCENARIO)).sum())


def _require_scenarios(evidence: Evidence) -> None:
    evidence.require_classes(2)
    if _scenarios(evidence) < 2:
        raise NotJudged("two scenarios at least, the original is one", "add an edit to the recipe, or a condition")
    evidence.require_photos_per_class()


def ask_variance_score(evidence: Evidence) -> Reply:
    """The score S of every model."""
    _require_scenarios(evidence)
    definition = evidence.options.definition
    by_model = {model: _score_model(evidence, model) for model in evidence.models}
    listed = "; ".join(f"{model} {own.text}{_describe_clean(clean)}" for model, (own, clean, *_) in by_model.items())
    return Reply(
        answer=f"S is {listed} (at most 1; {_scenarios(evidence)} scenarios, {evidence.classes} classes)."
        f"{_describe_order({model: numbers[1] for model, numbers in by_model.items()})}",
        numbers=tuple(number for numbers in by_model.values() for number in numbers),
        notes=(
            f"{definition.name}; accuracies as shares, over the photos that are in every scenario. The paper leaves"
            " open which spread it means: lowest and highest reading are over all eight combinations of variance or"
            " deviation, population or sample, spread within scenarios or of means.",
            "S does not look at accuracy: a model that is always wrong has S = 1. Read it beside the accuracies.",
            f"{NOISE_OF_S} Photos are resampled within their class. For standard deviations there is no interval.",
        ),
    )


def _score_model(evidence: Evidence, model: str) -> list[MeasuredNumber]:
    """S of one model, its two parts, and the lowest and highest of its readings."""
    rng = np.random.default_rng(SEED)
    try:
        score, clean = model_variance_score(evidence.details, model, rng, definition=evidence.options.definition)
    except UserError as error:
        raise NotJudged("photos that are answered in every scenario", str(error)) from error
    table = scenario_accuracies(evidence.details, model)
    readings = [variance_score(table.accuracies, reading).score for reading in SCORE_DEFINITIONS]
    without = measured("S without the noise of the photos", model, clean, "", decimals=4)
    own = replace_value(without, "S", score.score)
    others = {
        "sigma over classes": score.sigma_classes,
        "sigma over scenarios": score.sigma_scenarios,
        "S, lowest reading": float(np.nanmin(readings)),
        "S, highest reading": float(np.nanmax(readings)),
    }
    return [own, without, *(replace_value(own, name, value) for name, value in others.items())]


def _describe_clean(clean: MeasuredNumber) -> str:
    return "" if math.isnan(clean.value) else f", without the noise of the photos {clean.text}"


def _describe_order(scores: Mapping[str, MeasuredNumber]) -> str:
    """Which model has the highest score without noise, and which intervals overlap with its own."""
    if len(scores) == 1 or any(math.isnan(own.value) for own in scores.values()):
        return ""
    best = max(scores, key=lambda model: scores[model].value)
    ties = [model for model in scores if model != best and scores[model].high >= scores[best].low]
    if ties:
        return f" Without the noise {best} has the highest; the intervals of {join_words(ties)} overlap with its own."
    return f" Without the noise {best} has the highest, beyond the intervals of the others."


def ask_normality(evidence: Evidence) -> Reply:
    """Shapiro and Wilk's test of the accuracies that S is made of."""
    _require_scenarios(evidence)
    numbers: list[MeasuredNumber] = []
    rejected = []
    for model in evidence.models:
        try:
            test = shapiro_wilk(scenario_accuracies(evidence.details, model).accuracies)
        except UserError as error:
            raise NotJudged("accuracies that vary, and scipy for the test", str(error)) from error
        numbers += [
            MeasuredNumber("W", model, test.statistic, n=test.n, of="accuracies", decimals=3),
            MeasuredNumber("p", model, test.p_value, n=test.n, of="accuracies", unit="p"),
        ]
        rejected += [model] if test.p_value < SIGNIFICANCE else []
    cells = numbers[0].n
    others = [model for model in evidence.models if model not in rejected]
    clauses = [
        f"not for {join_words(rejected)}: Shapiro and Wilk's test rejects normality (p < {SIGNIFICANCE:g})"
        if rejected
        else "",
        f"nothing speaks against it for {join_words(others)}" if others else "",
    ]
    return Reply(
        answer=f"{join_clauses(*clauses)[:-1]}, over {cells} accuracies by scenario and class.",
        numbers=tuple(numbers),
        notes=(
            "Shapiro and Wilk's test. The accuracies share photos between scenarios and are not independent, so that"
            " p is a guide. With hundreds of accuracies the test rejects small deviations that matter little; with a"
            " dozen it sees only large ones.",
        ),
    )


def ask_folds(evidence: Evidence) -> Reply:
    """Mean and deviation of the accuracy over twelve folds, for every model and condition."""
    details, answers = evidence.details, evidence.answers
    photos = len(answers.samples)
    if photos < 2 * FOLDS:
        raise NotJudged(f"{2 * FOLDS} photos for {FOLDS} folds of two, got {photos}", f"add {2 * FOLDS - photos}")
    numbers = []
    widest = (0.0, "")
    for m, model in enumerate(answers.models):
        for c, condition in enumerate(answers.conditions):
            rates = answers.rates[m, c]
            known = np.isfinite(rates)
            if known.sum() < 2 * FOLDS:
                continue
            label = details.photo_labels[known]
            row = fold_accuracy(rates[known], stratified_folds(label, FOLDS, np.random.default_rng(SEED)))
            name = name_condition(condition)
            numbers.append(
                MeasuredNumber(f"accuracy over folds, {name}", model, row.mean, n=int(known.sum()), unit="percent")
            )
            numbers.append(
                MeasuredNumber(f"deviation of folds, {name}", model, row.deviation, n=FOLDS, of="folds", unit="points")
            )
            widest = max(widest, (row.deviation, f"{model}, {name}"))
    if not numbers:
        raise NotJudged(f"{2 * FOLDS} answered photos in a condition", "add photos")
    return Reply(
        answer=f"Over {FOLDS} folds the accuracy of a condition deviates by {format_number(widest[0])} points at most"
        f" ({widest[1]}); no model is trained between folds, so the mean is the plain accuracy up to the folds' sizes.",
        numbers=tuple(numbers),
        notes=(
            "Sample deviation over folds that hold every class evenly. A fold has a twelfth of the photos: the"
            " deviation of the whole set's accuracy is about the square root of 12 smaller.",
        ),
    )


def ask_regression(evidence: Evidence) -> Reply:
    """Accuracy on model, scenario and class as factors."""
    _require_scenarios(evidence)
    if evidence.classes > _MOST_CLASSES:
        raise NotJudged(
            f"at most {_MOST_CLASSES} classes as a factor, got {evidence.classes:,}", "run it on some of the classes"
        )
    try:
        fit = regress_accuracy(evidence.details)
    except UserError as error:
        raise NotJudged("accuracies that vary with two factors at least", str(error)) from error
    clustered, note = _cluster(evidence)
    numbers = _list_factors(fit, clustered)
    return Reply(
        answer=_describe_shares(fit),
        numbers=tuple(numbers),
        notes=(
            "Ordinary least squares of the accuracy, in percent, of every model, scenario and class; sums of squares of"
            " type II and their share of the whole; coefficients against the first level of a factor.",
            "Least squares treats the accuracies as independent, although the same photos are in every scenario; the p"
            f" clustered by photo does not. {note}",
        ),
    )


def _list_factors(fit: Regression, clustered: Mapping[str, float]) -> list[MeasuredNumber]:
    """R2 and F of the whole, then each factor's share, F and p, then the coefficients of model and scenario."""
    whole = MeasuredNumber("R2", "", fit.r_squared, n=fit.n, of="accuracies", decimals=3)
    numbers = [
        whole,
        MeasuredNumber("F of all factors", "", fit.statistic, n=fit.n, of="accuracies"),
        MeasuredNumber("p of all factors", "", fit.p_value, n=fit.n, of="accuracies", unit="p"),
    ]
    for factor in fit.factors:
        share = f"share of variance, {factor.name}"
        numbers += [
            MeasuredNumber(share, "", 100 * factor.share, n=fit.n, of="accuracies", unit="percent"),
            MeasuredNumber(f"F, {factor.name}", "", factor.statistic, n=fit.n, of="accuracies"),
            MeasuredNumber(f"p, {factor.name}", "", factor.p_value, n=fit.n, of="accuracies", unit="p"),
        ]
        if factor.name in clustered:
            numbers.append(MeasuredNumber(f"p clustered by photo, {factor.name}", "", clustered[factor.name], unit="p"))
    coefficients = [row for row in fit.coefficients if row.factor != "class"]
    return numbers + [
        measured(
            f"{row.factor} {row.level}", "", Estimate(row.value, row.ci_low, row.ci_high, fit.n), "points",
            of="accuracies",
        )
        for row in coefficients
    ]  # fmt: skip


def _cluster(evidence: Evidence) -> tuple[dict[str, float], str]:
    try:
        fit = regress_pictures(evidence.details)
    except UserError as error:
        return {}, f"There is none here: {error}."
    return {row.name: row.p_value for row in fit.factors}, (
        f"It is from a logistic model of {fit.n:,} pictures of {fit.clusters:,} photos, without class."
    )


def _describe_shares(fit: Regression) -> str:
    rows = sorted(fit.factors, key=lambda row: -row.share)
    shares = ", ".join(
        f"{row.name} {format_number(100 * row.share)} % (F = {row.statistic:.3g}, p {format_p_value(row.p_value)})"
        for row in rows
    )
    return f"Of the variance of {fit.n:,} accuracies, {shares}; all together R2 = {fit.r_squared:.2f}."


def ask_other_measures(evidence: Evidence) -> Reply:
    """Rank correlation of S with the other measures of robustness, over the models."""
    evidence.require_models(FEWEST_MODELS, "for a rank correlation that can reach p < 0.05")
    _require_scenarios(evidence)
    evidence.require_originals()
    rng = np.random.default_rng(SEED)
    try:
        tables = [scenario_accuracies(evidence.details, model).accuracies for model in evidence.models]
    except UserError as error:
        raise NotJudged("photos that are answered in every scenario", str(error)) from error
    score = np.array([variance_score(table, evidence.options.definition).score for table in tables])
    numbers, words = [], []
    for name, values in _measures(evidence).items():
        row = correlate_ranks(score, values, rng)
        if math.isnan(row.rho):
            continue
        numbers += [
            MeasuredNumber(f"rho of S and {name}", "", row.rho, n=row.models, of="models", decimals=2),
            MeasuredNumber(f"p of S and {name}", "", row.p_value, n=row.models, of="models", unit="p"),
        ]
        words.append(f"{name} {format_number(row.rho, 2)} (p {format_p_value(row.p_value)})")
    if not numbers:
        raise NotJudged("measures that differ between the models", "add models of other accuracy")
    return Reply(
        answer=f"Spearman's rank correlation of S over {len(evidence.models)} models: with {join_words(words)}.",
        numbers=tuple(numbers),
        notes=(
            "p over all orders of the models. Measures are the accuracy on unedited photos, the mean accuracy under"
            " edits, the mean drop (sign turned, so that higher is more robust) and the worst condition's accuracy.",
        ),
    )


def _measures(evidence: Evidence) -> dict[str, NDArray[np.float64]]:
    """Each measure by model; higher is better for all."""
    answers = evidence.answers
    with np.errstate(invalid="ignore"):
        accuracies = np.nanmean(answers.rates[:, ~answers.conditions_of(NO_SCENARIO | {"original"})], axis=2)
    drops = mean_drops(answers, np.random.default_rng(SEED))
    return {
        "accuracy on unedited photos": np.nanmean(answers.original_rates, axis=1),
        "mean accuracy under edits": accuracies.mean(axis=1),
        "small mean drop": np.array([-row.drop.value for row in drops]),
        "accuracy under the worst condition": accuracies.min(axis=1),
    }
