from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.confusion import error_consistency
from counterfoil.statistics.dose import size_thresholds
from counterfoil.statistics.drops import mean_drops
from counterfoil.statistics.intervals import (
    Interval,
    RateBounds,
    estimate,
    percentile_interval,
    resample_counts,
    score_interval,
    score_test,
    sum_resamples,
)

QUANTILE = stats.norm.ppf(0.975)


def outcomes(lost: int, gained: int, same: int) -> NDArray[np.float64]:
    return np.array([1.0] * lost + [-1.0] * gained + [0.0] * same)


def tango(n: int, lost: int, gained: int) -> tuple[float, float]:
    """Tango's interval from his closed form of the restricted estimate (Statistics in Medicine 17, 1998)."""

    def score(difference: float) -> float:
        a, b = 2 * n, -lost - gained + (2 * n - lost + gained) * difference
        c = -gained * difference * (1 - difference)
        restricted = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
        variance = n * (2 * restricted + difference * (1 - difference))
        return float((lost - gained - n * difference) / math.sqrt(variance))

    mean, step = (lost - gained) / n, 1e-12
    low = optimize.brentq(lambda d: score(d) - QUANTILE, -1 + step, mean - step)
    high = optimize.brentq(lambda d: score(d) + QUANTILE, mean + step, 1 - step)
    return low, high


@pytest.mark.parametrize(
    ("lost", "gained", "same"), [(0, 0, 64), (1, 0, 63), (0, 3, 27), (6, 1, 3), (20, 4, 40), (90, 10, 4_900), (7, 7, 0)]
)
def test_score_interval_is_tangos_for_one_answer_a_photo(lost: int, gained: int, same: int) -> None:
    assert score_interval(outcomes(lost, gained, same)) == pytest.approx(tango(lost + gained + same, lost, gained))


@pytest.mark.parametrize(("right", "n"), [(0, 20), (3, 20), (20, 20), (870, 1_000)])
def test_score_interval_of_a_rate_is_wilsons(right: int, n: int) -> None:
    rates = np.array([1.0] * right + [0.0] * (n - right))
    reference = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert score_interval(rates, bounds=RateBounds(0, 1)) == pytest.approx((reference.low, reference.high))


