"""Pictures from many threads gathered into batches.

Each worker thread sends the pictures of one photo and waits; a GPU needs hundreds at once. So one thread gathers
waiting pictures, up to the batch size or for a few milliseconds, and starts the batch; a second thread waits for the
scores and returns them. While one batch computes, the next is gathered and copied.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError

Answers = NDArray[np.float32]
Block = NDArray[Any]  # prepared pictures side by side, one per row
Start = Callable[[Sequence[Block]], Callable[[], Answers]]  # begins a batch; the result waits for its answers

_BATCHES_IN_FLIGHT = 2  # one computes, one is copied


class TooLarge(Exception):
    """A batch of this size does not fit into the device's memory."""


@dataclass(eq=False)
class _Call:
    """The pictures of one call, and the answers so far."""

    pictures: Block
    rows: list[Answers] = field(default_factory=list)
    fault: BaseException | None = None
    whole: threading.Event = field(default_factory=threading.Event)

    def take(self, rows: Answers) -> None:
        self.rows.append(rows)
        if sum(map(len, self.rows)) == len(self.pictures):
            self.whole.set()

    def fail(self, fault: BaseException) -> None:
        self.fault = fault
        self.whole.set()


@dataclass(frozen=True)
class _Part:
    """Consecutive pictures of one call that go into one batch."""

    call: _Call
    pictures: Block

    def split(self, count: int) -> tuple[_Part, _Part]:
        return _Part(self.call, self.pictures[:count]), _Part(self.call, self.pictures[count:])


class Batcher:
    """A function over pictures that many threads may call at once; they share batches."""

    def __init__(self, start: Start, batch_size: int, wait_seconds: float = 0.004) -> None:
        self.batch_size = batch_size
        self._start, self._wait_seconds = start, wait_seconds
        self._waiting: deque[_Part] = deque()
        self._queue_changed = threading.Condition()
        self._running: queue.Queue[tuple[list[_Part], Callable[[], Answers]]] = queue.Queue(_BATCHES_IN_FLIGHT - 1)
        for work in (self._collect, self._distribute):
            threading.Thread(target=work, name=f"counterfoil-device{work.__name__}", daemon=True).start()

    def __call__(self, pictures: Block) -> Answers:
        """The scores, in order; the caller has already stacked its pictures."""
        call = _Call(pictures)
        with self._queue_changed:
            self._waiting.append(_Part(call, pictures))
            self._queue_changed.notify_all()
        call.whole.wait()
        if call.fault is not None:
            raise call.fault
        return np.concatenate(call.rows)

    def _collect(self) -> None:
        while True:
            parts = self._next_batch()
            try:
                self._start_batch(parts)
            except BaseException as fault:  # noqa: BLE001  handed to the threads that wait, who raise it
                _fail(parts, fault)

    def _next_batch(self) -> list[_Part]:
        """A full batch, or the pictures that came within the wait."""
        with self._queue_changed:
            self._queue_changed.wait_for(lambda: bool(self._waiting))
            self._queue_changed.wait_for(lambda: _count(self._waiting) >= self.batch_size, self._wait_seconds)
            taken: list[_Part] = []
            room = self.batch_size
            while self._waiting and room > 0:
                part, rest = self._waiting.popleft().split(room)
                taken.append(part)
                room -= len(part.pictures)
                if len(rest.pictures):
                    self._waiting.appendleft(rest)
            return taken

    def _start_batch(self, parts: list[_Part]) -> None:
        """Start a batch; where it does not fit, start its halves and use smaller batches from then on."""
        count = _count(parts)
        try:
            self._running.put((parts, self._start([part.pictures for part in parts])))
            return
        except TooLarge as error:
            refused = str(error)
        if count == 1:
            raise UserError(f"the device has no room for a single picture: {refused}")
        self.batch_size = max(1, count // 2)
        for half in _halves(parts, self.batch_size):
            self._start_batch(half)

    def _distribute(self) -> None:
        while True:
            parts, answers = self._running.get()
            try:
                rows = answers()
            except BaseException as fault:  # noqa: BLE001  handed to the threads that wait, who raise it
                _fail(parts, fault)
                continue
            start = 0
            for part in parts:
                part.call.take(rows[start : start + len(part.pictures)])
                start += len(part.pictures)


def _count(parts: Sequence[_Part] | deque[_Part]) -> int:
    return sum(len(part.pictures) for part in parts)


def _fail(parts: Sequence[_Part], fault: BaseException) -> None:
    for part in parts:
        part.call.fail(fault)


def _halves(parts: Sequence[_Part], count: int) -> tuple[list[_Part], list[_Part]]:
    """The first `count` pictures, and the others."""
    first: list[_Part] = []
    second: list[_Part] = []
    for part in parts:
        head, tail = part.split(max(0, count - _count(first)))
        first += [head] if len(head.pictures) else []
        second += [tail] if len(tail.pictures) else []
    return first, second
