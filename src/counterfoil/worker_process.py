"""A worker process: takes the work once and then items from its standard input, and gives back what comes of them.

`process_pool` starts it as a new interpreter, which runs nothing of the program that started it: the same on Linux,
macOS and Windows, and for a script without a main guard. It ends as soon as its standard input does, whatever it is
doing, so that nothing stays behind a parent that was killed.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import QueueHandler
from typing import Any, BinaryIO, Generic, NamedTuple, TypeAlias

import cv2
from threadpoolctl import threadpool_limits

from counterfoil.errors import UserError, describe_exit, make_portable
from counterfoil.types import Item, Output

Send: TypeAlias = Callable[[Any], None]


class WorkNote(NamedTuple):
    """What the work says before its item is finished, such as units of progress."""

    content: Any


class WorkResult(NamedTuple):
    """What came of an item."""

    value: Any


class WorkError(NamedTuple):
    """An error that the work raised, as it can be pickled."""

    error: bytes
    text: str  # with its traceback


class PortableWork(ABC, Generic[Item, Output]):
    """Work that may be pickled and done in another process."""

    @abstractmethod
    def __call__(self, item: Item) -> Output:
        """The result for one item."""

    def connect(self, send: Send, workers: int) -> None:
        """Called once in a worker process, one of so many: what is passed to `send` reaches the engine's `on_note`."""


class WorkOrder(NamedTuple):
    """The first message to a worker process."""

    work: bytes  # a pickled PortableWork
    workers: int
    threads: int  # of each process, each at one item at a time
    log_level: int


class _Forwarder(QueueHandler):
    """Passes records of the log on to the parent, whose handlers show them."""

    def __init__(self, send: Send) -> None:
        super().__init__(queue.SimpleQueue())
        self._send = send

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send the record, whose message was formatted."""
        self._send(WorkNote(record))


def serve() -> None:
    """Do the work of the parent until it closes the pipe."""
    orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
    send = _open_output()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, orders, send), daemon=True).start()
    cv2.setNumThreads(1)  # a process per core: threads inside each would only compete
    with threadpool_limits(limits=1, user_api="blas"):
        order: WorkOrder = orders.get()
        logging.getLogger().addHandler(_Forwarder(send))
        logging.getLogger().setLevel(order.log_level)
        loop = _WorkLoop(order, orders, send)
        for _ in range(order.threads - 1):
            threading.Thread(target=loop.do_items, daemon=True).start()
        loop.do_items()


class _WorkLoop:
    """What the threads of this process do with the items that come; the work is loaded with the first one."""

    def __init__(self, order: WorkOrder, items: queue.SimpleQueue[Any], send: Send) -> None:
        self._order, self._items, self._send = order, items, send
        self._work: PortableWork[Any, Any] | None = None
        self._lock = threading.Lock()

    def do_items(self) -> None:
        """Do one item after the other; the end of the pipe ends the process."""
        while True:
            item = self._items.get()
            try:
                self._send(WorkResult(self._load_work()(item)))
            except BaseException as error:  # noqa: BLE001  raised again in the parent, and so is the `sys.exit` of a model
                fault = _describe(error)
            else:
                continue
            with suppress(OSError):  # the parent is gone, with which this process ends
                self._send(fault)

    def _load_work(self) -> PortableWork[Any, Any]:
        with self._lock:
            if self._work is None:
                work: PortableWork[Any, Any] = pickle.loads(self._order.work)
                work.connect(lambda content: self._send(WorkNote(content)), self._order.workers)
                self._work = work
            return self._work


def _open_output() -> Send:
    """A function that writes messages to the parent; what others print goes to standard error."""
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lock = threading.Lock()

    def send(message: Any) -> None:
        packed = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with lock:
            channel.write(packed)
            channel.flush()

    return send


def _receive(channel: BinaryIO, orders: queue.SimpleQueue[Any], send: Send) -> None:
    """Pass on what comes; the end of the pipe, or of the parent, is the end of this process."""
    try:
        while True:
            orders.put(pickle.load(channel))
    except (EOFError, OSError, pickle.UnpicklingError):
        os._exit(0)
    except Exception as error:  # noqa: BLE001  what came cannot be made here: the parent would wait for ever
        send(_describe(error))
        os._exit(1)


def _describe(error: BaseException) -> WorkError:
    text = "".join(traceback.format_exception(error))
    shown = UserError(describe_exit(error)) if isinstance(error, SystemExit) else make_portable(error)
    return WorkError(pickle.dumps(shown), text)
