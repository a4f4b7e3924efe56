from __future__ import annotations

import csv
import sys
from typing import Any

import numpy as np
import pytest

from answer_rows import CONTROL, ORIGINAL, SMALL, SWAP, details_of
from counterfoil.errors import UserError
from counterfoil.statistics.answers import Details
from counterfoil.statistics.regression import fit_least_squares, fit_logistic, regress_accuracy, regress_pictures
from counterfoil.statistics.variance_score import (
    ScoreDefinition,
    model_variance_score,
    scenario_accuracies,
    shapiro_wilk,
    variance_score,
)
from locations import DATA

TABLE = DATA / "ximagenet12_top1.csv"


def frame(**columns: Any) -> Any:
    pandas: Any = pytest.importorskip("pandas")
    return pandas.DataFrame(columns)


def published() -> tuple[list[float], dict[str, list[str]]]:
    """XImageNet-12's first experiment, long: accuracy, model, scenario."""
    rows = [
        row for row in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()) if row["pretraining"][:3] == "EX1"
    ]
    scenarios = [name for name in rows[0] if name not in ("pretraining", "model")]
    cells = [(float(row[scenario]), row["model"], scenario) for row in rows for scenario in scenarios]
    return [cell[0] for cell in cells], {"model": [cell[1] for cell in cells], "scenario": [cell[2] for cell in cells]}


def test_regression_of_the_published_table_is_that_of_the_formula_interface() -> None:
    api: Any = pytest.importorskip("statsmodels.formula.api", reason="needs the extra 'stats'")
    anova: Any = pytest.importorskip("statsmodels.stats.anova")
    accuracy, factors = published()
    fit = api.ols("accuracy ~ C(model) + C(scenario)", frame(accuracy=accuracy, **factors)).fit()
    reference = anova.anova_lm(fit, typ=2)
    result = fit_least_squares(accuracy, factors)
    assert (result.n, result.statistic, result.p_value) == pytest.approx((64, fit.fvalue, fit.f_pvalue))
    assert result.r_squared == pytest.approx(fit.rsquared)
    for factor in result.factors:
        row = reference.loc[f"C({factor.name})"]
        assert (factor.degrees, factor.sum_of_squares, factor.statistic, factor.p_value) == pytest.approx(
            (row["df"], row["sum_sq"], row["F"], row["PR(>F)"])
        )
    assert sum(factor.share for factor in result.factors) == pytest.approx(result.r_squared)  # the table is balanced
    assert result.factors[1].share > 0.8  # the scenario, not the model, explains the table


def test_type_two_shares_of_an_unbalanced_table_are_those_of_the_formula_interface() -> None:
    api: Any = pytest.importorskip("statsmodels.formula.api", reason="needs the extra 'stats'")
    anova: Any = pytest.importorskip("statsmodels.stats.anova")
    accuracy, factors = published()
    kept = np.random.default_rng(1).choice(64, 45, replace=False)
    accuracy, factors = (
        [accuracy[i] for i in kept],
        {name: [column[i] for i in kept] for name, column in factors.items()},
    )
    reference = anova.anova_lm(
        api.ols("accuracy ~ C(model) + C(scenario)", frame(accuracy=accuracy, **factors)).fit(), typ=2
    )
    for factor in fit_least_squares(accuracy, factors).factors:
        assert factor.sum_of_squares == pytest.approx(reference.loc[f"C({factor.name})"]["sum_sq"])


def pictures() -> tuple[Any, dict[str, list[str]], Any]:
    rng = np.random.default_rng(4)
    photo, scenario = np.repeat(np.arange(80), 6), np.tile(["plain", "plain", "plain", "swap", "swap", "swap"], 80)
    model = np.tile(["a", "b", "c"], 160)
    luck = rng.normal(0, 1, 80)[photo]  # what makes pictures of one photo alike
    odds = 1.2 + luck - 1.0 * (scenario == "swap") + 0.4 * (model == "b")
    return rng.random(480) < 1 / (1 + np.exp(-odds)), {"model": list(model), "scenario": list(scenario)}, photo


