from __future__ import annotations

import numpy as np
import pytest

from answer_rows import CONTROL, ORIGINAL, SMALL, SWAP, details_of
from counterfoil.errors import UserError
from counterfoil.statistics.answers import Details
from counterfoil.statistics.regression import (
    model_variance_score,
    regress_accuracy,
    regress_pictures,
    scenario_accuracies,
)
from counterfoil.statistics.variance_score import ScoreDefinition, variance_score


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


def test_variance_score_of_a_model_is_that_of_its_cells_and_lies_in_its_interval() -> None:
    details = random_details()
    definition = ScoreDefinition(spread="deviation")
    score, interval = model_variance_score(details, "a", np.random.default_rng(1), definition=definition)
    assert score == variance_score(scenario_accuracies(details, "a").accuracies, definition)
    # resampling adds spread of its own, so the interval lies below the score more than around it
    assert interval.low < score.score
    assert interval.high - interval.low < 0.2


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
