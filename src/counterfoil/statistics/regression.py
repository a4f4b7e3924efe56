"""Least-squares regression of accuracy on model, scenario and class; logistic regression of right answers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.plugins import import_extra
from counterfoil.statistics.answers import Condition, Details
from counterfoil.statistics.variance_score import NO_SCENARIO, scenario_accuracies

_NOTHING = 1e-12  # a sum of squares below this is float error


class Factor(NamedTuple):
    """The share that one factor explains given the others (type II)."""

    name: str
    reference: str  # the level that the other coefficients are relative to
    degrees: int
    sum_of_squares: float  # NaN in the logistic model
    statistic: float  # F, or Wald's chi-squared in the logistic model
    p_value: float
    share: float  # of the total sum of squares (eta squared); NaN in the logistic model


class Coefficient(NamedTuple):
    """One level of a factor against the factor's first; accuracy in the table's unit, or log odds."""

    factor: str
    level: str
    value: float
    error: float
    p_value: float
    ci_low: float
    ci_high: float


class Regression(NamedTuple):
    """A fitted model with the usual statistics."""

    n: int
    clusters: int  # groups of dependent rows; n where rows are independent
    statistic: float  # F of the whole model, or Wald's chi-squared
    p_value: float
    r_squared: float  # McFadden's in the logistic model
    factors: tuple[Factor, ...]
    coefficients: tuple[Coefficient, ...]


class _Design(NamedTuple):
    matrix: NDArray[np.float64]  # (rows, 1 + columns), the constant first
    columns: dict[str, list[int]]  # by factor
    levels: dict[str, list[str]]  # by factor; the first is the reference and has no column


def regress_accuracy(details: Details) -> Regression:
    """Accuracy (percent) ~ model + scenario + class by least squares, over the cells of all models."""
    rows: list[tuple[float, str, str, str]] = []
    for model in details.answers.models:
        table = scenario_accuracies(details, model)
        names = [details.labels[c] for c in np.unique(table.label)]
        rows += [
            (100 * float(table.accuracies[s, k]), model, _scenario(scenario), name)
            for s, scenario in enumerate(table.scenarios)
            for k, name in enumerate(names)
        ]
    accuracy, *columns = zip(*rows, strict=True)
    return fit_least_squares(accuracy, _factors(*(list(column) for column in columns)))


def regress_pictures(details: Details) -> Regression:
    """Log odds of a right answer ~ model + scenario, over all scored pictures, errors clustered by photo.

    Class is not a factor here: with few photos per class, most classes have levels that are all right or all wrong.
    """
    answers = details.answers
    rows = np.flatnonzero(answers.scored & ~answers.conditions_of(NO_SCENARIO)[answers.condition])
    model = [answers.models[m] for m in answers.model[rows]]
    scenario = [_scenario(answers.conditions[c]) for c in answers.condition[rows]]
    return fit_logistic(answers.correct[rows], _factors(model, scenario), answers.sample[rows])


def fit_least_squares(accuracy: Sequence[float], factors: Mapping[str, Sequence[str]]) -> Regression:
    """Accuracy ~ sum of factors by ordinary least squares: F, p, R2, and each factor's type II share of variance."""
    outcome = np.asarray(accuracy, np.float64)
    design = _design(factors, len(outcome))
    fit = import_extra("statsmodels.api", "stats").OLS(outcome, design.matrix).fit()
    if fit.df_resid < 1:
        raise UserError(f"expected more rows than coefficients, got {len(outcome)} and {design.matrix.shape[1]}")
    total = float(fit.centered_tss)
    if fit.ssr <= _NOTHING * max(total, 1.0):
        raise UserError("expected accuracies that vary beyond the factors, got none: there is nothing to test against")
    rows = tuple(_squares(name, design, fit, total) for name in factors)
    return Regression(
        n=len(outcome),
        clusters=len(outcome),
        statistic=float(fit.fvalue),
        p_value=float(fit.f_pvalue),
        r_squared=float(fit.rsquared),
        factors=rows,
        coefficients=_coefficients(design, fit),
    )