def restricted_score(values: NDArray[np.float64], mean: float) -> float:
    """|score| of a mean, the restricted likelihood maximised by scipy over the observed values and their mirror."""
    observed, times = np.unique(values, return_counts=True)
    reach = np.abs(values).max()
    support = np.unique(np.concatenate([observed, [-reach, reach]]))
    counts = np.array([times[observed == value].sum() for value in support])
    result = optimize.minimize(
        lambda p: -np.sum(counts[counts > 0] * np.log(np.maximum(p[counts > 0], 1e-300))),
        np.full(len(support), 1 / len(support)),
        bounds=[(0, 1)] * len(support),
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "eq", "fun": lambda p: p @ support - mean},
        ],
        options={"ftol": 1e-14, "maxiter": 1_000},
    )
    variance = result.x @ (support - mean) ** 2
    return float(abs(values.mean() - mean) / math.sqrt(variance / len(values)))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_replicates_the_bounds_are_where_the_score_reaches_its_quantile(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = (rng.random(40) < 0.8) - rng.binomial(3, 0.7, 40) / 3
    for bound in score_interval(values):
        assert restricted_score(values, bound) == pytest.approx(QUANTILE, abs=1e-3)


def test_score_test_and_interval_say_the_same_about_zero() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        values = (rng.random(30) < 0.9) - rng.binomial(3, 0.75, 30) / 3
        low, high = score_interval(values)
        assert (score_test(values) < 0.05) == (low > 0 or high < 0)


@pytest.mark.parametrize(("lost", "gained"), [(10, 2), (2, 10), (5, 0), (60, 31)])
def test_score_test_is_mcnemars_without_correction(lost: int, gained: int) -> None:
    reference = stats.chi2.sf((lost - gained) ** 2 / (lost + gained), 1)
    assert score_test(outcomes(lost, gained, 50)) == pytest.approx(reference)


def test_score_test_says_one_where_nothing_changed_but_rounding() -> None:
    assert score_test(np.array([1e-17, 0.0, -2e-17])) == 1.0
    assert math.isnan(score_test(np.array([])))


def test_intervals_mirror_when_the_sides_are_exchanged() -> None:
    low, high = score_interval(outcomes(11, 5, 20))
    assert score_interval(outcomes(5, 11, 20)) == pytest.approx((-high, -low))


def test_no_photos_give_no_interval_and_an_estimate_leaves_out_what_is_no_number() -> None:
    nothing = np.array([])
    assert all(math.isnan(bound) for bound in (*score_interval(nothing), *estimate(nothing)[:3]))
    assert estimate(np.array([1.0, np.nan, 0.0])).n == 2


@functools.cache
def score_bounds(lost: int, gained: int, n: int) -> Interval:
    return score_interval(outcomes(lost, gained, n - lost - gained))


GRID = [
    (n, accuracy, drop, correlation)
    for n in (64, 200, 500)
    for accuracy in (0.6, 0.75, 0.9)
    for drop in (0.0, 0.05)
    for correlation in (0.0, 0.3, 0.6)
]


def change(accuracy: float, drop: float, correlation: float) -> tuple[float, float]:
    """Shares lost and gained of two binary variables with these means and this correlation."""
    after = accuracy - drop
    shared = correlation * math.sqrt(accuracy * (1 - accuracy) * after * (1 - after))
    return accuracy * (1 - after) - shared, (1 - accuracy) * after - shared


@pytest.mark.parametrize("n", [64, 200, 500])
def test_default_intervals_cover_the_true_drop_94_to_96_times_in_100(n: int) -> None:
    rng = np.random.default_rng(20_240)
    for size, accuracy, drop, correlation in GRID:
        lost, gained = change(accuracy, drop, correlation)
        if size != n or n * (lost + gained) < 10:  # fewer changes: see the next test
            continue
        draws, times = np.unique(
            rng.multinomial(n, [lost, gained, 1 - lost - gained], 20_000)[:, :2], axis=0, return_counts=True
        )
        bounds = [score_bounds(int(row[0]), int(row[1]), n) for row in draws]
        hits = [low <= drop <= high for low, high in bounds]
        assert 0.94 <= np.average(hits, weights=times) <= 0.96, (n, accuracy, drop, correlation)


@pytest.mark.parametrize(("n", "accuracy", "spread"), [(64, 0.75, 4.0), (200, 0.75, 0.5), (200, 0.9, 4.0)])
def test_with_replicates_the_default_interval_covers_94_to_96_times_in_100(
    n: int, accuracy: float, spread: float
) -> None:
    rng = np.random.default_rng(17)
    hits = []
    for _ in range(6_000):
        ease = rng.beta(spread * accuracy, spread * (1 - accuracy), n)  # a photo's own chance of a right answer
        losses = (rng.random(n) < ease) - rng.binomial(3, 0.9 * ease) / 3
        low, high = score_interval(losses)
        hits.append(low <= 0.1 * accuracy <= high)
    assert 0.94 <= np.mean(hits) <= 0.96


@pytest.mark.parametrize(
    ("n", "lost", "gained"), [(30, 0.02, 0.01), (64, 0.03, 0.03), (100, 0.05, 0.0), (30, 0.1, 0.05)]
)
def test_with_hardly_any_change_the_default_interval_covers_too_often_not_too_seldom(
    n: int, lost: float, gained: float
) -> None:
    draws = np.random.default_rng(5).multinomial(n, [lost, gained, 1 - lost - gained], 20_000)[:, :2]
    hits = [low <= lost - gained <= high for low, high in (score_bounds(int(a), int(b), n) for a, b in draws)]
    assert np.mean(hits) >= 0.935


def test_every_resample_has_as_many_photos_and_each_is_drawn_once_on_average() -> None:
    counts = resample_counts(50, np.random.default_rng(1), resamples=4_000)
    assert (counts.sum(axis=1) == 50).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(50), abs=0.08)
    assert counts.var() == pytest.approx(1 - 1 / 50, abs=0.02)  # of a binomial with 50 trials of 1/50


