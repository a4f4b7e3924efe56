from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from counterfoil.analyse.paired import bootstrap_interval, mcnemar


def outcomes(lost: int, gained: int, same: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([1.0] * lost + [-1.0] * gained + [0.0] * same)


@pytest.mark.parametrize(("lost", "gained", "same"), [(20, 4, 40), (3, 3, 4), (90, 10, 400), (1, 0, 63), (64, 0, 0)])
def test_interval_is_that_of_scipy_within_monte_carlo_error(lost: int, gained: int, same: int) -> None:
    differences = outcomes(lost, gained, same)
    reference = stats.bootstrap(
        (differences,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(7), batch=1_000
    ).confidence_interval
    interval = bootstrap_interval(differences)
    step = 1.0 / len(differences)  # neighbouring values of the mean; a Monte-Carlo quantile may land on either
    assert interval.low == pytest.approx(reference.low, abs=step * 1.001)
    assert interval.high == pytest.approx(reference.high, abs=step * 1.001)


def test_interval_with_replicates_is_that_of_scipy_within_monte_carlo_error() -> None:
    differences = 1.0 - np.random.default_rng(3).integers(0, 4, 120) / 3.0
    reference = stats.bootstrap(
        (differences,), np.mean, n_resamples=40_000, method="percentile", rng=np.random.default_rng(7), batch=1_000
    ).confidence_interval
    interval = bootstrap_interval(differences, unit=3)
    assert interval.low == pytest.approx(reference.low, abs=0.004)
    assert interval.high == pytest.approx(reference.high, abs=0.004)


def test_interval_is_the_binomial_quantile_where_photos_only_get_lost() -> None:
    reference = stats.binom(200, 30 / 200)
    interval = bootstrap_interval(outcomes(30, 0, 170))
    assert interval.low == pytest.approx(reference.ppf(0.025) / 200)
    assert interval.high == pytest.approx(reference.ppf(0.975) / 200)


def test_interval_worked_by_hand_for_two_photos() -> None:
    # Two photos, one lost: resamples have mean 0, 1/2, 1 with probability 1/4, 1/2, 1/4.
    assert bootstrap_interval(outcomes(1, 0, 1), confidence=0.6) == (0.0, 1.0)
    assert bootstrap_interval(outcomes(1, 0, 1), confidence=0.4) == (0.5, 0.5)


def test_interval_of_many_photos_agrees_with_the_normal_approximation() -> None:
    differences = outcomes(30_000, 10_000, 160_000)
    interval = bootstrap_interval(differences)
    half = 1.959964 * differences.std() / math.sqrt(len(differences))
    assert interval.low == pytest.approx(differences.mean() - half, abs=1e-5)
    assert interval.high == pytest.approx(differences.mean() + half, abs=1e-5)


def test_interval_mirrors_when_the_sides_are_exchanged() -> None:
    interval, mirrored = bootstrap_interval(outcomes(11, 5, 20)), bootstrap_interval(outcomes(5, 11, 20))
    assert (interval.low, interval.high) == (-mirrored.high, -mirrored.low)


def test_interval_collapses_where_no_photo_changed() -> None:
    assert bootstrap_interval(outcomes(0, 0, 30)) == (0.0, 0.0)


@pytest.mark.parametrize(("n", "lost", "gained"), [(60, 0.25, 0.05), (150, 0.10, 0.05), (150, 0.45, 0.10)])
def test_intervals_cover_the_true_drop_about_95_times_in_100(n: int, lost: float, gained: float) -> None:
    rng = np.random.default_rng(20240)
    trials = 2_000
    hits = 0
    for _ in range(trials):
        interval = bootstrap_interval(rng.choice([1.0, -1.0, 0.0], n, p=[lost, gained, 1 - lost - gained]))
        hits += interval.low <= lost - gained <= interval.high
    assert 0.93 <= hits / trials <= 0.97


@pytest.mark.parametrize(("lost", "gained"), [(0, 1), (5, 0), (10, 2), (2, 10), (7, 7), (60, 31), (3_000, 2_800)])
def test_mcnemar_is_the_binomial_test_of_scipy(lost: int, gained: int) -> None:
    reference = stats.binomtest(lost, lost + gained, 0.5).pvalue
    assert mcnemar(outcomes(lost, gained, 50)) == pytest.approx(reference, rel=1e-9)


def test_mcnemar_worked_by_hand() -> None:
    # 1 gained of 6 changed: 2 * (1 + 6) / 64.
    assert mcnemar(outcomes(5, 1, 9)) == pytest.approx(14 / 64)


def test_mcnemar_says_one_where_nothing_changed() -> None:
    assert mcnemar(outcomes(0, 0, 12)) == 1.0


def test_no_photos_give_no_numbers() -> None:
    assert all(math.isnan(bound) for bound in bootstrap_interval(outcomes(0, 0, 0)))
    assert math.isnan(mcnemar(outcomes(0, 0, 0)))
