"""Items through a pool of workers with a bounded number in flight, so that memory does not grow with the items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from itertools import islice

from counterfoil.types import Item, Result


def as_ready(pool: Executor, work: Callable[[Item], Result], items: Iterable[Item], in_flight: int) -> Iterator[Result]:
    """The results as they become ready; a failure or an end by the caller cancels what has not begun."""
    waiting, patient = iter(items), True
    try:
        running: set[Future[Result]] = {pool.submit(work, item) for item in islice(waiting, in_flight)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            running |= {pool.submit(work, item) for item in islice(waiting, len(done))}
    except KeyboardInterrupt:
        # A painting takes minutes, and nobody who stops a program waits for them. Processes must be seen off.
        patient = not isinstance(pool, ThreadPoolExecutor)
        raise
    finally:
        pool.shutdown(wait=patient, cancel_futures=True)
