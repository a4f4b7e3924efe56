"""Error ratio, shape bias, effective robustness, prediction for a new class, rank correlation: against references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from counterfoil.statistics.class_variation import predict_new_class
from counterfoil.statistics.effective_robustness import Baseline, estimate_effective_robustness
from counterfoil.statistics.error_ratio import error_ratio
from counterfoil.statistics.rank_correlation import correlate_ranks
from counterfoil.statistics.shape_bias import parse_cue_conflict, shape_bias


def test_the_error_ratio_is_the_factors_error_over_the_whole_error() -> None:
    wrong = np.tile([1, 1, 0, 0, 1, 0, 0, 0, 0, 0], 4).astype(float)[:, None]
    factor = np.tile([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], 4).astype(bool)[:, None]
    row = error_ratio(wrong, np.ones((40, 1)), factor, np.random.default_rng(0))
    assert row.value == pytest.approx((2 / 4) / (3 / 10))
    assert row.n == 16
    assert row.ci_low < row.value < row.ci_high


def test_the_interval_of_the_error_ratio_covers_the_true_ratio() -> None:
    rng, covered = np.random.default_rng(1), 0
    truth = 0.4 / (0.3 * 0.4 + 0.7 * 0.2)
    for _ in range(60):
        factor = rng.random(200) < 0.3
        wrong = (rng.random(200) < np.where(factor, 0.4, 0.2)).astype(float)
        row = error_ratio(wrong[:, None], np.ones((200, 1)), factor[:, None], np.random.default_rng(0))
        covered += row.ci_low <= truth <= row.ci_high
    assert 0.87 <= covered / 60 <= 1.0


def test_without_errors_or_without_the_factor_there_is_no_ratio() -> None:
    none, some = np.zeros((8, 1)), np.ones((8, 1), bool)
    assert np.isnan(error_ratio(none, np.ones((8, 1)), some, np.random.default_rng(0)).value)
    assert np.isnan(error_ratio(none + 1, np.ones((8, 1)), ~some, np.random.default_rng(0)).value)


def test_shape_bias_counts_decisions_for_either_cue_on_conflicts_alone() -> None:
    shape, texture = np.array([0, 0, 0, 0, 1]), np.array([1, 1, 1, 1, 1])
    answer = np.array([0, 0, 0, 1, 1])  # the last picture is no conflict
    row = shape_bias(answer, shape, texture)
    assert (row.value, row.n) == (75.0, 4)


@pytest.mark.parametrize(
    ("name", "cues"),
    [
        ("airplane1-bicycle2.png", ("airplane", "bicycle")),
        ("0001_s5n_dnn_0_airplane_00_airplane1-oven11.png", ("airplane", "oven")),
        ("cat/cat10-dog2", ("cat", "dog")),
        ("n01440764_10026.JPEG", None),
    ],
)
def test_cue_conflicts_are_known_by_their_names(name: str, cues: tuple[str, str] | None) -> None:
    assert parse_cue_conflict(name) == cues


def test_effective_robustness_is_the_distance_from_a_given_line() -> None:
    clean = (np.arange(200) < 150).astype(float)[None]
    shifted = (np.arange(200) < 120).astype(float)[None]
    line = Baseline(1.0, -1.0)
    (row,) = estimate_effective_robustness(clean, shifted, np.random.default_rng(0), line)
    expected = 1 / (1 + np.exp(-(np.log(0.75 / 0.25) - 1)))
    assert row.value == pytest.approx(100 * (0.6 - expected))
    assert row.ci_low < row.value < row.ci_high


def test_models_on_their_own_line_have_no_effective_robustness_but_the_odd_one_has() -> None:
    rng = np.random.default_rng(3)
    clean_share = np.array([0.6, 0.7, 0.8, 0.9, 0.75])
    odds = np.log(clean_share / (1 - clean_share)) - 1
    shifted_share = 1 / (1 + np.exp(-odds))
    shifted_share[4] += 0.2
    clean, shifted = (rng.random((5, 1500)) < share[:, None] for share in (clean_share, shifted_share))
    rows = estimate_effective_robustness(clean.astype(float), shifted.astype(float), np.random.default_rng(0))
    assert rows[4].ci_low > 5
    assert all(row.value < rows[4].value for row in rows[:4])


def test_the_mean_of_a_new_class_falls_into_the_predicted_range_95_times_in_100() -> None:
    rng, inside, known = np.random.default_rng(5), 0, 0
    for _ in range(800):
        means = rng.normal(10, 4, 13)
        label = np.repeat(np.arange(13), 8)
        values = means[label] + rng.normal(0, 10, len(label))
        row = predict_new_class(values[label < 12], label[label < 12])
        assert row is not None
        inside += row.low <= values[label == 12].mean() <= row.high
        known += row.mean.ci_low <= 10 <= row.mean.ci_high
    assert 0.93 <= inside / 800 <= 0.97
    assert 0.93 <= known / 800 <= 0.97


def test_few_classes_give_no_prediction() -> None:
    label = np.repeat(np.arange(4), 10)
    assert predict_new_class(np.arange(40.0), label) is None
    assert predict_new_class(np.arange(40.0), np.full(40, -1)) is None


def test_the_rank_correlation_and_its_exact_p_are_scipys() -> None:
    first, second = np.array([0.1, 0.4, 0.3, 0.9, 0.7, 0.2]), np.array([3.0, 5.0, 1.0, 9.0, 7.0, 2.0])
    row = correlate_ranks(first, second, np.random.default_rng(0))
    assert row.rho == pytest.approx(stats.spearmanr(first, second).statistic)
    exact = stats.permutation_test(
        (second,), lambda y: stats.spearmanr(first, y).statistic, permutation_type="pairings", n_resamples=np.inf
    )
    assert row.p_value == pytest.approx(exact.pvalue)
    assert np.isnan(correlate_ranks(first, np.ones(6), np.random.default_rng(0)).rho)
