"""What tests share: the outside programs they may need, and the offline default's assets."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from counterfoil.assets.cache import fetch_asset

# The same examples every time; `pytest tests/properties --hypothesis-profile search` looks for new ones.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None, max_examples=50)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("fixed")

PRESENT: dict[str, Callable[[], bool]] = {
    "browser": lambda: shutil.which("chromium") is not None,
    "postgres": lambda: any(Path("/usr/lib/postgresql").glob("*/bin/postgres")),
    "torch": lambda: importlib.util.find_spec("torch") is not None,
    "ray": lambda: importlib.util.find_spec("ray") is not None,
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip by name what this machine lacks; under COUNTERFOIL_REQUIRE such a skip is a failure."""
    required = os.environ.get("COUNTERFOIL_REQUIRE", "").split(",")
    for need, is_present in PRESENT.items():
        if item.get_closest_marker(need) and not is_present():
            reason = f"needs {need}, which this machine lacks"
            if need in required:
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)


@pytest.fixture(scope="session")
def assets() -> Callable[[str], Path]:
    """The offline default's files by name, fetched on first use."""
    return fetch_asset
