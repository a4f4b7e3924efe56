"""Work on this machine in forked processes: for many cores that decode and edit for one device.

Python's lock makes threads wait for one another; past a handful of cores decoding gets slower with every thread.
Forked processes share the models' weights as they are, and nothing needs to be pickled but samples and results.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any

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
        waiting = iter(items)
        _WORK.append(work)
        pool = ProcessPoolExecutor(self.workers, multiprocessing.get_context("fork"))
        try:
            running: set[Future[Result]] = {pool.submit(_do, item) for item in islice(waiting, 2 * self.workers)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                running |= {pool.submit(_do, item) for item in islice(waiting, len(done))}
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            _WORK.remove(work)
