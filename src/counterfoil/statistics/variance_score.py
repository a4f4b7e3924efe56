"""XImageNet-12's variance score S over scenarios and classes, its interval, and the Shapiro-Wilk test."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.plugins import import_extra
from counterfoil.statistics.answers import Condition, Details
from counterfoil.statistics.intervals import RESAMPLES, Estimate, percentile_interval, resample_counts

NOISE_OF_S = (
    "The accuracies of few photos vary by chance, which lowers S; without that noise it lies, with 95 % confidence,"
    " within the interval, which may not hold S itself."
)
NO_SCENARIO = frozenset({"control", "presence"})  # the original is a scenario, the tool's own control is not
_MOST_DRAWS, _FEWEST_RESAMPLES = 1 << 24, 400  # photos drawn in all resamples together: tens of thousands need fewer
_AT_ONCE = 20  # resamples at once, to limit memory with thousands of photos in dozens of scenarios


@dataclass(frozen=True)
class ScoreDefinition:
    """One reading of the score; the paper does not say which is meant."""

    spread: Literal["variance", "deviation"] = "variance"
    divisor: Literal["population", "sample"] = "population"
    classes: Literal["within", "overall"] = "within"  # spread over classes in each scenario, or of the classes' means

    @property
    def name(self) -> str:
        """The definition in words, as in the report."""
        where = "within each scenario, averaged" if self.classes == "within" else "of their means over scenarios"
        kind = "variance" if self.spread == "variance" else "standard deviation"
        return f"S = 1 - (sigma_i + sigma_e), {self.divisor} {kind}, over classes {where}"


SCORE_DEFINITIONS: tuple[ScoreDefinition, ...] = tuple(
    ScoreDefinition(*choice)  # type: ignore[arg-type]
    for choice in itertools.product(("variance", "deviation"), ("population", "sample"), ("within", "overall"))
)


class VarianceScore(NamedTuple):
    """The score with its two parts; accuracies are shares, so S is at most 1."""

    score: float
    sigma_classes: float  # sigma_i
    sigma_scenarios: float  # sigma_e


class ShapiroWilk(NamedTuple):
    """The Shapiro-Wilk test: a small p says that the numbers are not normal, and S is then of little use."""

    statistic: float
    p_value: float
    n: int


class ScenarioAccuracies(NamedTuple):
    """One model's answers over the photos that are in every scenario."""

    scenarios: tuple[Condition, ...]
    accuracies: NDArray[np.float64]  # (scenarios, classes), shares
    correct: NDArray[np.float64]  # (scenarios, photos), mean over replicates
    label: NDArray[np.intp]  # (photos,)


def scenario_accuracies(details: Details, model: str) -> ScenarioAccuracies:
    """Accuracies by scenario and class, over the photos that were answered in every scenario."""
    answers = details.answers
    chosen = np.flatnonzero(~answers.conditions_of(NO_SCENARIO))
    rates = answers.rates[answers.model_index(model), chosen]
    whole = np.isfinite(rates).all(axis=0)
    if not whole.any() or not len(chosen):
        raise UserError(f"expected photos answered in every scenario, got none of {model}")
    label = details.photo_labels[whole]
    scenarios = tuple(answers.conditions[c] for c in chosen)
    return ScenarioAccuracies(scenarios, class_accuracies(rates[:, whole], label), rates[:, whole], label)


