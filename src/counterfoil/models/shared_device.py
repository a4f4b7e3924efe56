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
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import make_portable
from counterfoil.models.thread_batcher import Block

_CAPACITY = 64  # pictures that fit into the shared memory of one client

AskBlock = Callable[[Block], NDArray[np.float32]]
Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


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

    def close_parent(self) -> None:
        """In the child: close the parent's end."""
        self.parent_end.close()

    def close_child(self) -> None:
        """In the parent: close the child's end."""
        self.child_end.close()

    def _answer(self, ask: AskBlock, count: int) -> BaseException | None:
        try:
            self.scores[:count] = ask(self.pictures[:count])
        except BaseException as fault:  # noqa: BLE001  sent to the process that waits, which raises it
            return make_portable(fault)
        return None


class ForkClient(Protocol[Asked, Answered]):
    """What one forked process shares with its parent."""

    def ask(self, asked: Asked, /) -> Answered:
        """In the child: have the parent answer."""

    def serve(self, answer: Callable[[Asked], Answered], /) -> None:
        """In the parent: answer until the child ends."""

    def close_parent(self) -> None:
        """In the child: close the parent's end."""

    def close_child(self) -> None:
        """In the parent: close the child's end."""


class ForkedService(Generic[Asked, Answered]):
    """A function that is called in this process, by its threads and by the processes forked from it."""

    def __init__(
        self, answer: Callable[[Asked], Answered], make_client: Callable[[], ForkClient[Asked, Answered]]
    ) -> None:
        self._answer, self._make_client = answer, make_client
        self._answer_here = answer
        self._next: ForkClient[Asked, Answered] | None = None
        # Clients are made just before a fork: earlier their number is unknown, later memory cannot be shared.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._prepare_client, after_in_child=self._use_client, after_in_parent=self._serve_client
            )

    def __call__(self, asked: Asked) -> Answered:
        """The answer, from this process or its parent."""
        return self._answer_here(asked)

    def _prepare_client(self) -> None:
        self._next = self._make_client()

    def _use_client(self) -> None:
        if self._next is not None:
            self._next.close_parent()
            self._answer_here = self._next.ask

    def _serve_client(self) -> None:
        client, self._next = self._next, None
        if client is not None:
            client.close_child()  # so the pipe closes when the child ends, and the thread ends too
            threading.Thread(
                target=client.serve, args=(self._answer,), name="counterfoil-device-client", daemon=True
            ).start()


class DeviceService(ForkedService[Block, NDArray[np.float32]]):
    """Scores of blocks of prepared pictures, in order, in this process and in those forked from it."""

    def __init__(self, ask: AskBlock, example: Block, labels: int) -> None:
        self._example, self._labels = example, labels
        super().__init__(ask, self._open_client)

    def _open_client(self) -> SharedMemoryClient:
        pictures = allocate_shared_array((_CAPACITY, *self._example.shape[1:]), self._example.dtype)
        return SharedMemoryClient(
            pictures, allocate_shared_array((_CAPACITY, self._labels), np.dtype(np.float32)), *Pipe()
        )


def allocate_shared_array(shape: Sequence[int], kind: np.dtype[Any]) -> NDArray[Any]:
    """An array shared by this process and those forked from it."""
    memory = mmap.mmap(-1, int(np.prod(shape)) * kind.itemsize)
    return np.frombuffer(memory, kind).reshape(shape)
