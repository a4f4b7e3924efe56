"""How sure models are and where in the picture they are right: the numbers, from answers and from runs' folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from answer_rows import ORIGINAL, SAME, SMALL, SWAP, details_of
from counterfoil.report.content import ReportContent, build_content
from counterfoil.report.page import render_page
from counterfoil.statistics.answers import Details
from counterfoil.statistics.calibration import confidence_changes, reliability_curve
from counterfoil.store.parquet import read_table, write_table
from counterfoil.store.prediction_tables import CENTRE_COLUMNS, VARIANT_COLUMNS
from counterfoil.study.runs import open_runs
from counterfoil.study.thumbnails import ThumbnailCache
from run_folders import breaks_on, write_run


def seeded() -> np.random.Generator:
    return np.random.default_rng(5)


def two_levels(photos: int = 40) -> Details:
    """Sure and right before; after one swap half wrong and nearly as sure, after the other right and less sure."""
    truth = ["cat"] * photos
    half = photos // 2
    return details_of(
        {("net", ORIGINAL): truth, ("net", SWAP): ["dog"] * half + ["cat"] * half, ("net", SAME): truth},
        truth,
        scores={
            ORIGINAL: [(1.0, 0.0)] * photos,
            SWAP: [(0.9, 0.1)] * photos,
            SAME: [(0.7, 0.2)] * photos,
        },
    )


def test_an_attribute_is_the_mean_of_its_levels_each_measured_on_its_own() -> None:
    (row,) = confidence_changes(two_levels(), seeded())
    assert row.before == pytest.approx((100, 100, 0))
    assert row.after == pytest.approx((80, 75, 35))  # the mean of (90, 50, 40) and (70, 100, 30)
    assert row.excess_rise[:1] + row.excess_rise[3:] == pytest.approx((5, 40))
    assert row.error_rise.value == pytest.approx(35)
    assert row.excess_rise.ci_low < 5 < row.excess_rise.ci_high
    assert row.error_rise.ci_low < 35 < row.error_rise.ci_high


def test_the_calibration_error_is_that_of_the_published_formula() -> None:
    rng = seeded()
    truth = ["cat"] * 300
    said = np.where(rng.random(300) < 0.6, "cat", "dog").tolist()
    sure = rng.uniform(0.3, 1.0, 300)
    scores = {ORIGINAL: [(1.0, 0.0)] * 300, SMALL: [(float(score), 0.0) for score in sure]}
    (row,) = confidence_changes(
        details_of({("net", ORIGINAL): truth, ("net", SMALL): said}, truth, scores=scores), seeded()
    )
    right = np.array([answer == "cat" for answer in said])
    accuracy, mean, n = (
        stats.binned_statistic(sure, values, how, np.linspace(0, 1, 16)).statistic
        for values, how in ((right, "mean"), (sure, "mean"), (right, "count"))
    )
    assert row.after.error == pytest.approx(100 * np.nansum(n * np.abs(accuracy - mean)) / 300)


def test_many_photos_resampled_in_groups_give_the_interval_of_a_paired_mean() -> None:
    rng = seeded()
    photos = 1200
    truth = ["cat"] * photos
    said = np.where(rng.random(photos) < 0.6, "cat", "dog").tolist()
    sure = rng.uniform(0.3, 1.0, photos)
    scores = {ORIGINAL: [(0.9, 0.1)] * photos, SWAP: [(float(score), 0.0) for score in sure]}
    (row,) = confidence_changes(
        details_of({("net", ORIGINAL): truth, ("net", SWAP): said}, truth, scores=scores), seeded()
    )
    excess = 100 * (sure - np.array([answer == "cat" for answer in said]))
    assert row.excess_rise.value == pytest.approx(excess.mean() + 10)  # before it was 10 points too modest
    width = row.excess_rise.ci_high - row.excess_rise.ci_low
    assert width == pytest.approx(2 * 1.96 * excess.std() / np.sqrt(photos), rel=0.12)


def test_a_curve_goes_by_rising_confidence_in_parts_of_as_many_answers() -> None:
    truth = ["cat"] * 10
    scores = {ORIGINAL: [(score / 10, 0.0) for score in range(10)]}
    details = details_of({("net", ORIGINAL): ["dog"] * 5 + ["cat"] * 5}, truth, scores=scores)
    curve = reliability_curve(details, "net", {"original"}, parts=2)
    assert [tuple(point) for point in curve] == [pytest.approx((20, 0, 5)), pytest.approx((70, 100, 5))]
    assert reliability_curve(details, "net", {"background"}) == []


def told(run: Path) -> ReportContent:
    return build_content(open_runs([run]), ThumbnailCache((run,), lambda variant: None))


def centred(run: Path) -> Path:
    """The same run, its first 20 photos with the object at the left and the others at the right."""
    path = run / "variants.parquet"
    table = read_table(path)
    left = np.array([name < "fish/020.jpg" for name in table["sample_id"]])
    table |= {"centre_x": np.where(left, 0.1, 0.9), "centre_y": np.full(len(left), 0.5)}
    write_table(path, {**VARIANT_COLUMNS, **CENTRE_COLUMNS}, table)
    return run


def test_a_run_is_told_by_confidence_and_by_place(tmp_path: Path) -> None:
    run = centred(write_run(tmp_path / "run", {"net": breaks_on({"original": 10, "background-swap": 30})}))
    content = told(run)
    by_attribute = {row.attribute: row for row in content.confidences.changes}
    assert by_attribute["background"].before == pytest.approx((80, 75, 5))
    assert by_attribute["background"].after == pytest.approx((80, 25, 55))
    assert {row.condition.attribute for row in content.confidences.margins} == {"control", "background", "size"}
    (unedited,) = [row for row in content.places if row.kind == "unedited"]
    assert unedited.positions.n[1].tolist() == [20, 0, 20]
    assert unedited.positions.accuracy[1, [0, 2]].tolist() == [50, 100]
    page = render_page(content)
    assert 'title="middle left: 50.0 %, n = 20"' in page
    assert "Moved there by the position edits" not in page


def test_a_run_from_before_centres_were_noted_has_no_map_and_is_read_all_the_same(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"net": breaks_on({"background-swap": 20})})
    path = run / "variants.parquet"
    write_table(path, VARIANT_COLUMNS, {name: read_table(path)[name] for name in VARIANT_COLUMNS})
    content = told(run)
    assert content.has_drops
    assert 'id="places"' not in render_page(content)
