from __future__ import annotations

import math

import numpy as np
import pytest

from counterfoil.statistics.intervals import percentile_interval, resample_counts


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