def model_variance_score(
    details: Details, model: str, rng: np.random.Generator, *, definition: ScoreDefinition | None = None
) -> tuple[VarianceScore, Estimate]:
    """XImageNet-12's score of one model, and what it would be without the noise of the photos, with its interval."""
    table = scenario_accuracies(details, model)
    score = variance_score(table.accuracies, definition)
    resamples = max(_FEWEST_RESAMPLES, min(RESAMPLES, _MOST_DRAWS // len(table.label)))
    return score, estimate_variance_score(table.correct, table.label, rng, definition=definition, resamples=resamples)


def variance_score(accuracies: NDArray[np.float64], definition: ScoreDefinition | None = None) -> VarianceScore:
    """The score of accuracies (scenarios, classes), as shares."""
    classes, scenarios = _parts(accuracies[None], definition or ScoreDefinition())
    return VarianceScore(float(1 - classes[0] - scenarios[0]), float(classes[0]), float(scenarios[0]))


def estimate_variance_score(
    correct: NDArray[np.float64],
    label: NDArray[np.intp],
    rng: np.random.Generator,
    *,
    definition: ScoreDefinition | None = None,
    resamples: int = RESAMPLES,
) -> Estimate:
    """S as it would be with endless photos of these classes, with its interval; `correct` is (scenarios, photos).

    The accuracies of a few photos vary by chance, which lowers S: what resampling them within their class lowers it by
    once more is added back, and the spread of the resamples gives the interval. A standard deviation is no sum of such
    parts, and its interval would not hold: NaN.
    """
    definition = definition or ScoreDefinition()
    value = variance_score(class_accuracies(correct, label), definition).score
    if definition.spread != "variance":
        return Estimate(math.nan, math.nan, math.nan, len(label))
    sizes = np.unique(label, return_counts=True)[1]
    seen = float(((sizes - 1) / sizes**2).sum())  # resampled photos of a class vary by (n - 1) / n of what photos do
    if seen == 0.0:
        return Estimate(math.nan, math.nan, math.nan, len(label))
    missed = float((1 / sizes).sum()) / seen
    counts = resample_counts(len(label), rng, resamples=resamples, strata=label)
    scores = _resample_scores(correct, label, counts, definition)
    clean = value + missed * (value - float(scores.mean()))
    low, high = percentile_interval(math.sqrt(missed) * (scores - scores.mean()))
    return Estimate(min(1.0, clean), clean - high, min(1.0, clean - low), len(label))


def _resample_scores(
    correct: NDArray[np.float64],
    label: NDArray[np.intp],
    counts: NDArray[np.float64],
    definition: ScoreDefinition,
) -> NDArray[np.float64]:
    """S of every resample."""
    order = np.argsort(label, kind="stable")
    starts = np.unique(label[order], return_index=True)[1]
    sizes = np.diff(np.append(starts, len(label)))
    scores = []
    for few in np.array_split(counts[:, order], -(-len(counts) // _AT_ONCE)):
        right = np.add.reduceat(few[:, None, :] * correct[:, order], starts, axis=2)  # (few, scenarios, classes)
        classes, scenarios = _parts(right / sizes, definition)
        scores.append(1 - classes - scenarios)
    return np.concatenate(scores)


def class_accuracies(correct: NDArray[np.float64], label: NDArray[np.intp]) -> NDArray[np.float64]:
    """Accuracies (scenarios, classes) from answers (scenarios, photos) and each photo's class."""
    return np.stack([correct[:, label == value].mean(axis=1) for value in np.unique(label)], axis=1)


def shapiro_wilk(accuracies: NDArray[np.float64]) -> ShapiroWilk:
    """Test whether accuracies could come from a normal distribution (Shapiro-Wilk)."""
    values = accuracies.ravel()
    if len(values) < 3 or np.ptp(values) == 0:
        raise UserError(f"expected three accuracies at least that are not all the same, got {len(values)}")
    result = import_extra("scipy.stats", "stats").shapiro(values)
    return ShapiroWilk(float(result.statistic), float(result.pvalue), len(values))


def _parts(
    accuracies: NDArray[np.float64], definition: ScoreDefinition
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """sigma_i and sigma_e of tables (tables, scenarios, classes)."""
    scenarios = _spread(accuracies.mean(axis=2), definition)
    if definition.classes == "overall":
        return _spread(accuracies.mean(axis=1), definition), scenarios
    within: NDArray[np.float64] = _spread(accuracies, definition).mean(axis=1)
    return within, scenarios


def _spread(values: NDArray[np.float64], definition: ScoreDefinition) -> NDArray[np.float64]:
    """Spread over the last axis; NaN for the sample spread of a single number."""
    n = values.shape[-1]
    gaps = values - values.mean(axis=-1, keepdims=True)
    divisor = n if definition.divisor == "population" else (n - 1 or np.nan)
    variance: NDArray[np.float64] = (gaps**2).sum(axis=-1) / divisor
    return variance if definition.spread == "variance" else np.sqrt(variance)
