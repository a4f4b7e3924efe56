"""Tail probabilities against scipy, and the large-sample ways against exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from counterfoil.statistics.tail_probabilities import hypergeometric_tail, poisson_binomial_tail


@pytest.mark.parametrize(
    ("least", "total", "marked", "drawn"),
    [(3, 40, 12, 9), (0, 40, 12, 9), (9, 2000, 300, 11), (4, 2001, 50, 60), (40, 70_000, 700, 690), (1, 9000, 5, 8998)],
)
def test_draws_without_replacement_have_the_tail_of_scipy(least: int, total: int, marked: int, drawn: int) -> None:
    assert hypergeometric_tail(least, total, marked, drawn) == pytest.approx(
        float(hypergeom.sf(least - 1, total, marked, drawn)), rel=1e-7
    )


@pytest.mark.parametrize("hits", [0, 20, 45, 80, 150])
def test_many_unequal_trials_have_the_tail_of_a_sum_trial_by_trial(hits: int) -> None:
    chances = np.random.default_rng(3).uniform(0, 0.02, 2400)
    distribution = np.array([1.0])
    for chance in chances:
        distribution = np.convolve(distribution, [1 - chance, chance])
    exact = min(1.0, distribution[hits:].sum())
    assert poisson_binomial_tail(chances, hits) == pytest.approx(exact, rel=1e-10)
    assert poisson_binomial_tail(chances[:1500], hits) <= exact


def test_many_equal_trials_have_the_tail_of_the_binomial_distribution() -> None:
    for hits in (900, 1000, 1300):
        tail = poisson_binomial_tail(np.full(50_000, 0.02), hits)
        assert tail == pytest.approx(float(binom.sf(hits - 1, 50_000, 0.02)), rel=1e-8)


def test_certain_and_impossible_trials_count_as_such() -> None:
    chances = np.concatenate([np.ones(5), np.zeros(3000), np.full(10, 0.5)])
    assert poisson_binomial_tail(chances, 5) == pytest.approx(1.0)
    assert poisson_binomial_tail(chances, 15) == pytest.approx(2.0**-10)
    assert poisson_binomial_tail(chances, 16) == 0.0
    assert math.isnan(poisson_binomial_tail(np.array([]), 0))
