"""One device shared by forked processes through shared memory.

Threads that decode and edit pictures wait for the GIL, which on a machine with many cores costs more than the work;
forked processes do not. A forked process cannot use the device, so each gets a client when it is forked: memory
shared with its parent, and a pipe to a thread there that uses the device for it.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.models.thread_batcher import Block

_CAPACITY = 64  # pictures that fit into the shared memory of one client

AskBlock = Callable[[Block], NDArray[np.float32]]


@dataclass(frozen=True)
class SharedMemoryClient:
    """The memory and pipe that one forked process shares with its parent."""

    pictures: Block  # room for prepared pictures
    scores: NDArray[np.float32]  # room for their scores
    parent_end: Connection
    child_end: Connection
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, block: Block) -> NDArray[np.float32]:
        """In the child: have the parent compute the scores on the device."""
        with self.lock:
            parts = [self._ask(block[start : start + _CAPACITY]) for start in range(0, len(block), _CAPACITY)]
        return np.concatenate(parts)

    def _ask(self, block: Block) -> NDArray[np.float32]:
        self.pictures[: len(block)] = block
        self.child_end.send(len(block))
        fault: BaseException | None = self.child_end.recv()
        if fault is not None:
            raise fault
        return np.array(self.scores[: len(block)])

    def serve(self, ask: AskBlock) -> None:
        """In the parent: serve requests until the child ends."""
        while True:
            try:
                count = self.parent_end.recv()
            except (EOFError, OSError):
                return
            self.parent_end.send(self._answer(ask, count))

    def _answer(self, ask: AskBlock, count: int) -> BaseException | None:
        try:
            self.scores[:count] = ask(self.pictures[:count])
        except BaseException as fault:  # noqa: BLE001  sent to the process that waits, which raises it
            return fault
        return None


class DeviceService:
    """A function over blocks of prepared pictures that works in this process and in those forked from it."""

    def __init__(self, ask: AskBlock, example: Block, labels: int) -> None:
        self._ask, self._example, self._labels = ask, example, labels
        self._ask_here = ask
        self._next: SharedMemoryClient | None = None
        # Clients are made just before a fork: earlier their number is unknown, later memory cannot be shared.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._prepare_client, after_in_child=self._use_client, after_in_parent=self._serve_client
            )

    def __call__(self, block: Block) -> NDArray[np.float32]:
        """The scores of the pictures, in order."""
        return self._ask_here(block)

    def _prepare_client(self) -> None:
        pictures = allocate_shared_array((_CAPACITY, *self._example.shape[1:]), self._example.dtype)
        self._next = SharedMemoryClient(
            pictures, allocate_shared_array((_CAPACITY, self._labels), np.dtype(np.float32)), *Pipe()
        )

    def _use_client(self) -> None:
        if self._next is not None:
            self._next.parent_end.close()
            self._ask_here = self._next.ask

    def _serve_client(self) -> None:
        client, self._next = self._next, None
        if client is not None:
            client.child_end.close()  # so the pipe closes when the child ends, and the thread ends too
            threading.Thread(
                target=client.serve, args=(self._ask,), name="counterfoil-device-client", daemon=True
            ).start()


def allocate_shared_array(shape: Sequence[int], kind: np.dtype[Any]) -> NDArray[Any]:
    """An array shared by this process and those forked from it."""
    memory = mmap.mmap(-1, int(np.prod(shape)) * kind.itemsize)
    return np.frombuffer(memory, kind).reshape(shape)
