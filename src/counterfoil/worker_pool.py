"""Worker threads and forked worker processes, with a bounded number of items in flight.

The GIL makes threads wait for one another; beyond a few cores every further thread makes decoding slower. Forked
processes share the models' weights, and only samples and results are pickled.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from counterfoil.errors import UserError
from counterfoil.types import Item, Output

_SECONDS_TO_LOOK = 1.0  # between looks of a forked process for its parent
ATTEMPTS = 3  # after which an item is set aside


class ItemFailure(NamedTuple):
    """An item that failed as often as is tried, and why."""

    item: Any
    reason: str
    attempts: int


def iterate_ready(
    pool: Executor, work: Callable[[Item], Output], items: Iterable[Item], in_flight: int
) -> Iterator[Output]:
    """The results as they become ready; an error, or an early stop by the caller, cancels pending items."""
    waiting, wait_for_running = iter(items), True
    try:
        running: set[Future[Output]] = {pool.submit(work, item) for item in islice(waiting, in_flight)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            running |= {pool.submit(work, item) for item in islice(waiting, len(done))}
    except KeyboardInterrupt:
        # Ctrl-C does not wait for threads, since painting takes minutes; forked processes must be ended.
        wait_for_running = not isinstance(pool, ThreadPoolExecutor)
        raise
    finally:
        pool.shutdown(wait=wait_for_running, cancel_futures=True)


_FORKED_WORK: list[Callable[[Any], Any]] = []  # the work that forked processes inherit


def _do(item: Any) -> Any:
    return _FORKED_WORK[-1](item)


def _end_with(parent: int) -> None:
    """Called in a forked process: it ends when its parent was killed, whatever it is waiting for."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_TO_LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class ForkedEngine:
    """A pool of forked processes with a bounded number of items in flight."""

    workers: int

    def map(self, work: Callable[[Item], Output], items: Iterable[Item]) -> Iterator[Output]:
        """The results of `work` over `items`, as they become ready."""
        _FORKED_WORK.append(work)
        pool = ProcessPoolExecutor(self.workers, multiprocessing.get_context("fork"), _end_with, (os.getpid(),))
        try:
            yield from iterate_ready(pool, _do, items, 2 * self.workers)
        except BrokenProcessPool as error:
            raise UserError(
                "expected every worker process to live, one ended; what is finished is kept: run the same command to"
                " go on, where memory ran out with fewer --workers"
            ) from error
        finally:
            _FORKED_WORK.remove(work)


def cores() -> int:
    """The cores this process may use (a container or SLURM may give fewer than the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container


def find_memory() -> int | None:
    """The bytes of memory that this process may use at most; None where the system does not say."""
    names: Container[str] = getattr(os, "sysconf_names", ())  # Windows has none
    if "SC_PHYS_PAGES" not in names:
        return None
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _GROUP_LIMIT.read_text(encoding="ascii").strip() if _GROUP_LIMIT.is_file() else ""
    return min(there, int(limit)) if limit.isdecimal() else there


@dataclass(frozen=True)
class LocalEngine:
    """A pool of threads with a bounded number of items in flight, so memory does not grow with the items."""

    workers: int

    def map(self, work: Callable[[Item], Output], items: Iterable[Item]) -> Iterator[Output]:
        """The results of `work` over `items`, as they become ready."""
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="counterfoil")
        # One worker per core: NumPy's own threads inside each would only compete.
        with threadpool_limits(limits=1, user_api="blas"):
            yield from iterate_ready(pool, work, items, 2 * self.workers)
