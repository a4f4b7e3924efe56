"""The intervals of mining and of what verification changed, against published ones and on simulated photos."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from counterfoil.mining.rules import AnswerMatrix, Rule
from counterfoil.mining.surrogate_groups import cross_fit_bias, list_subsets, trace_curves
from counterfoil.statistics.intervals import RateBounds, jackknife_interval, score_interval
from counterfoil.statistics.photo_shares import (
    PhotoCounts,
    PhotoShare,
    effective_photos,
    estimate_share,
    mean_share,
    mover_interval,
    pooled_share,
    share_change,
    sum_shares,
)


def of_own_photos(hits: NDArray[np.bool_], first: int, photos: int) -> PhotoShare:
    """A share of pictures that are each of a photo of their own, from photo `first` on."""
    return pooled_share(hits, np.ones(len(hits), bool), PhotoCounts(first + np.arange(len(hits)), photos))


def test_a_share_tells_what_it_owes_to_each_photo() -> None:
    photos = PhotoCounts(np.array([0, 0, 1, 2]), 3)
    hits, everything = np.array([True, False, True, False]), np.ones(4, bool)
    found = pooled_share(hits, everything, photos)
    assert (found.value, found.pictures) == (0.5, 4)
    assert found.weights == pytest.approx([2 / 4, 1 / 4, 1 / 4])
    assert found.influences == pytest.approx([0, 0.5 / 4, -0.5 / 4])  # hits beyond the share, over the pictures
    pairs = pooled_share(np.stack([hits, ~hits]), np.stack([everything, everything]), photos)
    assert (pairs.value, pairs.pictures) == (0.5, 8)
    nothing = pooled_share(hits, ~everything, photos)
    assert effective_photos(nothing) == 0
    assert all(math.isnan(end) for end in estimate_share(nothing)[:3])


def test_what_a_mean_of_shares_owes_to_a_photo_is_how_it_moves_when_the_photo_weighs_more() -> None:
    rng = np.random.default_rng(3)
    among = rng.integers(0, 4, (9, 5)).astype(float)
    hits = np.floor(among * rng.random((9, 5)))
    found = sum_shares(hits, among).mean
    step = 1e-6
    for photo in range(9):
        weights = np.ones(9)
        weights[photo] += step
        moved = ((weights @ hits) / (weights @ among)).mean()
        assert (moved - found.value) / step == pytest.approx(found.influences[photo], abs=1e-5)
    halves = sum_shares(hits[:, :2], among[:, :2]).joined(sum_shares(hits[:, 2:], among[:, 2:])).mean
    for one, other in zip(found, halves, strict=True):
        assert other == pytest.approx(one)


@pytest.mark.parametrize(("first", "second"), [((7, 20), (3, 30)), ((10, 10), (4, 25)), ((0, 15), (0, 12))])
def test_a_difference_of_shares_of_other_photos_has_newcombes_interval(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    (hits, n), (others, m) = first, second
    left = of_own_photos(np.arange(n) < hits, 0, n + m)
    right = of_own_photos(np.arange(m) < others, n, n + m)
    found = mover_interval([(1.0, left), (-1.0, right)], left.value - right.value)
    assert found == pytest.approx(confint_proportions_2indep(hits, n, others, m, method="newcomb"), abs=1e-9)


def test_a_difference_of_shares_of_the_same_photos_has_newcombes_paired_interval() -> None:
    """His method 10 without continuity correction: the correlation is the phi of the fourfold table."""
    before, after = (np.repeat(row, [12, 9, 2, 17]).astype(bool) for row in ([1, 1, 0, 0], [1, 0, 1, 0]))
    left, right = (of_own_photos(hits, 0, 40) for hits in (before, after))
    found = mover_interval([(1.0, left), (-1.0, right)], left.value - right.value)
    phi = np.corrcoef(before, after)[0, 1]
    (l1, u1), (l2, u2) = (proportion_confint(int(hits.sum()), 40, method="wilson") for hits in (before, after))
    p1, p2 = before.mean(), after.mean()
    down = math.sqrt((p1 - l1) ** 2 - 2 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2)
    up = math.sqrt((u1 - p1) ** 2 - 2 * phi * (u1 - p1) * (p2 - l2) + (p2 - l2) ** 2)
    assert found == pytest.approx((p1 - p2 - down, p1 - p2 + up))


def test_a_difference_of_shares_never_leaves_what_a_difference_can_be() -> None:
    low, high = (
        pooled_share(np.full(2, hit), np.ones(2, bool), PhotoCounts(np.zeros(2, np.intp), 1)) for hit in (False, True)
    )
    assert mover_interval([(1.0, low), (-1.0, low), (1.0, high), (-1.0, high)], 0.0) == (-1.0, 1.0)


def test_a_difference_that_two_photos_carry_can_be_anything() -> None:
    half, same = (of_own_photos(np.array(hits), 0, 2) for hits in ([True, False], [True, False]))
    assert mover_interval([(1.0, half), (-1.0, same)], 0.0) == (-1, 1)


def test_a_share_that_one_photo_carries_can_be_anything() -> None:
    alone = pooled_share(np.ones(8, bool), np.ones(8, bool), PhotoCounts(np.zeros(8, np.intp), 3))
    assert estimate_share(alone) == (1.0, 0.0, 1.0, 8)
    several = pooled_share(np.ones(8, bool), np.ones(8, bool), PhotoCounts(np.arange(8) // 2, 4))
    assert estimate_share(several)[1:3] == pytest.approx(proportion_confint(4, 4, method="wilson"))


def test_a_change_over_many_photos_has_the_interval_of_a_drop() -> None:
    rng = np.random.default_rng(0)
    before, after = (rng.random(4_000) < rate for rate in (0.8, 0.7))
    found = share_change(*(mean_share(values.astype(float)) for values in (before, after)))
    expected = score_interval(after.astype(float) - before)
    assert found[1:3] == pytest.approx(expected, abs=2e-5)  # Student's quantile of 3,999 degrees is not quite 1.96
    assert share_change(mean_share(np.ones(9)), mean_share(np.ones(9))).ci_high > 0.2  # nine photos prove little
    few = mean_share(np.array([1.0, 0.0, np.nan, np.nan]))
    assert math.isnan(share_change(mean_share(np.ones(4)), few).ci_low)


def test_a_mean_by_the_jackknife_has_its_score_interval_widened_for_few_units() -> None:
    values = np.repeat([0.0, 1.0], [30, 970])
    found = jackknife_interval(0.97, (970 - values) / 999, RateBounds(0.0, 1.0))
    assert found == pytest.approx(proportion_confint(970, 1000, method="wilson"), abs=2e-4)
    low, high = jackknife_interval(1.0, np.ones(5), RateBounds(0.0, 1.0))
    assert (low < proportion_confint(5, 5, method="wilson")[0], high) == (True, 1.0)
    assert math.isnan(jackknife_interval(0.5, np.array([0.4, np.nan, 0.6]), RateBounds(0.0, 1.0)).low)


def drawn(rng: np.random.Generator, photos: int) -> tuple[AnswerMatrix, PhotoCounts]:
    """Two surrogates and a target, four pictures of a photo, which are alike."""
    hard = rng.normal(0, 1, (photos, 1)) + rng.normal(0, 1, (photos, 4))
    right = (hard < 0.5 + rng.normal(0, 0.6, (3, photos, 1)) + rng.normal(0, 0.6, (3, photos, 4))).reshape(3, -1)
    return AnswerMatrix(right.astype(float), right.astype(float), np.ones(right.shape)), PhotoCounts(
        np.arange(4 * photos) // 4, photos
    )


def test_intervals_of_curves_and_bias_hold_the_truth_with_twelve_photos() -> None:
    """The percentile bootstrap held it in 43 to 86 % of such cases (bench/mining_coverage.py measures many more)."""

    def told(answers: AnswerMatrix, photos: PhotoCounts) -> list[PhotoShare]:
        rows = trace_curves(answers, Rule("all"), list_subsets(2, np.random.default_rng(0)), photos)[2]
        return [*(row.accuracy for row in rows), cross_fit_bias(answers, 2, Rule("all"), photos)[0].of_others]

    truth = [found.value for found in told(*drawn(np.random.default_rng(0), 20_000))]
    inside = np.zeros(3)
    for seed in range(1, 301):
        found = [estimate_share(row) for row in told(*drawn(np.random.default_rng(seed), 12))]
        inside += [low <= true <= high for (_, low, high, _), true in zip(found, truth, strict=True)]
    assert (inside / 300 >= 0.93).all()


def test_estimates_are_right_on_average() -> None:
    """Planted truth: over many draws of sixty photos the mean of every estimate is what many photos show."""
    rule, groups = Rule("all"), list_subsets(2, np.random.default_rng(0))
    many, photos = drawn(np.random.default_rng(0), 20_000)
    true = [row.accuracy.value for row in trace_curves(many, rule, groups, photos)[2]]
    truth = [*true, cross_fit_bias(many, 2, rule, photos)[0].adjusted]
    found = []
    for seed in range(1, 201):
        answers, photos = drawn(np.random.default_rng(seed), 60)
        rows = [row.accuracy.value for row in trace_curves(answers, rule, groups, photos)[2]]
        found.append([*rows, cross_fit_bias(answers, 2, rule, photos)[0].adjusted])
    assert np.mean(found, axis=0) == pytest.approx(truth, abs=0.015)
