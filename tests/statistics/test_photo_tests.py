from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from counterfoil.statistics.photo_tests import (
    estimate_mean,
    mean_interval,
    p_of_mean,
    student_p,
    student_two_sided_quantile,
)

TRIALS = 250


def clustered_answers(
    rng: np.random.Generator, shape: tuple[int, int], accuracy: float, correlation: float
) -> NDArray[np.float64]:
    """The chance of a right answer to each photo, (trials, photos): beta, as correlated within a photo as asked."""
    if correlation == 0:
        return np.full(shape, accuracy)
    size = 1 / correlation - 1
    return rng.beta(accuracy * size, (1 - accuracy) * size, shape)


def rejections(values: NDArray[np.float64], level: float, answers: int) -> float:
    return float(np.mean([p_of_mean(row, 4 if answers == 4 else 2) < level for row in values]))


def null_cells() -> list[tuple[int, int, float]]:
    return list(itertools.product((20, 60, 300), (1, 3, 10), (0.05, 0.5, 0.95, 0.99)))


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_without_a_drop_five_percent_are_called_one_whatever_photos_replicates_and_accuracy(correlation: float) -> None:
    rng = np.random.default_rng(1)
    shares = []
    for photos, pictures, accuracy in null_cells():
        chance = clustered_answers(rng, (TRIALS, photos), accuracy, correlation)
        losses = rng.binomial(1, chance) - rng.binomial(pictures, chance) / pictures
        shares.append(rejections(losses, 0.05, 2))
    assert max(shares) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / TRIALS)
    assert 0.02 < np.mean(shares) < 0.055


def test_without_a_difference_five_percent_of_the_contrasts_of_two_drops_are_called_one() -> None:
    rng = np.random.default_rng(2)
    shares = []
    for photos, pictures, accuracy in null_cells():
        chance = clustered_answers(rng, (TRIALS, photos), accuracy, 0.3)
        drops = [rng.binomial(1, chance) - rng.binomial(pictures, chance) / pictures for _ in range(2)]
        shares.append(rejections(drops[0] - drops[1], 0.05, 4))
    assert max(shares) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / TRIALS)
    assert 0.02 < np.mean(shares) < 0.055


def test_the_interval_of_two_models_drops_covers_and_is_no_wider_than_their_variances_say() -> None:
    rng = np.random.default_rng(3)
    for photos, pictures in itertools.product((30, 100), (1, 3)):
        chance = clustered_answers(rng, (TRIALS, photos), 0.8, 0.3)
        before = [rng.binomial(1, chance) for _ in range(2)]
        after = [rng.binomial(pictures, chance * share) / pictures for share in (0.7, 0.6)]
        drops = [one - other for one, other in zip(before, after, strict=True)]
        truth = 0.8 * (0.6 - 0.7)
        intervals = np.array([mean_interval(row, 4) for row in drops[0] - drops[1]])
        covered = np.mean((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]))
        assert covered > 0.95 - 4 * math.sqrt(0.05 * 0.95 / TRIALS)
        widths = [np.array([mean_interval(row) for row in drop]) @ [-1, 1] for drop in drops]
        both = np.hypot(*widths)  # of two drops that have nothing in common
        assert np.mean(intervals @ [-1, 1]) < 1.06 * np.mean(both)


@given(
    arrays(np.float64, st.integers(3, 40), elements=st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])),
    st.sampled_from([0.05, 0.00625, 0.001]),
)
def test_test_and_interval_say_the_same_about_zero(values: NDArray[np.float64], level: float) -> None:
    for answers, row in ((2, values / 2), (4, values)):
        count = 4 if answers == 4 else 2
        low, high = mean_interval(row, count, confidence=1 - level)  # type: ignore[arg-type]
        p = p_of_mean(row, count)  # type: ignore[arg-type]
        if abs(p - level) > 1e-9:
            assert (p < level) == (low > 0 or high < 0)


def test_a_difference_of_four_answers_is_students_where_photos_differ() -> None:
    values = np.array([2.0, 1, 1, -1, 0, 0, 0, 1, -1, 0])
    reference = stats.ttest_1samp(values, 0)
    low, high = reference.confidence_interval(0.95)
    assert p_of_mean(values, 4) == pytest.approx(reference.pvalue)
    assert mean_interval(values, 4) == pytest.approx((low, high))


def test_nothing_that_differs_is_no_proof_of_no_difference() -> None:
    for answers in (2, 4):
        row = estimate_mean(np.zeros(30), answers)
        assert row.ci_low < -0.05
        assert row.ci_high > 0.05


@pytest.mark.parametrize("freedom", [1, 4, 19, 299, 45_999])
def test_students_distribution_is_that_of_scipy(freedom: int) -> None:
    for t in (0.0, 0.3, 2.0, 5.0, 12.0):
        assert student_p(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-9)
    for p in (0.2, 0.05, 1e-5):
        assert student_two_sided_quantile(p, freedom) == pytest.approx(stats.t.isf(p / 2, freedom), rel=1e-9)
