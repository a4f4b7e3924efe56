"""Accuracies by model, scenario and class: what the variance score and the regressions are made from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Condition, photo_rates, place_of
from counterfoil.analyse.details import Details, photo_labels
from counterfoil.analyse.paired import Interval
from counterfoil.analyse.regression import Regression, regress_accuracy, regress_pictures
from counterfoil.analyse.variance_score import (
    ScoreDefinition,
    VarianceScore,
    class_accuracies,
    variance_score,
    variance_score_interval,
)
from counterfoil.errors import UserError

NO_SCENARIO = frozenset({"control", "presence"})  # the original is a scenario, the tool's own control is none


class Cells(NamedTuple):
    """One model's answers where every photo has every scenario."""

    scenarios: tuple[Condition, ...]
    accuracies: NDArray[np.float64]  # (scenarios, classes), shares
    correct: NDArray[np.float64]  # (scenarios, photos), mean over replicates
    label: NDArray[np.intp]  # (photos,)


def cells(details: Details, model: str) -> Cells:
    """Accuracies by scenario and class, over the photos that were answered in every scenario."""
    answers = details.answers
    chosen = [c for c, condition in enumerate(answers.conditions) if condition.attribute not in NO_SCENARIO]
    rates = photo_rates(answers)[place_of(answers, model), chosen]
    whole = np.isfinite(rates).all(axis=0)
    if not whole.any() or not chosen:
        raise UserError(f"expected photos answered in every scenario, got none of {model}")
    label = photo_labels(details)[whole]
    scenarios = tuple(answers.conditions[c] for c in chosen)
    return Cells(scenarios, class_accuracies(rates[:, whole], label), rates[:, whole], label)


def model_variance_score(
    details: Details, model: str, rng: np.random.Generator, *, definition: ScoreDefinition | None = None
) -> tuple[VarianceScore, Interval]:
    """XImageNet-12's score of one model, with its bootstrap interval."""
    table = cells(details, model)
    score = variance_score(table.accuracies, definition)
    return score, variance_score_interval(table.correct, table.label, rng, definition=definition)


def accuracy_regression(details: Details) -> Regression:
    """Accuracy (percent) ~ model + scenario + class by least squares, over the cells of all models."""
    rows: list[tuple[float, str, str, str]] = []
    for model in details.answers.models:
        table = cells(details, model)
        names = [details.labels[c] for c in np.unique(table.label)]
        rows += [
            (100 * float(table.accuracies[s, k]), model, _scenario(scenario), name)
            for s, scenario in enumerate(table.scenarios)
            for k, name in enumerate(names)
        ]
    accuracy, *columns = zip(*rows, strict=True)
    return regress_accuracy(accuracy, _factors(*(list(column) for column in columns)))


def picture_regression(details: Details) -> Regression:
    """Log odds of a right answer ~ model + scenario, over all scored pictures, errors clustered by photo.

    Class is no factor here: with a few photos of a class most classes have levels that are all right or all wrong.
    """
    answers = details.answers
    wanted = np.array([condition.attribute not in NO_SCENARIO for condition in answers.conditions], dtype=bool)
    rows = np.flatnonzero(answers.scored & wanted[answers.condition])
    model = [answers.models[m] for m in answers.model[rows]]
    scenario = [_scenario(answers.conditions[c]) for c in answers.condition[rows]]
    return regress_pictures(answers.correct[rows], _factors(model, scenario), answers.sample[rows])


def _factors(model: list[str], scenario: list[str], label: list[str] | None = None) -> dict[str, list[str]]:
    """The factors that vary: a single model, or a single class, explains nothing."""
    factors = {"model": model, "scenario": scenario, **({"class": label} if label else {})}
    return {name: values for name, values in factors.items() if len(set(values)) > 1}


def _scenario(condition: Condition) -> str:
    return f"{condition.edit} {condition.level}"
