"""Statistics: bounds, symmetries and agreement with other implementations for any answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from answer_rows import CONTROL, ORIGINAL, SMALL, SWAP, Answer, answers_of, collect
from counterfoil.statistics.accuracy import clustered_wilson
from counterfoil.statistics.agreement import collect_ratings, measure_agreement
from counterfoil.statistics.answers import Answers
from counterfoil.statistics.confusion import error_consistency
from counterfoil.statistics.contrasts import compare_accuracies, compare_drops
from counterfoil.statistics.drops import mean_drops, measure_drops
from counterfoil.statistics.intervals import RATE, estimate, percentile_interval, score_interval, score_test
from counterfoil.statistics.significance import benjamini_hochberg, holm
from counterfoil.types import Drop, Verdict

changes = arrays.arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]))
shares = arrays.arrays(np.float64, st.integers(1, 30), elements=st.integers(0, 8).map(lambda eighths: eighths / 8))
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)
TOLERANCE = 1e-9


@given(changes, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_of_a_change_holds_the_mean_and_lies_within_what_is_possible(
    values: NDArray[np.float64], confidence: float
) -> None:
    interval = score_interval(values, confidence=confidence)
    reach = float(np.abs(values).max()) or 1.0
    assert -reach - TOLERANCE <= interval.low <= values.mean() + TOLERANCE
    assert values.mean() - TOLERANCE <= interval.high <= reach + TOLERANCE
    mirrored = score_interval(-values, confidence=confidence)
    assert (mirrored.low, mirrored.high) == pytest.approx((-interval.high, -interval.low), abs=TOLERANCE)
    wider = score_interval(values, confidence=0.999)
    assert wider.low <= interval.low + TOLERANCE
    assert interval.high <= wider.high + TOLERANCE


@given(shares)
def test_the_interval_of_a_rate_holds_it_and_lies_between_0_and_1_in_any_order(values: NDArray[np.float64]) -> None:
    rate = estimate(values, RATE)
    assert 0 <= rate.ci_low <= rate.value + TOLERANCE
    assert rate.value - TOLERANCE <= rate.ci_high <= 1
    assert rate.n == len(values)
    assert estimate(values[::-1], RATE) == rate
    assert estimate(np.append(values, np.nan), RATE) == rate


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=30))
def test_wilsons_interval_of_clustered_pictures_holds_the_share(rows: list[tuple[bool, int]]) -> None:
    right, photo = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    share = clustered_wilson(right, photo)
    assert 0 <= share.ci_low <= share.value <= share.ci_high <= 1


@given(arrays.arrays(np.float64, st.integers(1, 60), elements=st.floats(allow_nan=False)), st.floats(0.5, 0.99))
def test_a_percentile_interval_lies_within_the_values_and_grows_with_the_confidence(
    values: NDArray[np.float64], confidence: float
) -> None:
    interval, wider = percentile_interval(values, confidence=confidence), percentile_interval(values, confidence=0.999)
    assert values.min() <= wider.low <= interval.low <= interval.high <= wider.high <= values.max()


@given(changes)
def test_the_score_test_is_symmetric(values: NDArray[np.float64]) -> None:
    assert 0 <= score_test(values) <= 1
    assert score_test(-values) == pytest.approx(score_test(values), rel=1e-6)


@given(p_values, st.data())
def test_adjusted_p_values_keep_their_order_and_are_no_smaller(raw: list[float], data: st.DataObject) -> None:
    assert benjamini_hochberg(raw) == pytest.approx(false_discovery_control(raw).tolist())
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(raw)
        assert all(one - TOLERANCE <= other <= 1 for one, other in zip(raw, adjusted, strict=True))
        by_raw = [value for _, value in sorted(zip(raw, adjusted, strict=True))]
        assert by_raw == sorted(by_raw)
        order = data.draw(st.permutations(range(len(raw))))
        assert adjust([raw[place] for place in order]) == [adjusted[place] for place in order]
        assert adjust([*raw, math.nan])[:-1] == adjusted
    assert all(one <= other + TOLERANCE for one, other in zip(benjamini_hochberg(raw), holm(raw), strict=True))


@st.composite
def answer_lists(draw: st.DrawFn) -> list[Answer]:
    """Answers of two models to a few photos under four conditions, some of them missing or not scored."""
    photos = draw(st.integers(1, 12))
    conditions = [(ORIGINAL, 1), (CONTROL, 1), (SWAP, 2), (SMALL, 1)]
    places = [
        (model, f"cat/{photo}", condition, replicate)
        for model in ("first", "second")
        for condition, replicates in conditions
        for photo in range(photos)
        for replicate in range(replicates)
    ]
    outcomes = draw(st.lists(st.sampled_from("rrrrwwwwe-"), min_size=len(places), max_size=len(places)))
    return [
        Answer(model, sample, condition, outcome == "r", "error" if outcome == "e" else "scored", 10.0, replicate)
        for (model, sample, condition, replicate), outcome in zip(places, outcomes, strict=True)
        if outcome != "-"
    ]


def in_table_order(rows: Sequence[Answer]) -> Answers:
    return collect(rows, models=("first", "second"), conditions=(ORIGINAL, CONTROL, SWAP, SMALL))


@given(answer_lists(), st.data())
def test_the_order_of_photos_and_answers_changes_no_drop(rows: list[Answer], data: st.DataObject) -> None:
    shuffled = in_table_order(data.draw(st.permutations(rows)))
    table = in_table_order(rows)
    assert repr(measure_drops(shuffled)) == repr(measure_drops(table))  # as text, since NaN differs from itself
    assert repr(compare_drops(shuffled, "first", "second")) == repr(compare_drops(table, "first", "second"))


def numbers(row: Drop) -> tuple[float, ...]:
    return row.drop, row.ci_low, row.ci_high, row.accuracy, row.accuracy_original


@given(answer_lists())
def test_drops_lie_within_bounds_and_count_the_photos_of_both_sides(rows: list[Answer]) -> None:
    for row in measure_drops(in_table_order(rows)):
        scored = [one for one in rows if one.model == row.model and one.outcome == "scored"]
        edited = {one.sample_id for one in scored if one.condition == (row.attribute, row.edit, row.level)}
        assert row.n == len(edited & {one.sample_id for one in scored if one.condition == ORIGINAL})
        if row.n:
            assert -100 <= row.ci_low <= row.drop + TOLERANCE
            assert row.drop - TOLERANCE <= row.ci_high <= 100
            assert row.drop == pytest.approx(row.accuracy_original - row.accuracy, abs=1e-9)
            assert 0 <= row.p_value <= row.p_adjusted <= 1
        else:
            assert all(map(math.isnan, numbers(row)))


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, math.nan])] * 2), min_size=1, max_size=20))
def test_a_drop_changes_its_sign_where_before_and_after_change_places(pairs: list[tuple[float, float]]) -> None:
    before, after = zip(*pairs, strict=True)
    (there,) = measure_drops(answers_of({("m", ORIGINAL): before, ("m", SWAP): after}))
    (back,) = measure_drops(answers_of({("m", ORIGINAL): after, ("m", SWAP): before}))
    if there.n:
        expected = (-there.drop, -there.ci_high, -there.ci_low, there.accuracy_original, there.accuracy)
        assert numbers(back) == pytest.approx(expected, abs=1e-9)
        assert (back.n, back.p_value) == (there.n, there.p_value)


@given(answer_lists())
def test_two_models_compared_the_other_way_round_differ_by_the_sign(rows: list[Answer]) -> None:
    table = in_table_order(rows)
    for compare in (compare_drops, compare_accuracies):
        for there, back in zip(compare(table, "first", "second"), compare(table, "second", "first"), strict=True):
            assert there.n == back.n
            expected = (-there.difference, -there.ci_high, -there.ci_low, there.p_adjusted)
            assert (back.difference, back.ci_low, back.ci_high, back.p_adjusted) == pytest.approx(
                expected, abs=1e-7, nan_ok=True
            )


@settings(max_examples=20)
@given(answer_lists())
def test_the_mean_drop_lies_between_the_smallest_and_the_largest(rows: list[Answer]) -> None:
    complete = [row for row in rows if row.outcome == "scored"]
    table = in_table_order(complete)
    assume(complete)
    for mean in mean_drops(table, np.random.default_rng(0), leave_out={"original"}):
        own = [row.drop for row in measure_drops(table) if row.model == mean.model and row.n]
        if not math.isnan(mean.drop.value):
            assert min(own) - TOLERANCE <= mean.drop.value <= max(own) + TOLERANCE


verdict_rows = st.dictionaries(
    st.tuples(st.integers(0, 7), st.sampled_from("abc")), st.sampled_from(["yes", "no", "unsure"]), max_size=24
)


@settings(max_examples=30)
@given(verdict_rows)
def test_measures_of_agreement_lie_within_their_bounds(rows: dict[tuple[int, str], str]) -> None:
    verdicts = [Verdict(f"v{picture}", name, "seen", answer, 1.0) for (picture, name), answer in rows.items()]
    found = measure_agreement(collect_ratings(verdicts, "seen"), np.random.default_rng(0), resamples=50)
    for measure, least, most in (
        (found.percent, 0, 100), (found.cohen, -1, 1), (found.fleiss, -1, 1), (found.krippendorff, -1, 1),
    ):  # fmt: skip
        for value in (measure.value, measure.ci_low, measure.ci_high):
            assert math.isnan(value) or least - TOLERANCE <= value <= most + TOLERANCE
        if not math.isnan(measure.ci_low):
            assert measure.ci_low <= measure.value + TOLERANCE
            assert measure.value - TOLERANCE <= measure.ci_high
    by_name = measure_agreement(collect_ratings(verdicts[::-1], "seen"), np.random.default_rng(0), resamples=1)
    assert by_name.cohen.value == pytest.approx(found.cohen.value, nan_ok=True)


@settings(max_examples=20)
@given(answer_lists())
def test_error_consistency_is_a_kappa_and_the_same_for_both_models(rows: list[Answer]) -> None:
    table = in_table_order(rows)
    swapped = collect(rows, models=("second", "first"), conditions=(ORIGINAL, CONTROL, SWAP, SMALL))
    rng = np.random.default_rng(0)
    (there,), (back,) = (error_consistency(each, rng) for each in (table, swapped))
    assert math.isnan(there.kappa.value) or -1 <= there.kappa.value <= 1
    own = [row for row in rows if row.model == "first"]
    (same,) = error_consistency(in_table_order([*own, *(row._replace(model="second") for row in own)]), rng)
    assert math.isnan(same.kappa.value) or same.kappa.value == pytest.approx(1)
    assert (back.pictures, back.observed, back.kappa.value) == pytest.approx(
        (there.pictures, there.observed, there.kappa.value), nan_ok=True
    )