def test_within_strata_every_stratum_keeps_its_size() -> None:
    strata = np.array([2, 0, 2, 1, 0, 2, 2])
    counts = resample_counts(7, np.random.default_rng(1), resamples=500, strata=strata)
    for value, size in ((0, 2), (1, 1), (2, 4)):
        assert (counts[:, strata == value].sum(axis=1) == size).all()
    assert counts[:, strata == 2].mean(axis=0) == pytest.approx(np.ones(4), abs=0.15)


def test_percentile_interval_is_the_inverted_distribution_function() -> None:
    values = np.random.default_rng(2).normal(size=2_000)
    expected = np.quantile(values, [0.025, 0.975], method="inverted_cdf")
    assert percentile_interval(values) == pytest.approx(tuple(expected))


def test_a_bound_may_be_infinite_and_the_other_stays_a_number() -> None:
    values = np.array([1.0] * 1_950 + [np.inf] * 50)
    assert percentile_interval(values) == (1.0, 1.0)
    assert percentile_interval(np.array([1.0] * 1_949 + [np.inf] * 51)) == (1.0, math.inf)


def test_where_a_resample_has_no_value_nothing_is_said() -> None:
    assert all(math.isnan(bound) for bound in percentile_interval(np.array([1.0, np.nan])))
    assert all(math.isnan(bound) for bound in percentile_interval(np.array([])))


def test_of_many_photos_random_groups_are_drawn_with_the_same_spread() -> None:
    values = np.random.default_rng(0).normal(size=20_000)
    grouped = resample_counts(20_000, np.random.default_rng(1))
    assert grouped.shape[1] < 20_000
    means = (grouped @ values) / (grouped @ np.ones(20_000))
    assert means.std() == pytest.approx(values.std() / np.sqrt(20_000), rel=0.06)
    assert means.mean() == pytest.approx(values.mean(), abs=4 * means.std() / np.sqrt(len(means)))


def test_a_product_with_counts_is_the_sum_over_drawn_photos() -> None:
    counts = resample_counts(300, np.random.default_rng(1), resamples=40)
    values = np.random.default_rng(2).normal(size=(300, 3))
    assert np.allclose(counts @ values, np.asarray(counts).astype(float) @ values)


@pytest.mark.parametrize("photos", [7, 300, 20_000])
def test_sums_that_are_drawn_in_turn_are_those_of_all_counts_to_the_bit(photos: int) -> None:
    values = np.random.default_rng(2).normal(size=(photos, 3))
    counts = resample_counts(photos, np.random.default_rng(1))
    drawn = sum_resamples([values, np.sign(values[:, 0]), values], np.random.default_rng(1))
    for one, each in zip(drawn, (values, np.sign(values[:, 0]), values), strict=True):
        assert np.array_equal(one, counts @ each)


def test_measures_that_resample_work_with_more_photos_than_are_drawn_apart() -> None:
    photos, levels = 8_300, ("none", "0.1", "0.05")
    conditions = (Condition("original", "original", "none"), *(Condition("size", "size", x) for x in levels[1:]))
    model, condition, sample = (part.ravel() for part in np.indices((2, 3, photos)))
    correct = np.random.default_rng(0).random(len(sample)) < 0.9 - 0.2 * condition
    answers = Answers(
        models=("a", "b"), conditions=conditions, samples=tuple(map(str, range(photos))), model=model,
        condition=condition, sample=sample, replicate=np.zeros_like(sample), correct=correct,
        scored=np.ones(len(sample), bool), object_share=np.array([30.0, 10.0, 5.0])[condition],
    )  # fmt: skip
    (pair,) = error_consistency(answers, np.random.default_rng(0))
    assert pair.kappa.ci_low < 0 < pair.kappa.ci_high
    assert pair.kappa.n == photos
    first, _ = size_thresholds(answers, np.random.default_rng(0), points=30)
    assert 5 < first.ci_low < first.level < first.ci_high < 10
    assert all(row.drop.ci_low < 30 < row.drop.ci_high for row in mean_drops(answers, np.random.default_rng(0)))
