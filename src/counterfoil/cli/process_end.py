"""How a process ends: signals as Ctrl-C does, output that nobody takes, a full disk; each with one line."""

from __future__ import annotations

import atexit
import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable
from types import FrameType
from typing import Any, NoReturn, TextIO

from counterfoil.errors import describe_exit
from counterfoil.store.files import DISK_FULL

_SIGNALS = ("SIGTERM", "SIGHUP")
_REASONS = {errno.EIO, errno.EROFS, errno.ESTALE, errno.EMFILE, errno.ENFILE}


class Terminated(KeyboardInterrupt):
    """The process was told to end by a signal other than Ctrl-C's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name = signal.Signals(number).name
        self.status = 128 + number  # what shells give


def handle_signals() -> None:
    """Let SIGTERM and SIGHUP end the work as Ctrl-C does; a signal that the caller ignores (nohup) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        return
    owner = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        if os.getpid() != owner:  # a forked worker
            os.kill(os.getpid(), number)
            return
        raise Terminated(number)

    for name in _SIGNALS:
        number = vars(signal).get(name)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, stop)


class GuardedOutput:
    """A text stream whose reader may go away: what is written later is dropped, and the work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.fault: OSError | None = None  # why nothing is written any more; None also where the reader went away
        self._is_dropping = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        if not self._is_dropping:
            try:
                return self._stream.write(text)
            except OSError as error:
                self._drop(error)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hand over what is buffered."""
        if not self._is_dropping:
            try:
                self._stream.flush()
            except OSError as error:
                self._drop(error)

    def _drop(self, error: OSError) -> None:
        """Send everything from now on, also what is buffered, to nowhere."""
        self._is_dropping = True
        self.fault = None if error.errno == errno.EPIPE else error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


def guard_output() -> None:
    """Let both streams survive a reader that goes away, as in `counterfoil run ... | head -1`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, GuardedOutput):
            setattr(sys, name, GuardedOutput(stream))


def close_output(status: int) -> int:
    """The exit status: that of the work, or 2 where its output could not be written."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    fault = sys.stdout.fault if isinstance(sys.stdout, GuardedOutput) else None
    if fault is None:
        return status
    print(f"counterfoil: the output cannot be written: {fault.strerror}; files are complete", file=sys.stderr)
    return status or 2


def describe_failure(error: OSError) -> str | None:
    """What the system refused, in one line; None where it can only be a bug."""
    if error.errno in DISK_FULL:
        where = f" while writing {error.filename}" if error.filename else ""
        return f"the disk is full{where}: free some space and run the same command again; what is finished is kept"
    if error.filename is not None:
        return f"{error.filename} cannot be used: {error.strerror}; check the path and its permissions"
    if error.errno in _REASONS:
        return f"the system refuses: {error.strerror}; what is finished is kept, run the same command to go on"
    return None


def describe_foreign_exit(error: SystemExit) -> str:
    """Where code other than a command called sys.exit, in one line; empty where a command did."""
    frame, _ = list(traceback.walk_tb(error.__traceback__))[-1]
    if str(frame.f_globals.get("__name__")).startswith("counterfoil.cli."):
        return ""
    if frame.f_code.co_name == "_main_shell_completion":  # click's answer to a shell that completes a line
        return ""
    return describe_exit(error)


def end_process(status: int) -> NoReturn:
    """End with this status and without the interpreter's teardown, in which threads of a library may abort the process.

    Threads are joined and exit functions called as in an ordinary end.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # also ends the threads of pools that wait for work
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)