def fit_logistic(
    correct: NDArray[np.bool_], factors: Mapping[str, Sequence[str]], photo: NDArray[np.intp]
) -> Regression:
    """Log odds of a right answer ~ sum of factors, picture by picture; errors clustered by source photo."""
    design = _design(factors, len(correct))
    _refuse_certain_levels(correct, factors)
    statsmodels = import_extra("statsmodels.api", "stats")
    groups = {"groups": np.unique(photo, return_inverse=True)[1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about fits that do not converge, and levels that cannot be separated
        try:
            model = statsmodels.Logit(correct.astype(float), design.matrix)
            fit = model.fit(disp=0, cov_type="cluster", cov_kwds=groups)
        except np.linalg.LinAlgError:
            fit = None
        if fit is None or not fit.mle_retvals["converged"]:
            raise UserError(
                "expected right and wrong answers for every value of a factor, got a factor that decides them;"
                " no model can be fitted"
            )
        slopes = fit.wald_test(np.eye(design.matrix.shape[1])[1:], use_f=False, scalar=True)
        rows = tuple(_wald(name, design, fit) for name in factors)
    return Regression(
        n=len(correct),
        clusters=int(groups["groups"].max()) + 1,
        statistic=float(slopes.statistic),
        p_value=float(slopes.pvalue),
        r_squared=float(fit.prsquared),
        factors=rows,
        coefficients=_coefficients(design, fit),
    )


def _design(factors: Mapping[str, Sequence[str]], n: int) -> _Design:
    """Constant and indicator columns; a factor's first level is its reference."""
    parts: list[NDArray[np.float64]] = [np.ones((n, 1))]
    columns: dict[str, list[int]] = {}
    levels: dict[str, list[str]] = {}
    width = 1
    for name, values in factors.items():
        known = list(dict.fromkeys(values))
        if len(known) < 2 or len(values) != n:
            raise UserError(f"expected {n} values of {name}, two different at least, got {len(values)} of {len(known)}")
        levels[name] = known
        columns[name] = list(range(width, width + len(known) - 1))
        width += len(known) - 1
        parts.append((np.asarray(values, object)[:, None] == np.array(known[1:], object)).astype(float))
    return _Design(np.concatenate(parts, axis=1), columns, levels)


def _squares(name: str, design: _Design, fit: Any, total: float) -> Factor:
    """Type II without interactions: the increase of the residuals when only this factor is removed."""
    rest = np.delete(design.matrix, design.columns[name], axis=1)
    solution = np.linalg.lstsq(rest, fit.model.endog, rcond=None)[0]
    gained = float(np.sum((fit.model.endog - rest @ solution) ** 2) - fit.ssr)
    test = fit.f_test(np.eye(design.matrix.shape[1])[design.columns[name]])
    return Factor(
        name=name,
        reference=design.levels[name][0],
        degrees=len(design.columns[name]),
        sum_of_squares=gained,
        statistic=float(test.fvalue),
        p_value=float(test.pvalue),
        share=gained / total,
    )


def _wald(name: str, design: _Design, fit: Any) -> Factor:
    test = fit.wald_test(np.eye(design.matrix.shape[1])[design.columns[name]], use_f=False, scalar=True)
    return Factor(
        name=name,
        reference=design.levels[name][0],
        degrees=len(design.columns[name]),
        sum_of_squares=math.nan,
        statistic=float(test.statistic),
        p_value=float(test.pvalue),
        share=math.nan,
    )


def _coefficients(design: _Design, fit: Any) -> tuple[Coefficient, ...]:
    bounds = fit.conf_int()
    return tuple(
        Coefficient(name, level, *(float(v) for v in (fit.params[i], fit.bse[i], fit.pvalues[i], *bounds[i])))
        for name, places in design.columns.items()
        for level, i in zip(design.levels[name][1:], places, strict=True)
    )


def _refuse_certain_levels(correct: NDArray[np.bool_], factors: Mapping[str, Sequence[str]]) -> None:
    """Raise `UserError` where a level's answers are all right or all wrong: it has no finite coefficient."""
    for name, values in factors.items():
        column = np.asarray(values, object)
        for level in dict.fromkeys(values):
            share = correct[column == level].mean()
            if share in (0.0, 1.0):
                raise UserError(
                    f"expected right and wrong answers at every level, got only {'right' if share else 'wrong'} ones "
                    f"at {name} = {level}; leave that level out"
                )


def _factors(model: list[str], scenario: list[str], label: list[str] | None = None) -> dict[str, list[str]]:
    """The factors that vary: a single model or class explains nothing."""
    factors = {"model": model, "scenario": scenario, **({"class": label} if label else {})}
    return {name: values for name, values in factors.items() if len(set(values)) > 1}


def _scenario(condition: Condition) -> str:
    return f"{condition.edit} {condition.level}"
