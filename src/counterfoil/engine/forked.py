"""Work on this machine in forked processes: for many cores that decode and edit for one device.

Python's lock makes threads wait for one another; past a handful of cores decoding gets slower with every thread.
Forked processes share the models' weights as they are, and nothing needs to be pickled but samples and results.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from counterfoil.engine.flow import as_ready
from counterfoil.types import Item, Result

_WORK: list[Callable[[Any], Any]] = []  # what the forked processes inherit and are to do


def _do(item: Any) -> Any:
    return _WORK[-1](item)


@dataclass(frozen=True)
class ForkedEngine:
    """A pool of forked processes with a bounded number of items in flight."""

    workers: int

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results of `work` over `items`, as they become ready."""
        _WORK.append(work)
        pool = ProcessPoolExecutor(self.workers, multiprocessing.get_context("fork"))
        try:
            yield from as_ready(pool, _do, items, 2 * self.workers)
        finally:
            _WORK.remove(work)
