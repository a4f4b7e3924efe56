"""A pool of worker processes, started once, each with its own interpreter lock and its own copy of the weights.

Threads share one lock: whatever is not inside NumPy, OpenCV or ONNX Runtime is done by one of them at a time. A
process costs its start (imports, weights) and memory, and does the same work to the bit.
"""

from __future__ import annotations

import io
import json
import logging
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from counterfoil.errors import UserError
from counterfoil.types import Item, Output
from counterfoil.worker_process import PortableWork, WorkError, WorkNote, WorkOrder, WorkResult

_BEGIN = (  # Ctrl-C reaches the whole group of processes; the parent alone decides what it means
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import json, sys;"
    " sys.path[:] = json.loads(sys.argv[1]); from counterfoil.worker_process import serve; serve()"
)
_LOOK = 0.5  # seconds after which waiting for a result is interrupted: Windows shows Ctrl-C only then
_PATIENCE = 5.0  # seconds in which a process must end after its pipe was closed


class _Packer(pickle.Pickler):
    """Refuses what only the program that runs knows: a worker process does not run it."""

    def reducer_override(self, thing: Any) -> Any:
        """The default for everything else."""
        if isinstance(thing, type | FunctionType) and thing.__module__ == "__main__":
            raise pickle.PicklingError(f"{thing.__qualname__} is defined in the program itself")
        return NotImplemented


def pack_work(work: PortableWork[Any, Any]) -> bytes:
    """The work as a worker process takes it; raises `UserError` with the reason where it cannot travel."""
    if not sys.executable:  # Python inside another program
        raise UserError("expected the path of Python to start worker processes, and it is not known")
    packed = io.BytesIO()
    try:
        _Packer(packed, pickle.HIGHEST_PROTOCOL).dump(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UserError(f"expected work that another process can do: {' '.join(str(error).split())}") from error
    return packed.getvalue()


@dataclass(frozen=True)
class ProcessEngine:
    """Worker processes, each at one item at a time, or at several where their work waits for a device."""

    workers: int
    on_note: Callable[[Any], None]  # called with what the work sends before its items are finished
    packed: bytes | None = None  # the work, where it was packed before
    threads: int = 1  # of each process

    def map(self, work: Callable[[Item], Output], items: Iterable[Item]) -> Iterator[Output]:
        """The results of `work`, a `PortableWork`, over `items`, as they become ready."""
        waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        count = 0
        for item in items:
            waiting.put((item,))
            count += 1
        if not count:
            return
        workers = min(self.workers, count)
        packed = self.packed if self.packed is not None else pack_work(work)  # type: ignore[arg-type]
        level = logging.getLogger("counterfoil").getEffectiveLevel()
        pool = _Pool(WorkOrder(packed, workers, self.threads, level), waiting)
        try:
            pool.start(_share_out(count, workers, self.threads))
            while count:
                message = pool.next_message()
                if isinstance(message, WorkNote):
                    self._pass_on(message.content)
                    continue
                count -= 1
                yield message.value
        finally:
            pool.stop()

    def _pass_on(self, content: Any) -> None:
        if isinstance(content, logging.LogRecord):
            logging.getLogger(content.name).handle(content)
        else:
            self.on_note(content)


class _Pool:
    """The processes, and a thread for each that hands it items and takes its messages."""

    def __init__(self, order: WorkOrder, waiting: queue.SimpleQueue[Any]) -> None:
        self._order, self._waiting = order, waiting
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, shares: Sequence[int]) -> None:
        """Start a process for each number of items that one has in hand."""
        command = [sys.executable, "-c", _BEGIN, json.dumps(sys.path)]
        for share in shares:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._processes.append(process)
            threading.Thread(target=self._drive, args=(process, share), daemon=True).start()

    def _drive(self, process: subprocess.Popen[bytes], share: int) -> None:
        """Keep so many items in the hands of a process until none is left."""
        in_hand = 0
        try:
            _write(process, self._order)
            while True:
                in_hand += self._hand_over(process, share - in_hand)
                if not in_hand:  # its memory is free while others work on
                    process.stdin.close()  # type: ignore[union-attr]
                    return
                while isinstance(message := pickle.load(process.stdout), WorkNote):  # type: ignore[arg-type]
                    self._messages.put(message)
                self._messages.put(message)
                in_hand -= 1
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):  # it died, or the pool was stopped
            self._messages.put(process)
        except Exception as error:  # noqa: BLE001  an item or a result that cannot travel; raised by `next_message`
            self._messages.put(error)

    def _hand_over(self, process: subprocess.Popen[bytes], most: int) -> int:
        """Hand a process further items, as many as are left; returns their number."""
        for count in range(most):
            try:
                (item,) = self._waiting.get_nowait()
            except queue.Empty:
                return count
            _write(process, item)
        return most

    def next_message(self) -> WorkNote | WorkResult:
        """What comes next from any process; raises what the work raised."""
        while True:
            try:
                message = self._messages.get(timeout=_LOOK)
                break
            except queue.Empty:
                continue
        if isinstance(message, WorkError):
            raise _restore(message)
        if isinstance(message, Exception):
            raise message
        if isinstance(message, subprocess.Popen):
            raise UserError(
                f"expected every worker process to live, one ended {_describe_end(_end(message))}; what is"
                " finished is kept: run the same command to go on, where memory ran out with fewer --workers"
            )
        return message  # type: ignore[no-any-return]

    def stop(self) -> None:
        """End the processes: each ends itself when its pipe is closed, whatever it is doing."""
        for process in self._processes:
            with suppress(OSError):  # it is gone, and something was still to be written
                process.stdin.close()  # type: ignore[union-attr]
        for process in self._processes:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> int:
    """The status of a process that ends, or is ended."""
    try:
        return process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _share_out(count: int, workers: int, most: int) -> list[int]:
    """How many of the items each worker has in hand at once: no more than its fair share of them."""
    return [min(most, count // workers + (place < count % workers)) for place in range(workers)]


class _RemoteTraceback(Exception):
    """The traceback of an error in a worker process, as its text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _restore(message: WorkError) -> BaseException:
    try:
        error: BaseException = pickle.loads(message.error)
    except Exception:  # noqa: BLE001  an error of a package that the worker alone has loaded
        error = RuntimeError(message.text.splitlines()[-1])
    error.__cause__ = _RemoteTraceback(message.text)
    return error


def _write(process: subprocess.Popen[bytes], message: Any) -> None:
    pickle.dump(message, process.stdin, pickle.HIGHEST_PROTOCOL)  # type: ignore[arg-type]
    process.stdin.flush()  # type: ignore[union-attr]


def _describe_end(status: int) -> str:
    names = {member.value: member.name for member in signal.Signals}
    return f"by {names.get(-status, -status)}" if status < 0 else f"with status {status}"
