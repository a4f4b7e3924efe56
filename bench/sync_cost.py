"""The share of a run that bringing files and folders to the disk takes.

Run it from the repository: `python bench/sync_cost.py --photos 12`. Every call of `fsync` and `sync` within one run is
timed, in all threads; their sum is an upper bound of what syncing costs, since other threads work meanwhile. A second
run in the same process makes the calls do nothing; on a quiet machine the two totals show the same share.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterfoil.run_config import RunConfig
from counterfoil.runner import execute
from counterfoil.sources.demo_photos import DemoSource


class SyncClock:
    """Adds up the seconds and calls of the functions it stands for."""

    def __init__(self) -> None:
        self.seconds, self.calls, self._lock = 0.0, 0, threading.Lock()

    def time(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its calls counted."""

        def timed(*arguments: Any) -> Any:
            start = time.monotonic()
            try:
                return function(*arguments)
            finally:
                with self._lock:
                    self.seconds += time.monotonic() - start
                    self.calls += 1

        return timed


@contextmanager
def replaced(make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    before = os.fsync, os.sync
    os.fsync, os.sync = make(before[0]), make(before[1])
    try:
        yield
    finally:
        os.fsync, os.sync = before


def run_once(photos: int, model: str) -> tuple[float, float]:
    """Seconds of a run with its report, and those of CPU."""
    start, cpu = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        config = RunConfig(source=DemoSource(), models=(model,), recipe="attributes", limit=photos)
        execute(config, Path(folder) / "out").report(Path(folder) / "out")
    return time.monotonic() - start, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=12)
    parser.add_argument("--model", default="embedded:efficientnet-lite0")
    given = parser.parse_args()
    run_once(1, given.model)  # fills caches
    clock = SyncClock()
    with replaced(clock.time):
        total, cpu = run_once(given.photos, given.model)
    with replaced(lambda function: lambda *arguments: None):
        without, _ = run_once(given.photos, given.model)
    print(
        f"{given.photos} photos, recipe attributes, {given.model}: {clock.calls} syncs took {clock.seconds:.2f} s of a"
        f" run of {total:.1f} s, {100 * clock.seconds / total:.2f} %, or {100 * clock.seconds / cpu:.2f} % of its"
        f" {cpu:.1f} s of CPU; without syncs {without:.1f} s"
    )


if __name__ == "__main__":
    main()
