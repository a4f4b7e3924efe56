"""A pool of Ray actors that runs any work over items; only Ray's own bookkeeping passes between machines.

The work is pickled once and unpickled once per actor; items and results are small. An actor that dies is started
again, elsewhere if need be, and its items are run again: at least once, so the work must be able to run twice.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil import __version__
from counterfoil.errors import UserError
from counterfoil.plugins import import_extra
from counterfoil.types import Item, Output
from counterfoil.worker_pool import ATTEMPTS, ItemFailure

_IN_FLIGHT = 2  # items per actor: one at work, one waiting
_SECONDS_TO_CONNECT = 5.0
_PATIENCE_SECONDS = 5.0  # without a result, after which idle actors get copies of items that others hold


@dataclass(frozen=True)
class RayEngine:
    """Actors of a Ray cluster, one core or one GPU each."""

    address: str = ""  # of a cluster; empty for the one that Ray finds, or starts here
    workers: int | None = None  # actors; one per core of the cluster, or per GPU
    gpu: bool = False  # whether each actor has a GPU

    def map(self, work: Callable[[Item], Output], items: Iterable[Item]) -> Iterator[Output]:
        """The results of `work` over `items` as they become ready; an item that failed three times is a failure."""
        ray = _import_quietly()
        waiting = list(items)
        if not waiting:
            return
        with _connect(ray, self.address):
            shared = SharedWork(folder=Path.cwd(), reference=ray.put(work))  # kept to the end, for actors to come
            pool = self._start_actors(ray, len(waiting))
            yield from _ActorPool(ray, pool, waiting, shared).results()

    def _start_actors(self, ray: Any, items: int) -> list[Any]:
        there = ray.cluster_resources()
        most = int(there.get("GPU" if self.gpu else "CPU", 0))
        if most < 1:
            what = "a GPU" if self.gpu else "a core"
            raise UserError(f"expected {what} in the Ray cluster, which has none; add a node")
        options = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": -1, **({"num_gpus": 1} if self.gpu else {})}
        actor = ray.remote(**options)(RayWorker)
        pool = [actor.remote() for _ in range(min(self.workers or most, most, items))]
        try:
            check_versions(ray.get([one.version.remote() for one in pool]))
        except ray.exceptions.RayError as error:
            raise UserError(
                f"expected Counterfoil {__version__} on every Ray worker, as here, but one does not begin:"
                f" {_find_cause(error)}; install the same"
            ) from error
        return pool


class SharedWork(NamedTuple):
    """The work as actors find it: Ray does not fetch a reference inside a record, so each actor does so once."""

    folder: Path  # of the driver, where relative paths begin
    reference: Any  # ray.ObjectRef


class _ActorPool:
    """Hands items to actors, a few at a time each.

    An actor whose node died waits for free cores before it is started again, and so do its items. Where no result
    comes for a while, an idle actor gets a copy of such an item; the result that comes first counts.
    """

    def __init__(self, ray: Any, actors: Sequence[Any], items: Sequence[Any], shared: SharedWork) -> None:
        self._ray, self._actors, self._items, self._shared = ray, actors, items, shared
        self._waiting = deque(range(len(items)))  # places of items
        self._running: dict[Any, tuple[int, int]] = {}  # actor and item
        self._attempts = [0] * len(items)
        self._done: set[int] = set()

    def results(self) -> Iterator[Any]:
        """The results as they become ready."""
        while len(self._done) < len(self._items):
            self._submit_waiting()
            ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=_PATIENCE_SECONDS)
            if not ready:
                self._submit_copies()
            for reference in ready:
                _, item = self._running.pop(reference)
                yield from self._finish(reference, item)

    def _finish(self, reference: Any, item: int) -> Iterator[Any]:
        if item in self._done:  # a copy came first
            return
        try:
            result = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:  # raised by the work itself, or no actor could be started again
            self._attempts[item] += 1
            if self._attempts[item] < ATTEMPTS:
                self._waiting.append(item)
                return
            result = ItemFailure(self._items[item], _describe(error), ATTEMPTS)
        self._done.add(item)
        yield result

    def _submit_waiting(self) -> None:
        load = Counter(actor for actor, _ in self._running.values())
        for actor in sorted(range(len(self._actors)), key=lambda actor: load[actor]):
            while self._waiting and load[actor] < _IN_FLIGHT:
                self._submit(actor, self._waiting.popleft())
                load[actor] += 1

    def _submit_copies(self) -> None:
        """Give idle actors copies of items that others hold, each item once more at most."""
        busy = {actor for actor, _ in self._running.values()}
        copies = Counter(item for _, item in self._running.values())
        held = [item for _, item in self._running.values() if item not in self._done and copies[item] == 1]
        for actor, item in zip((one for one in range(len(self._actors)) if one not in busy), held, strict=False):
            self._submit(actor, item)

    def _submit(self, actor: int, item: int) -> None:
        self._running[self._actors[actor].do.remote(self._shared, self._items[item])] = actor, item


class RayWorker:
    """The work in one actor, which takes it with its first item: an argument of the constructor may be lost later."""

    def __init__(self) -> None:
        self._work: Callable[[Any], Any] | None = None

    def version(self) -> str:
        """The version of Counterfoil here."""
        return __version__

    def do(self, shared: SharedWork, item: Any) -> Any:
        """The result for one item."""
        if self._work is None:
            import ray

            if shared.folder.is_dir():
                os.chdir(shared.folder)
            self._work = ray.get(shared.reference)
        return self._work(item)


def check_versions(versions: Iterable[str]) -> None:
    """Refuse workers of another version, whose pictures may differ."""
    for version in versions:
        if version != __version__:
            raise UserError(
                f"expected Counterfoil {__version__} on every Ray worker, as here, got {version}; install the same"
            )


def _describe(error: Any) -> str:
    cause = vars(error).get("cause") or error
    return f"{type(cause).__name__}: {' '.join(str(cause).split())}"[:500]


def _find_cause(error: Exception) -> str:
    """The last line of what Ray says about a worker that does not begin: the error itself."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:200] if lines else type(error).__name__


def _import_quietly() -> Any:
    """Ray, which reads when it is imported what it shall not print: its messages would stand among the results."""
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "^")  # a pattern that all lines from workers and nodes match
    return import_extra("ray", "ray")


@contextmanager
def _connect(ray: Any, address: str) -> Iterator[None]:
    """Be connected to a cluster inside the block; a connection that was there before stays."""
    if ray.is_initialized():
        yield
        return
    _check_reachable(address)
    dashboard = {} if address else {"include_dashboard": False}  # an option of a cluster that is started
    try:
        ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR, **dashboard)
    except (ConnectionError, RuntimeError, ValueError) as error:
        line = " ".join(str(error).split())[:200]
        raise UserError(f"expected a Ray cluster at '{address or 'this machine'}', which refuses: {line}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Refuse an address of a host and a port where nothing listens, which Ray would look for much longer."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), _SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise UserError(
            f"expected a Ray cluster at '{address}', where nothing answers: {error.strerror or error};"
            " check the address, and that `ray start --head` runs there"
        ) from error
