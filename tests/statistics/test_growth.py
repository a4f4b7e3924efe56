"""The growth of a drop against a baseline: its bounds by simulation, and the photos that `plan --gate` counts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from answer_rows import ORIGINAL, SAME, SMALL, SWAP, answers_of
from counterfoil.errors import UserError
from counterfoil.report.gate_margins import Margins, judge_growth, parse_margins
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.families import DIVISORS, MAIN_FAMILY, SURFACE, family_of
from counterfoil.statistics.growth import (
    ACCURACY,
    LEVEL,
    Growth,
    compare_losses,
    divide_level,
    measure_growth,
    photos_to_hold,
    spread_of_changes,
)
from counterfoil.statistics.photo_tests import mean_interval
from counterfoil.types import ATTRIBUTES

RIGHT: dict[tuple[str, Condition], list[float]] = {
    ("old", ORIGINAL): [1, 1, 1, 1],
    ("old", SWAP): [1, 1, 1, 0],
    ("old", SMALL): [1, 0, 1, 0],
}


def test_growth_is_the_difference_of_drops_over_photos_that_both_answered() -> None:
    new: dict[tuple[str, Condition], list[float]] = {
        ("new", ORIGINAL): [1, 1, 1, 0],
        ("new", SWAP): [1, 0, 0, 0],
        ("new", SMALL): [1, 0, np.nan, 0],
    }
    rows = {row.attribute: row for row in measure_growth(answers_of({**RIGHT, **new}), "old", "new")}
    assert list(rows) == [ACCURACY, "background", "size"]
    assert (rows[ACCURACY].before, rows[ACCURACY].after, rows[ACCURACY].growth) == (0, 25, 25)
    assert (rows["background"].before, rows["background"].after, rows["background"].growth) == (25, 50, 25)
    assert rows["size"].n == 3
    assert rows["size"].growth == pytest.approx(-100 / 3)


def test_a_model_that_leaves_hard_pictures_unanswered_gains_nothing() -> None:
    """Both answer alike; the new one leaves out one of the two pictures of each photo, where the old one is wrong."""
    old: dict[tuple[str, Condition], list[float]] = {
        ("old", ORIGINAL): [1] * 20,
        ("old", SWAP): [1] * 20,
        ("old", SAME): [0] * 20,
    }
    new: dict[tuple[str, Condition], list[float]] = {
        ("new", ORIGINAL): [1] * 20,
        ("new", SWAP): [1] * 20,
        ("new", SAME): [np.nan] * 20,
    }
    for pair in (("old", "new"), ("new", "old")):
        row = measure_growth(answers_of({**old, **new}), *pair)[1]
        assert (row.attribute, row.n, row.before, row.after, row.growth) == ("background", 20, 0, 0, 0)


def changes(rng: np.random.Generator, photos: int, pictures: int, changed: float) -> NDArray[np.float64]:
    """How the answers to the original and to each picture change, (1 + pictures, photos); correlated by a half."""
    drawn = rng.choice([1.0, -1.0, 0.0], (2 + pictures, photos), p=[changed / 2, changed / 2, 1 - changed])
    shared = rng.random((1 + pictures, photos)) < np.sqrt(0.5)
    return np.where(shared, drawn[0], drawn[1:])


def gaps(rng: np.random.Generator, photos: int) -> NDArray[np.float64]:
    """The growth of each photo where nothing changed but a tenth of the answers, four pictures a photo."""
    moved = changes(rng, photos, 4, 0.1)
    return np.asarray(moved[0] - moved[1:].mean(axis=0))


def test_the_spread_is_that_of_simulated_changes() -> None:
    simulated = gaps(np.random.default_rng(1), 200_000).std()
    assert spread_of_changes(0.1, 4, 0.5) == pytest.approx(simulated, rel=0.02)


def growth_of(values: NDArray[np.float64]) -> Growth:
    """The row of the size where each photo's loss grows by these values."""
    return compare_losses("size", np.zeros(len(values)), values)


def test_with_the_planned_photos_a_gate_holds_in_four_of_five_cases_where_nothing_changed() -> None:
    rng = np.random.default_rng(2)
    photos = photos_to_hold(100 * spread_of_changes(0.1, 4, 0.5), 2)
    held = [growth_of(gaps(rng, photos)).high <= 2 for _ in range(500)]
    assert 0.74 <= np.mean(held) <= 0.86


@pytest.mark.parametrize("photos", [48, 480])
def test_a_gate_says_holds_wrongly_in_at_most_one_case_of_twenty(photos: int) -> None:
    """The loss truly grows by 6 points, the margin is 5.9: holding is an error."""
    rng = np.random.default_rng(photos)
    held = [growth_of(np.clip(gaps(rng, photos) + (rng.random(photos) < 0.06), -2, 2)).high <= 5.9 for _ in range(500)]
    assert np.mean(held) <= 0.08  # 5 % and what 500 simulations may add


def test_all_rows_of_a_gate_together_spend_the_level_once() -> None:
    main = [name for name in ATTRIBUTES if family_of(name) == MAIN_FAMILY]
    assert len(main) <= DIVISORS[MAIN_FAMILY]
    spent = divide_level(ACCURACY) + DIVISORS[MAIN_FAMILY] * divide_level("size")
    assert spent + sum(map(divide_level, SURFACE)) == pytest.approx(LEVEL)


@pytest.mark.parametrize("name", [ACCURACY, "size", "texture"])
def test_the_lower_bound_has_the_level_of_its_row(name: str) -> None:
    values = gaps(np.random.default_rng(3), 200)
    row = compare_losses(name, np.zeros(200), values)
    assert row.low == pytest.approx(100 * mean_interval(values, 4, confidence=1 - 2 * divide_level(name)).low)


def test_one_margin_holds_for_everything_and_a_named_one_instead_for_its_attribute() -> None:
    margins = parse_margins(["2", "background=5", "accuracy=1"])
    assert [margins.of(name) for name in ("size", "background", "accuracy")] == [2, 5, 1]
    assert parse_margins(["background=5"]).of("size") is None


@pytest.mark.parametrize("text", ["", "much", "=2", "background=", "-1", "nan"])
def test_a_margin_that_is_no_number_of_points_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="expected --margin POINTS"):
        parse_margins([text])


def test_the_three_verdicts_follow_the_bounds() -> None:
    def verdict(low: float, high: float) -> str:
        row = Growth("size", 100, 10, 12, (low + high) / 2, low, high, 20)
        return judge_growth([row], "m", Margins(2), "upper")[0].verdict

    assert [verdict(3, 9), verdict(-4, 1), verdict(-4, 6), verdict(-1, 2)] == [
        "violated", "holds", "cannot tell", "holds",
    ]  # fmt: skip


def test_too_few_photos_cannot_tell() -> None:
    row = Growth("size", 4, 10, 12, 2, -50, 50, 20)
    (check,) = judge_growth([row], "m", Margins(90), "upper")
    assert (check.verdict, "too few photos" in check.message) == ("cannot tell", True)
