"""Work on this machine, one thread per worker.

Threads, not processes: decoding, OpenCV, NumPy and ONNX Runtime release Python's lock while they
compute, the networks' weights are held once, and nothing is left behind when the run is killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from counterfoil.engine.flow import as_ready
from counterfoil.types import Item, Result


def cores() -> int:
    """The cores this process may use (a container or SLURM may give fewer than the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class LocalEngine:
    """A pool of threads with a bounded number of items in flight, so memory does not grow with the items."""

    workers: int

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results of `work` over `items`, as they become ready."""
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="counterfoil")
        # Every worker has a core: NumPy's own threads inside each would only wait for one another.
        with threadpool_limits(limits=1, user_api="blas"):
            yield from as_ready(pool, work, items, 2 * self.workers)
