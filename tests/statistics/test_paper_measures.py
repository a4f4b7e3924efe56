from __future__ import annotations

import csv
import math
import statistics

import numpy as np
import pytest
from scipy import stats

from answer_rows import CONTROL, ORIGINAL, SAME, SMALL, SWAP, Answer, answers_of, collect
from counterfoil.errors import UserError
from counterfoil.published.imagenet_9.score import background_gap, survive_all
from counterfoil.published.imagenet_c.score import alexnet_errors, corruption_error
from counterfoil.statistics.accuracy import fold_accuracy, stratified_folds
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.dose import size_thresholds
from counterfoil.statistics.drops import mean_drops
from counterfoil.statistics.effective_robustness import effective_robustness, fit_baseline
from counterfoil.statistics.variance_score import (
    SCORE_DEFINITIONS,
    ScoreDefinition,
    class_accuracies,
    estimate_variance_score,
    shapiro_wilk,
    variance_score,
)
from locations import DATA


def table(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((DATA / name).read_text(encoding="utf-8").splitlines()))


def seeded() -> np.random.Generator:
    return np.random.default_rng(11)


def test_mean_drop_leaves_out_the_control_and_counts_every_condition_once() -> None:
    answers = answers_of(
        {
            ("net", ORIGINAL): [1] * 20,
            ("net", CONTROL): [0] * 20,
            ("net", SWAP): [0] * 10 + [1] * 10,
            ("net", SMALL): [0] * 2 + [1] * 18,
        }
    )
    (row,) = mean_drops(answers, seeded())
    assert (row.model, row.conditions, row.drop.n) == ("net", 2, 20)
    assert row.drop.value == pytest.approx((50 + 10) / 2)
    assert row.drop.ci_low < 30 < row.drop.ci_high
    with_control = mean_drops(answers, seeded(), leave_out={"original"})[0]
    assert with_control.drop.value == pytest.approx((100 + 50 + 10) / 3)


def test_mean_drop_interval_is_that_of_scipy_within_monte_carlo_error() -> None:
    rng = np.random.default_rng(2)
    rows = {("net", ORIGINAL): [1.0] * 150}
    rows |= {("net", condition): (rng.random(150) < 0.7).astype(float).tolist() for condition in (SWAP, SMALL)}
    losses = 1 - (np.array(rows["net", SWAP]) + np.array(rows["net", SMALL])) / 2
    reference = stats.bootstrap((losses,), np.mean, n_resamples=9_999, method="percentile", rng=rng).confidence_interval
    drop = mean_drops(answers_of(rows), seeded())[0].drop
    assert (drop.ci_low, drop.ci_high) == pytest.approx((100 * reference.low, 100 * reference.high), abs=1.0)


@pytest.mark.parametrize("row", table("imagenet9_results.csv"), ids=lambda row: row["model"])
def test_background_gap_is_the_published_one(row: dict[str, str]) -> None:
    n = 1_000
    right = {
        condition: round(float(row[name]) / 100 * n) for condition, name in ((SAME, "mixed_same"), (SWAP, "mixed_rand"))
    }
    answers = answers_of({("net", condition): [1] * many + [0] * (n - many) for condition, many in right.items()})
    gap = background_gap(answers, "net", same=SAME, other=SWAP)
    assert gap.value == pytest.approx(float(row["bg_gap"]), abs=0.051)
    assert gap.ci_low <= gap.value <= gap.ci_high


def test_a_photo_survives_only_if_right_under_every_condition() -> None:
    answers = answers_of({("net", SWAP): [1, 1, 0, 1], ("net", SAME): [1, 0, 1, np.nan]})
    survived = survive_all(answers, "net", [SWAP, SAME])
    assert (survived.value, survived.n) == pytest.approx((100 / 3, 3))  # the fourth was not answered everywhere
    reference = stats.binomtest(1, 3).proportion_ci(method="wilson")
    assert (survived.ci_low, survived.ci_high) == pytest.approx((100 * reference.low, 100 * reference.high))


