from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss
from statsmodels.stats.proportion import proportion_confint

from counterfoil.statistics.agreement import Agreement, Ratings, collect_ratings, latest_verdicts, measure_agreement
from counterfoil.types import Verdict

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): four observers, twelve units, 0 where missing
OBSERVERS = ("123321412000", "123322412503", "033323422510", "123324412510")
# Fleiss, Psychological Bulletin 76 (1971), table 1: the six diagnoses of each of thirty patients
DIAGNOSES = (
    "444444 222555 233335 555555 222444 113333 333355 113334 114444 555555 144444 124444 222333 144444 224445",
    "333335 111455 111112 224444 133555 555555 244444 224555 114444 144445 222224 111155 224444 133333 555555",
)


def ratings_from(rows: NDArray[np.intp]) -> Ratings:
    pictures, annotators = rows.shape
    return Ratings(
        tuple(f"p{i}" for i in range(pictures)),
        tuple(f"a{i}" for i in range(annotators)),
        tuple(str(i) for i in range(int(rows.max()) + 1)),
        rows,
    )


def random_ratings(seed: int, *, missing: float = 0.3) -> NDArray[np.intp]:
    """Forty pictures, five annotators, three answers; most agree with the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, (40, 1))
    codes = np.where(rng.random((40, 5)) < 0.7, truth, rng.integers(0, 3, (40, 5)))
    return np.where(rng.random((40, 5)) < missing, -1, codes).astype(np.intp)


def measured(rows: NDArray[np.intp]) -> Agreement:
    """The measures; their intervals are of a single resample and mean nothing."""
    return measure_agreement(ratings_from(rows), np.random.default_rng(0), resamples=1)


def test_alpha_of_krippendorffs_own_example() -> None:
    rows = np.array([[int(digit) - 1 for digit in row] for row in OBSERVERS], np.intp).T
    assert measured(rows).krippendorff.value == pytest.approx(0.743, abs=5e-4)


def test_kappa_of_fleiss_own_example() -> None:
    rows = np.array([[int(digit) - 1 for digit in row] for line in DIAGNOSES for row in line.split()], np.intp)
    assert measured(rows).fleiss.value == pytest.approx(0.430, abs=5e-4)
    assert measured(rows).percent.value == pytest.approx(55.6, abs=0.05)


def test_kappa_of_fleiss_cohen_and_everitts_example() -> None:
    """Psychological Bulletin 72 (1969): 200 patients, two diagnosticians, three diagnoses."""
    table = np.array([[106, 10, 4], [22, 28, 10], [2, 12, 6]])
    found = measured(np.stack([np.repeat(place.ravel(), table.ravel()) for place in np.indices((3, 3))], axis=1))
    assert found.cohen.value == pytest.approx(0.429, abs=5e-4)
    assert found.cohen.value == pytest.approx(cohens_kappa(table).kappa)


@pytest.mark.parametrize("seed", range(3))
def test_measures_are_those_of_the_libraries(seed: int) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    whole, holed = random_ratings(seed, missing=0), random_ratings(seed)
    assert measured(whole).fleiss.value == pytest.approx(statsmodels_fleiss(aggregate_raters(whole)[0]))
    reliability = np.where(holed < 0, np.nan, holed).T
    expected = krippendorff.alpha(reliability, level_of_measurement="nominal")
    assert measured(holed).krippendorff.value == pytest.approx(expected)
    table = np.zeros((3, 3))
    np.add.at(table, (whole[:, 0], whole[:, 1]), 1)
    assert measured(whole[:, :2]).cohen.value == pytest.approx(cohens_kappa(table).kappa)


def test_measures_of_a_case_worked_by_hand() -> None:
    """Three annotators, four pictures: yes yes yes, yes yes no, no no no, yes no -."""
    rows = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, -1]], np.intp)
    found = measure_agreement(ratings_from(rows), np.random.default_rng(0), resamples=50)
    assert found.percent.value == pytest.approx(100 * (1 + 1 / 3 + 1 + 0) / 4)
    by_chance = (6 / 11) ** 2 + (5 / 11) ** 2
    assert found.fleiss.value == pytest.approx(((7 / 12) - by_chance) / (1 - by_chance))
    # coincidences: 3 + 1 + 3 + 0 of 11 answers match, and 6 * 5 + 5 * 4 of 11 * 10 pairs by chance
    assert found.krippendorff.value == pytest.approx(1 - (1 - 7 / 11) / (1 - 50 / 110))
    # a0 and a1 share four pictures (3 of 4 agree), a0 and a2 three (2), a1 and a2 three (2)
    first = (3 / 4 - (3 * 2 + 1 * 2) / 16) / (1 - 8 / 16)
    second = (2 / 3 - (2 * 1 + 1 * 2) / 9) / (1 - 4 / 9)
    assert found.cohen.value == pytest.approx((first + 2 * second) / 3)
    assert found.percent.n == 4


def test_intervals_are_those_of_pictures_resampled_one_by_one() -> None:
    rows = random_ratings(7)
    found = measure_agreement(ratings_from(rows), np.random.default_rng(1))
    rng = np.random.default_rng(2)
    shared = rows[(rows >= 0).sum(axis=1) > 1]
    drawn = [measured(shared[rng.integers(0, len(shared), len(shared))]).krippendorff.value for _ in range(2000)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.krippendorff.ci_low == pytest.approx(low, abs=0.03)
    assert found.krippendorff.ci_high == pytest.approx(high, abs=0.03)
    for measure in (found.percent, found.cohen, found.fleiss, found.krippendorff):
        assert measure.ci_low < measure.value < measure.ci_high
    assert found == measure_agreement(ratings_from(rows), np.random.default_rng(1))


def test_where_all_say_the_same_there_is_no_chance_to_compare_with() -> None:
    found = measure_agreement(ratings_from(np.zeros((5, 3), np.intp)), np.random.default_rng(0), resamples=20)
    assert found.percent.value == 100
    assert math.isnan(found.fleiss.value)
    assert math.isnan(found.krippendorff.value)
    assert math.isnan(found.cohen.value)


def test_few_disagreements_have_an_interval_though_some_resamples_miss_them_all() -> None:
    rows = np.zeros((200, 3), np.intp)
    rows[:4], rows[4, 0] = 1, 1  # one resample in 150 has none of the five
    found = measure_agreement(ratings_from(rows), np.random.default_rng(0)).krippendorff
    assert found.ci_low < found.value < found.ci_high
    rows[:4] = 0  # one is left, and a third of the resamples miss it
    assert math.isnan(measure_agreement(ratings_from(rows), np.random.default_rng(0)).krippendorff.ci_low)


def test_few_pictures_on_which_all_agree_leave_the_measures_uncertain() -> None:
    """A bootstrap alone would be sure: every resample agrees as well."""
    found = measure_agreement(ratings_from(np.array([[0] * 3, [1] * 3] * 5, np.intp)), np.random.default_rng(0))
    for measure, most in ((found.percent, 100), (found.cohen, 1), (found.fleiss, 1), (found.krippendorff, 1)):
        assert (measure.value, measure.ci_high) == (most, most)
    assert found.percent.ci_low < 100 * proportion_confint(10, 10, method="wilson")[0]
    assert found.krippendorff.ci_low < 0.6


def test_intervals_hold_the_truth_with_few_pictures() -> None:
    """Twelve pictures, three annotators who are right nine times in ten, and as many pictures of each answer."""
    truth = {"percent": 82.0, "fleiss": 0.64, "krippendorff": 0.64}  # 0.9^2 + 0.1^2, and (0.82 - 0.5) / 0.5
    inside = dict.fromkeys(truth, 0)
    for seed in range(150):
        rng = np.random.default_rng(seed)
        rows = np.where(rng.random((12, 3)) < 0.9, np.arange(12)[:, None] % 2, 1 - np.arange(12)[:, None] % 2)
        found = measure_agreement(ratings_from(rows.astype(np.intp)), rng, resamples=200)
        for name, true in truth.items():
            measure = getattr(found, name)
            inside[name] += measure.ci_low <= true <= measure.ci_high
    assert min(inside.values()) / 150 > 0.93


def test_intervals_end_where_the_measures_do() -> None:
    against = np.array([[0, 1], [1, 0]] * 5, np.intp)
    found = measure_agreement(ratings_from(against), np.random.default_rng(0), resamples=400)
    assert (found.cohen.value, found.cohen.ci_low) == (-1, -1)
    half = measure_agreement(ratings_from(np.array([[0, 0], [1, 0], [1, 1]], np.intp)), np.random.default_rng(0))
    assert 0 <= half.percent.ci_low < half.percent.ci_high <= 100


def test_pictures_of_one_annotator_tell_nothing() -> None:
    rows = np.array([[0, -1], [1, -1]], np.intp)
    found = measure_agreement(ratings_from(rows), np.random.default_rng(0), resamples=20)
    assert found.percent.n == 0
    assert math.isnan(found.percent.value)
    assert math.isnan(found.krippendorff.ci_low)
    assert math.isnan(found.cohen.value)


def test_the_summary_names_every_measure_with_its_interval() -> None:
    summary = measure_agreement(ratings_from(random_ratings(3)), np.random.default_rng(0), resamples=200).summary
    assert summary["krippendorff_alpha_low"] < summary["krippendorff_alpha"] < summary["krippendorff_alpha_high"]
    assert {"percent_agreement", "cohen_kappa", "fleiss_kappa", "pictures"} <= set(summary)


def test_a_correction_takes_the_place_of_the_answer_and_controls_stay_out() -> None:
    rows = [
        Verdict(variant_id="v1", annotator="ann", question="seen", answer="no", seconds=2.0, version=2),
        Verdict(variant_id="v1", annotator="ann", question="seen", answer="yes", seconds=2.0, version=1),
        Verdict(variant_id="v1", annotator="bob", question="seen", answer="yes", seconds=2.0),
        Verdict(variant_id="v1", annotator="bob", question="seen", answer="no", seconds=2.0, control="repeat"),
        Verdict(variant_id="v2", annotator="bob", question="seen", answer="no", seconds=2.0, control="bad"),
        Verdict(variant_id="v1", annotator="bob", question="only", answer="no", seconds=2.0),
    ]
    assert len(latest_verdicts(rows)) == 5
    table = collect_ratings(rows, "seen", answers=("yes", "no", "unsure"))
    assert table.pictures == ("v1",)
    assert table.counts.tolist() == [[1, 1, 0]]
