"""Runs of many small models as one group: each group of models has the pictures made again.

`tests/runner/test_parts.py` has a run of several groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from counterfoil.models import reloadable_model
from counterfoil.store import piece_plan


@contextmanager
def hold_all_models() -> Iterator[None]:
    """Meanwhile a worker may hold any number of models whose size is not known."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (piece_plan, reloadable_model):
            patch.setattr(module, "MOST_PARAMETERS", 10**12)
        yield
