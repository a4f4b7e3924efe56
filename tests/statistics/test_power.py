from __future__ import annotations

import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from answer_rows import CONTROL, ORIGINAL, SMALL, SWAP, answers_of
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.statistics.power import (
    Discordance,
    detectable_drops,
    discordance_from_accuracy,
    discordance_from_total,
    mcnemar_power,
    minimum_detectable_drop,
    photos_needed,
)


@pytest.mark.parametrize(("n", "lost", "gained"), [(30, 0.3, 0.05), (60, 0.15, 0.05), (12, 0.5, 0.0)])
def test_power_is_that_of_every_outcome_counted(n: int, lost: float, gained: float) -> None:
    reference = sum(
        stats.multinomial.pmf([a, b, n - a - b], n, [lost, gained, 1 - lost - gained])
        for a in range(n + 1)
        for b in range(n + 1 - a)
        if a + b and stats.binomtest(a, a + b).pvalue < 0.05
    )
    assert mcnemar_power(n, Discordance(lost, gained)) == pytest.approx(reference, abs=1e-9)


def test_power_above_the_exact_range_joins_it_smoothly() -> None:
    change = Discordance(0.104, 0.096)
    assert mcnemar_power(10_001, change) == pytest.approx(mcnemar_power(10_000, change), abs=0.01)


def test_photos_needed_have_the_power_and_one_fewer_does_not() -> None:
    change = discordance_from_total(0.05, 0.15)
    n = photos_needed(change, power=0.9)
    assert mcnemar_power(n, change) >= 0.9 > mcnemar_power(n - 1, change)


def test_photos_needed_agree_with_the_textbook_formula() -> None:
    # Miettinen/Connor: n = (z_a sqrt(psi) + z_b sqrt(psi - d^2))^2 / d^2; the exact test needs a little more.
    drop, discordance = 0.02, 0.10
    z_a, z_b = stats.norm.ppf(0.975), stats.norm.ppf(0.8)
    formula = (z_a * math.sqrt(discordance) + z_b * math.sqrt(discordance - drop**2)) ** 2 / drop**2
    assert formula <= photos_needed(discordance_from_total(drop, discordance)) <= 1.06 * formula


def test_change_from_accuracy_has_the_drop_and_the_correlation() -> None:
    change = discordance_from_accuracy(0.05, 0.8, 0.4)
    assert change.lost - change.gained == pytest.approx(0.05)
    both = 0.8 - change.lost
    assert (both - 0.8 * 0.75) / math.sqrt(0.8 * 0.2 * 0.75 * 0.25) == pytest.approx(0.4)


def test_a_correlation_that_cannot_be_becomes_the_largest_that_can() -> None:
    assert discordance_from_accuracy(0.3, 0.9, 1.0) == (0.3, 0.0)


def test_minimum_detectable_drop_is_seen_with_the_power_and_falls_with_more_photos() -> None:
    drop = minimum_detectable_drop(400, 0.1)
    assert mcnemar_power(400, discordance_from_total(drop, 0.1)) == pytest.approx(0.8, abs=0.005)
    assert minimum_detectable_drop(1_600, 0.1) < drop
    assert math.isnan(minimum_detectable_drop(5, 0.1))  # five photos cannot reach p < 0.05 at all


def test_every_row_says_what_its_photos_could_have_shown() -> None:
    rows = detectable_drops(
        answers_of(
            {
                ("net", ORIGINAL): [1] * 100,
                ("net", SWAP): [0] * 20 + [1] * 80,
                ("net", SMALL): [1] * 4 + [np.nan] * 96,
            }
        )
    )
    assert rows[0].drop == pytest.approx(100 * minimum_detectable_drop(100, 21 / 102, alpha=0.05 / 12), abs=0.01)
    assert math.isnan(rows[1].drop)


def test_a_control_that_costs_or_varies_raises_what_a_row_can_show() -> None:
    given = {("net", ORIGINAL): [1] * 100, ("net", SMALL): [0] * 30 + [1] * 70}
    plain, harmless, costly = (
        next(row.drop for row in detectable_drops(answers_of({**given, **control})) if row.condition == SMALL)
        for control in ({}, {("net", CONTROL): [1] * 100}, {("net", CONTROL): [1] * 90 + [0] * 10})
    )
    assert plain <= harmless < costly - 8  # the control costs 10 points


def test_plan_says_how_many_photos() -> None:
    result = CliRunner().invoke(commands, ["plan", "--drop", "5", "--discordance", "15", "--power", "0.9"])
    needed = photos_needed(discordance_from_total(0.05, 0.15), power=0.9, alpha=0.05 / 12)  # as a report corrects
    assert result.exit_code == 0
    assert result.output.startswith(f"{needed:,} photos: a drop of 5 points (10.0 % of photos lost, 5.0 % gained)")


def test_plan_needs_more_photos_among_many_comparisons() -> None:
    first, second = (
        int(CliRunner().invoke(commands, ["plan", "--drop", "5", *more]).output.split()[0].replace(",", ""))
        for more in ([], ["--comparisons", "40"])
    )
    assert first < second


def test_a_drop_larger_than_what_changes_is_refused() -> None:
    with pytest.raises(UserError, match="expected 0 < drop <= discordance <= 100 percent, got a drop of 5"):
        discordance_from_total(0.05, 0.02)
    with pytest.raises(UserError, match="got a drop of 90 from 80"):
        discordance_from_accuracy(0.9, 0.8, 0.5)
