"""XImageNet-12's variance score S over scenarios and classes, its bootstrap interval, and the Shapiro-Wilk test."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.plugins import import_extra
from counterfoil.statistics.answers import Condition, Details
from counterfoil.statistics.intervals import RESAMPLES, Interval, percentile_interval, resample_counts

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
) -> tuple[VarianceScore, Interval]:
    """XImageNet-12's score of one model, with its bootstrap interval."""
    table = scenario_accuracies(details, model)
    score = variance_score(table.accuracies, definition)
    resamples = max(_FEWEST_RESAMPLES, min(RESAMPLES, _MOST_DRAWS // len(table.label)))
    return score, variance_score_interval(table.correct, table.label, rng, definition=definition, resamples=resamples)


def variance_score(accuracies: NDArray[np.float64], definition: ScoreDefinition | None = None) -> VarianceScore:
    """The score of accuracies (scenarios, classes), as shares."""
    classes, scenarios = _parts(accuracies[None], definition or ScoreDefinition())
    return VarianceScore(float(1 - classes[0] - scenarios[0]), float(classes[0]), float(scenarios[0]))


def variance_score_interval(
    correct: NDArray[np.float64],
    label: NDArray[np.intp],
    rng: np.random.Generator,
    *,
    definition: ScoreDefinition | None = None,
    resamples: int = RESAMPLES,
) -> Interval:
    """Percentile bootstrap of S: photos resampled within their class; `correct` is (scenarios, photos)."""
    order = np.argsort(label, kind="stable")
    starts = np.unique(label[order], return_index=True)[1]
    sizes = np.diff(np.append(starts, len(label)))
    counts = resample_counts(len(label), rng, resamples=resamples, strata=label)[:, order]
    scores = []
    for few in np.array_split(counts, -(-resamples // _AT_ONCE)):
        right = np.add.reduceat(few[:, None, :] * correct[:, order], starts, axis=2)  # (few, scenarios, classes)
        classes, scenarios = _parts(right / sizes, definition or ScoreDefinition())
        scores.append(1 - classes - scenarios)
    return percentile_interval(np.concatenate(scores))


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