def test_logistic_model_is_that_of_the_generalised_linear_model_with_clustered_errors() -> None:
    api: Any = pytest.importorskip("statsmodels.formula.api", reason="needs the extra 'stats'")
    sm: Any = pytest.importorskip("statsmodels.api")
    correct, factors, photo = pictures()
    reference = api.glm(
        "correct ~ C(model) + C(scenario)", frame(correct=correct.astype(int), **factors), family=sm.families.Binomial()
    ).fit(cov_type="cluster", cov_kwds={"groups": photo})
    result = fit_logistic(correct, factors, photo)
    assert (result.n, result.clusters) == (480, 80)
    ours = {f"C({row.factor})[T.{row.level}]": row for row in result.coefficients}
    assert set(ours) == set(reference.params.index) - {"Intercept"}
    for name, row in ours.items():
        assert row.value == pytest.approx(reference.params[name], rel=1e-4)
        assert row.error == pytest.approx(reference.bse[name], rel=0.01)
    assert result.factors[1].p_value < 0.001


def test_regressions_refuse_what_has_no_answer() -> None:
    pytest.importorskip("statsmodels.api", reason="needs the extra 'stats'")
    with pytest.raises(UserError, match="two different at least"):
        fit_least_squares([0.1, 0.2], {"model": ["a", "a"]})
    with pytest.raises(UserError, match="expected more rows than coefficients"):
        fit_least_squares([0.1, 0.2], {"model": ["a", "b"]})
    correct, factors, photo = pictures()
    with pytest.raises(UserError, match="got only wrong ones at scenario = swap"):
        fit_logistic(correct & (np.array(factors["scenario"]) == "plain"), factors, photo)


@pytest.mark.parametrize(("module", "what"), [("statsmodels.api", "regression"), ("scipy.stats", "normality")])
def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch, module: str, what: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=r"pip install 'counterfoil\[stats\]'"):
        if what == "regression":
            fit_least_squares([0.1, 0.2, 0.4], {"model": ["a", "b", "a"]})
        else:
            shapiro_wilk(np.arange(5.0))


def random_details(models: tuple[str, ...] = ("a", "b"), photos: int = 60) -> Details:
    rng = np.random.default_rng(6)
    truth = ["cat", "dog", "fox"] * (photos // 3)
    rates = {ORIGINAL: 0.9, CONTROL: 0.5, SWAP: 0.6, SMALL: 0.8}
    said = {
        (model, condition): [label if rng.random() < rate else "hat" for label in truth]
        for model in models
        for condition, rate in rates.items()
    }
    return details_of(said, truth)


def test_cells_are_accuracies_by_scenario_and_class_without_the_control() -> None:
    details = details_of(
        {("net", ORIGINAL): ["cat", "cat", "dog"], ("net", CONTROL): ["hat"] * 3, ("net", SWAP): ["cat", "hat", "dog"]},
        ["cat", "cat", "dog"],
    )
    table = scenario_accuracies(details, "net")
    assert table.scenarios == (ORIGINAL, SWAP)
    assert table.accuracies.tolist() == [[1.0, 1.0], [0.5, 1.0]]


def test_variance_score_of_a_model_is_that_of_its_cells_and_higher_without_the_noise_of_the_photos() -> None:
    details = random_details()
    definition = ScoreDefinition(divisor="sample")
    score, clean = model_variance_score(details, "a", np.random.default_rng(1), definition=definition)
    assert score == variance_score(scenario_accuracies(details, "a").accuracies, definition)
    assert score.score < clean.value
    assert clean.ci_low < clean.value < clean.ci_high
    assert clean.ci_high - clean.ci_low < 0.2


def test_regressions_of_a_run_find_the_scenario_that_costs() -> None:
    pytest.importorskip("statsmodels.api", reason="needs the extra 'stats'")
    details = random_details()
    table, pictures = regress_accuracy(details), regress_pictures(details)
    assert [factor.name for factor in table.factors] == ["model", "scenario", "class"]
    assert (table.n, pictures.n, pictures.clusters) == (2 * 3 * 3, 2 * 3 * 60, 60)
    for result in (table, pictures):
        p_values = {factor.name: factor.p_value for factor in result.factors}
        assert p_values["scenario"] < 0.01 < p_values["model"]


def test_a_single_model_is_no_factor() -> None:
    pytest.importorskip("statsmodels.api", reason="needs the extra 'stats'")
    assert [factor.name for factor in regress_pictures(random_details(("a",))).factors] == ["scenario"]


def test_a_model_without_any_whole_photo_is_refused() -> None:
    details = details_of({("net", ORIGINAL): ["cat", "cat"], ("other", SWAP): ["cat", "cat"]}, ["cat", "cat"])
    with pytest.raises(UserError, match="expected photos answered in every scenario, got none of net"):
        scenario_accuracies(details, "net")