def test_variance_score_worked_by_hand_in_every_definition() -> None:
    accuracies = np.array([[0.9, 0.7, 0.8], [0.5, 0.1, 0.6]])  # (scenarios, classes)
    for definition in SCORE_DEFINITIONS:
        spread = {
            ("variance", "population"): statistics.pvariance,
            ("variance", "sample"): statistics.variance,
            ("deviation", "population"): statistics.pstdev,
            ("deviation", "sample"): statistics.stdev,
        }[definition.spread, definition.divisor]
        sigma_e = spread([0.8, 0.4])
        within = (spread([0.9, 0.7, 0.8]) + spread([0.5, 0.1, 0.6])) / 2
        sigma_i = within if definition.classes == "within" else spread([0.7, 0.4, 0.7])
        score = variance_score(accuracies, definition)
        assert (score.sigma_classes, score.sigma_scenarios) == pytest.approx((sigma_i, sigma_e))
        assert score.score == pytest.approx(1 - sigma_i - sigma_e)
    assert len({definition.name for definition in SCORE_DEFINITIONS}) == 8


@pytest.mark.parametrize(
    "row", table("ximagenet12_top1.csv"), ids=lambda row: f"{row['model']} {row['pretraining'][:3]}"
)
def test_variance_over_scenarios_of_the_published_table(row: dict[str, str]) -> None:
    values = [float(value) / 100 for name, value in row.items() if name not in ("model", "pretraining")]
    score = variance_score(np.array(values)[:, None])  # the table has no classes: sigma_i of one class is nothing
    assert score.sigma_classes == pytest.approx(0)
    assert score.sigma_scenarios == pytest.approx(statistics.pvariance(values))
    sample = variance_score(np.array(values)[:, None], ScoreDefinition(divisor="sample"))
    assert math.isnan(sample.score)


def test_the_noise_of_the_photos_is_taken_out_as_a_plain_loop_does() -> None:
    rng = np.random.default_rng(8)
    label = np.repeat(np.arange(3), 20)
    correct = (rng.random((4, 60)) < np.array([0.9, 0.8, 0.6, 0.3])[:, None]).astype(float)
    scores = []
    for _ in range(2_000):
        drawn = np.concatenate([rng.choice(np.flatnonzero(label == c), 20) for c in range(3)])
        scores.append(variance_score(class_accuracies(correct[:, drawn], label[drawn])).score)
    clean = estimate_variance_score(correct, label, seeded())
    value, missed = variance_score(class_accuracies(correct, label)).score, 20 / 19
    expected = value + missed * (value - np.mean(scores))
    gaps = math.sqrt(missed) * (np.array(scores) - np.mean(scores))
    assert clean.value == pytest.approx(expected, abs=0.003)
    assert clean[1:3] == pytest.approx(
        (expected - np.quantile(gaps, 0.975), expected - np.quantile(gaps, 0.025)), abs=0.006
    )


@pytest.mark.parametrize("photos", [6, 30])
def test_the_interval_of_the_variance_score_covers_the_score_of_the_chances(photos: int) -> None:
    rng, covered = np.random.default_rng(3), []
    label = np.repeat(np.arange(8), photos)
    for _ in range(100):
        chance = np.clip(0.7 + rng.normal(0, 0.1, 8) + rng.normal(0, 0.1, (6, 1)), 0.05, 0.95)
        correct = (rng.random((6, len(label))) < chance[:, label]).astype(float)
        row = estimate_variance_score(correct, label, seeded(), resamples=200)
        covered.append(row.ci_low <= variance_score(chance).score <= row.ci_high)
    assert np.mean(covered) >= 0.9  # the percentiles of the resamples alone cover 0 and 4 %


def test_a_score_of_standard_deviations_has_no_interval() -> None:
    correct = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0]])
    row = estimate_variance_score(correct, np.array([0, 0, 1, 1]), seeded(), definition=ScoreDefinition("deviation"))
    assert np.isnan(row[:3]).all()


def test_normality_is_shapiro_and_wilks() -> None:
    values = np.array([[float(row["blur_bg"]), float(row["rand_bg"])] for row in table("ximagenet12_top1.csv")])
    reference = stats.shapiro(values.ravel())
    assert shapiro_wilk(values) == pytest.approx((reference.statistic, reference.pvalue, 30))
    assert shapiro_wilk(values).p_value < 0.01


