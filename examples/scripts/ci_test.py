"""A test for your test suite: `pytest ci_test.py`."""

import pytest

from counterfoil.testing import assert_robust

MODEL = {"lite0": "embedded:efficientnet-lite0"}


def test_a_blurred_background_costs_little():
    assert_robust(MODEL, "demo:", attribute="background-blur", max_drop=40, limit=16)


def test_a_tiny_object_is_too_much():
    with pytest.raises(AssertionError, match="size"):
        assert_robust(MODEL, "demo:", attribute="size", max_drop=0, limit=16)
