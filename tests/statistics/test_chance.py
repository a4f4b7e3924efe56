"""The comparison with guessing, against scipy and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from counterfoil.statistics.chance import binomial_tail, guess_rate, match_answers, upper_bound


@pytest.mark.parametrize(("right", "n", "chance"), [(5, 480, 0.001), (0, 12, 0.25), (12, 48, 0.25), (48, 48, 0.01)])
def test_the_tail_is_that_of_scipys_exact_binomial_test(right: int, n: int, chance: float) -> None:
    assert binomial_tail(right, n, chance) == pytest.approx(
        stats.binomtest(right, n, chance, alternative="greater").pvalue, rel=1e-9
    )


@pytest.mark.parametrize(("right", "n"), [(0, 10), (3, 48), (24, 48), (479, 480), (12, 12)])
def test_the_upper_bound_is_that_of_clopper_and_pearson(right: int, n: int) -> None:
    expected = stats.binomtest(right, n, alternative="less").proportion_ci(0.95, "exact").high
    assert upper_bound(right, n) == pytest.approx(expected, abs=1e-9)


def test_guessing_one_class_for_all_photos_gives_that_classs_share() -> None:
    labels = np.array([0] * 30 + [1] * 10)
    assert guess_rate(labels, np.zeros(40, np.intp), 1000) == pytest.approx(0.75)
    assert guess_rate(labels, np.full(40, 7), 4) == pytest.approx(0.25)  # an answer that no photo has


def test_guesses_are_called_better_than_chance_in_at_most_one_case_of_a_hundred() -> None:
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(6), 8)
    guesses = rng.integers(0, 6, (2000, 48))
    p_values = [binomial_tail(int((row == labels).sum()), 48, guess_rate(labels, row, 6)) for row in guesses]
    assert np.mean(np.array(p_values) < 0.01) <= 0.015


def test_answers_in_any_other_order_of_labels_fit_a_naming_and_wrong_answers_do_not() -> None:
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(12), 4)
    order = np.roll(np.arange(12), 5)
    noisy = np.where(rng.random(48) < 0.85, order[labels], rng.integers(0, 12, 48))
    fits, naming = match_answers(labels, noisy)
    assert fits.mean() > 0.6
    assert sum(naming[label] == order[label] for label in range(12)) >= 10
    assert match_answers(labels, rng.integers(0, 12, 48))[0].mean() < 0.3
    assert match_answers(labels, np.zeros(48, np.intp))[0].sum() == 4  # one answer for all fits one class