def test_folds_spread_every_class_evenly_and_lose_no_photo() -> None:
    label = np.array([0] * 50 + [1] * 31 + [2] * 7)
    fold = stratified_folds(label, 12, seeded())
    assert np.ptp(np.bincount(fold, minlength=12)) <= 1
    for value in range(3):
        assert np.ptp(np.bincount(fold[label == value], minlength=12)) <= 1
    assert not np.array_equal(fold, stratified_folds(label, 12, np.random.default_rng(12)))


def test_fold_accuracy_worked_by_hand() -> None:
    result = fold_accuracy(np.array([1, 1, 0, 1, 0, 0], bool), np.array([0, 0, 1, 1, 2, 2]))
    assert (result.mean, result.deviation) == pytest.approx((50, statistics.stdev([100, 50, 0])))


def test_more_folds_than_photos_are_refused() -> None:
    with pytest.raises(UserError, match="expected 2 to 3 folds for 3 photos, got 4"):
        stratified_folds(np.zeros(3, np.intp), 4, seeded())


def test_alexnet_against_itself_has_a_corruption_error_of_100() -> None:
    errors = {name: [error] * 5 for name, error in alexnet_errors().items()}
    result = corruption_error(errors)
    assert len(result.by_corruption) == 15
    assert result.mean == pytest.approx(100)


def test_corruption_error_worked_by_hand() -> None:
    result = corruption_error({"snow": [0.1, 0.2, 0.3, 0.4, 0.5], "fog": [0.2] * 5})
    assert result.by_corruption == pytest.approx({"snow": 100 * 1.5 / (5 * 0.866816), "fog": 100 * 0.2 / 0.819324})
    assert result.mean == pytest.approx(sum(result.by_corruption.values()) / 2)


def test_corruptions_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(UserError, match="got rain"):
        corruption_error({"rain": [0.1] * 5})
    with pytest.raises(UserError, match="expected 5 severities, got 3 of snow"):
        corruption_error({"snow": [0.1] * 3})


def test_effective_robustness_is_the_distance_from_the_line_of_log_odds() -> None:
    clean, shifted = [0.6, 0.7, 0.8, 0.9], [0.30, 0.42, 0.50, 0.71]
    slope, intercept, *_ = stats.linregress(np.log(np.array(clean) / (1 - np.array(clean))),
                                            np.log(np.array(shifted) / (1 - np.array(shifted))))  # fmt: skip
    baseline = fit_baseline(clean, shifted)
    assert baseline == pytest.approx((slope, intercept))
    expected = 1 / (1 + math.exp(-(slope * math.log(0.75 / 0.25) + intercept)))
    assert effective_robustness(0.75, 0.6, baseline) == pytest.approx(0.6 - expected)
    with pytest.raises(UserError, match="between 0 and 1, got 1"):
        baseline.expected(1.0)


def shrunk(correct: dict[tuple[str, float], list[int]]) -> list[Answer]:
    return [
        Answer("net", f"cat/{photo}", Condition("original" if level == "none" else "size", "size", level), bool(right),
               object_share=share)
        for (level, share), row in correct.items()
        for photo, right in enumerate(row)
    ]  # fmt: skip


def test_level_of_a_fall_is_interpolated_between_levels() -> None:
    rows = shrunk(
        {
            ("none", 30.0): [1] * 100,
            ("full", 50.0): [1] * 100,
            ("0.1", 10.0): [0] * 5 + [1] * 95,
            ("0.05", 5.0): [0] * 25 + [1] * 75,
        }
    )
    (fall,) = size_thresholds(collect(rows), seeded())
    assert (fall.reached, fall.n) == ("between levels", 100)
    assert fall.level == pytest.approx(10 - 5 * (10 - 5) / (25 - 5))  # from 5 to 25 points between 10 % and 5 %
    assert fall.ci_low < fall.level < fall.ci_high
    assert size_thresholds(collect(rows), seeded(), points=60)[0].reached == "not reached"
