"""Work on this machine, one thread per worker.

Threads, not processes: decoding, OpenCV, NumPy and ONNX Runtime release Python's lock while they
compute, the networks' weights are held once, and nothing is left behind when the run is killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice

from threadpoolctl import threadpool_limits

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
        waiting = iter(items)
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="counterfoil")
        # Every worker has a core: NumPy's own threads inside each would only wait for one another.
        with threadpool_limits(limits=1, user_api="blas"):
            try:
                running: set[Future[Result]] = {pool.submit(work, item) for item in islice(waiting, 2 * self.workers)}
                while running:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
                    running |= {pool.submit(work, item) for item in islice(waiting, len(done))}
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
