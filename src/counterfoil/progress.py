"""Progress on standard error: a bar on a terminal, plain lines elsewhere, with the time left.

In the kernel of a notebook the bar stands below the cell instead.

A thread looks at the count, so that a stage shows that it lives before its first item is finished. Worker threads and
forked processes may count parts of an item. COUNTERFOIL_PROGRESS=off shows nothing.
"""

from __future__ import annotations

import html
import logging
import multiprocessing
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO

from tqdm import tqdm

from counterfoil.types import Item

_log = logging.getLogger(__name__)
FIRST_SIGN = 1.0  # seconds until a stage is shown; a stage that is over by then shows no sign
BETWEEN_LINES = 10.0  # seconds
_LOOK = 0.5  # seconds between two looks at the count
_PACE_SECONDS, _PACE_UNITS = 60.0, 5  # the pace is that of the last minute, and of so many units at least
_LEAST_SHARE = 0.01  # of the work that must be done before the time left is said
_BAR = "{desc}: {percentage:3.0f}%|{bar}| {n:,.0f} of {total:,.0f} {unit}{postfix}"


@dataclass(frozen=True, kw_only=True)
class Extent:
    """The amount of work of a stage; a total of 0 where it cannot be counted."""

    stage: str  # what is done, such as "editing photos"
    unit: str = ""  # such as "pictures"
    total: int = 0
    done: int = 0  # before this session
    brief: bool = False  # a side task: nothing is shown where it is over at once


def is_brief(extent: Extent) -> bool:
    """Whether a stage is shown only where it takes longer than a second."""
    return extent.brief or not extent.total


class Display(Protocol):
    """Where a stage is shown."""

    def show(self, count: float) -> None:
        """Show the count where that is due."""

    def close(self, count: float) -> None:
        """Show the end of the stage."""


class UnitCounter(Protocol):
    """A number that several workers add to."""

    def add(self, number: float) -> None:
        """Add to the number."""

    def read(self) -> float:
        """The number now."""


class ThreadCounter:
    """A count that threads share."""

    def __init__(self, start: float) -> None:
        self._count, self._lock = start, threading.Lock()

    def add(self, number: float) -> None:
        """Add to the count."""
        with self._lock:
            self._count += number

    def read(self) -> float:
        """The count now."""
        return self._count


class ForkedCounter:
    """A count that forked processes share."""

    def __init__(self, start: float) -> None:
        self._count = multiprocessing.Value("d", start)

    def add(self, number: float) -> None:
        """Add to the count."""
        with self._count.get_lock():
            self._count.value += number

    def read(self) -> float:
        """The count now."""
        return float(self._count.value)


def describe_seconds(seconds: float) -> str:
    """A time in words: 42 s, 3 min 20 s, 2 h 5 min."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Pace:
    """The time left, from the pace of the last minute: models that load at the start do not count for ever.

    Nothing is said before one hundredth of the work is done, and where a unit takes longer than a minute the pace is
    that of the last few units.
    """

    def __init__(self, extent: Extent, start: float) -> None:
        self.extent = extent
        self._looks: deque[tuple[float, float]] = deque([(start, extent.done)])  # time and count, the oldest first

    def estimate_left(self, count: float, now: float) -> float | None:
        """The seconds left at this time and count; None where nothing can be said yet."""
        looks = self._looks
        looks.append((now, count))
        while len(looks) > 2 and now - looks[1][0] >= _PACE_SECONDS and count - looks[1][1] >= _PACE_UNITS:
            looks.popleft()
        first, before = looks[0]
        if count - self.extent.done < _LEAST_SHARE * self.extent.total or count <= before:
            return None
        return (now - first) * (self.extent.total - count) / (count - before)


def describe_time(seconds: float, left: float | None) -> str:
    """The time left, or the time so far where nothing is known of what is left."""
    return f"{describe_seconds(seconds)} so far" if left is None else f"about {describe_seconds(left)} left"


def describe_progress(extent: Extent, count: float, time_words: str) -> str:
    """One line on a stage."""
    if not extent.total:
        return f"{extent.stage}: {time_words}"
    share = f"{100 * count / extent.total:.0f} %"
    return f"{extent.stage}: {int(count):,} of {extent.total:,} {extent.unit} ({share}), {time_words}"


def describe_end(extent: Extent, seconds: float) -> str:
    """One line on a stage that is over."""
    if not extent.total:
        return f"{extent.stage}: done in {describe_seconds(seconds)}"
    return f"{extent.stage}: {extent.total:,} of {extent.total:,} {extent.unit}, done in {describe_seconds(seconds)}"


@dataclass
class ProgressLines:
    """Plain lines: one after the first second, then one every ten seconds, and one at the end."""

    extent: Extent
    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    _start: float = field(init=False)
    _pace: Pace = field(init=False)
    _last: float | None = None  # when the last line was written

    def __post_init__(self) -> None:
        self._start = self.clock()
        self._pace = Pace(self.extent, self._start)

    def show(self, count: float) -> None:
        """Write a line where one is due."""
        now = self.clock()
        left = self._pace.estimate_left(count, now)
        due = self._start + FIRST_SIGN if self._last is None else self._last + BETWEEN_LINES
        if now >= due:
            self._last = now
            words = describe_time(now - self._start, left)
            print(describe_progress(self.extent, count, words), file=self.stream, flush=True)

    def close(self, count: float) -> None:
        """Write the last line: of counted work that was finished, and of a stage that was shown before."""
        complete = not self.extent.total or self.extent.done < self.extent.total <= round(count)
        if complete and (self._last is not None or not is_brief(self.extent)):
            print(describe_end(self.extent, self.clock() - self._start), file=self.stream, flush=True)


class ProgressBar:
    """A bar on a terminal; a brief stage is shown after its first second and removed at its end."""

    def __init__(self, extent: Extent, clock: Callable[[], float] = time.monotonic) -> None:
        self.extent, self.clock, self._start = extent, clock, clock()
        self._pace = Pace(extent, self._start)
        self._bar: tqdm[Any] | None = None if is_brief(extent) else self._open()

    def _open(self) -> tqdm[Any]:
        return tqdm(
            desc=self.extent.stage, total=self.extent.total or None, initial=self.extent.done, unit=self.extent.unit,
            bar_format=_BAR if self.extent.total else "{desc}{postfix}", file=sys.stderr, dynamic_ncols=True,
            leave=not is_brief(self.extent),
        )  # fmt: skip

    def show(self, count: float) -> None:
        """Draw the bar with the count and the time left."""
        now = self.clock()
        left = self._pace.estimate_left(count, now)
        if self._bar is None and now - self._start >= FIRST_SIGN:
            self._bar = self._open()
        if self._bar is not None:
            self._bar.n = count
            self._bar.set_postfix_str(describe_time(now - self._start, left), refresh=True)

    def close(self, count: float) -> None:
        """Draw the bar a last time."""
        if self._bar is not None:
            self._bar.n = count
            self._bar.set_postfix_str(f"done in {describe_seconds(self.clock() - self._start)}", refresh=True)
            self._bar.close()


@dataclass(frozen=True, kw_only=True)
class BarView:
    """One state of a bar, as a notebook shows it."""

    words: str
    count: float = 0
    total: int = 0  # 0 where the work cannot be counted, or is over and nothing is to stay

    def __repr__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self.count:g}" max="{self.total}"></progress> ' if self.total else ""
        return f"<div>{bar}{html.escape(self.words)}</div>" if self.words else ""


class NotebookBar:
    """A bar below the cell of a notebook; a brief stage is shown after its first second and removed at its end."""

    def __init__(
        self, extent: Extent, display: Callable[..., Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.extent, self.clock, self._start = extent, clock, clock()
        self._pace, self._display = Pace(extent, self._start), display
        self._handle: Any = None  # of what is shown; None before

    def show(self, count: float) -> None:
        """Draw the bar with the count and the time left."""
        now = self.clock()
        left = self._pace.estimate_left(count, now)
        if self._handle is None and is_brief(self.extent) and now - self._start < FIRST_SIGN:
            return
        words = describe_progress(self.extent, count, describe_time(now - self._start, left))
        self._draw(BarView(words=words, count=count, total=self.extent.total))

    def close(self, count: float) -> None:
        """Draw the bar a last time; a brief stage, and one that was finished before, leave nothing."""
        if is_brief(self.extent):
            if self._handle is not None:
                self._draw(BarView(words=""))
        elif self.extent.done < self.extent.total <= round(count):
            words = describe_end(self.extent, self.clock() - self._start)
            self._draw(BarView(words=words, count=count, total=self.extent.total))

    def _draw(self, view: BarView) -> None:
        if self._handle is None:
            self._handle = self._display(view, display_id=True)
        else:
            self._handle.update(view)


def find_notebook_display() -> Callable[..., Any] | None:
    """IPython's `display` where this process is the kernel of a notebook, else None."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    shell = None if ipython is None else ipython.get_ipython()
    return ipython.display.display if ipython is not None and hasattr(shell, "kernel") else None


@dataclass(frozen=True)
class ProgressMeter:
    """The count of one stage; workers add to it, and it is shown meanwhile."""

    counter: UnitCounter
    display: Display | None  # None shows nothing
    stage: str = ""  # for the log

    def add(self, number: float = 1) -> None:
        """Count so many more units."""
        self.counter.add(number)

    def refresh(self) -> None:
        """Show the count where that is due, unless a stage within this one is shown."""
        if self.display is not None and _OPEN and _OPEN[-1] is self:
            self.display.show(self.counter.read())


_OPEN: list[ProgressMeter] = []  # stages and the stages within them; only the innermost is shown


@contextmanager
def open_meter(meter: ProgressMeter, look: float | None = _LOOK) -> Iterator[ProgressMeter]:
    """Show a meter while work is done; a thread looks at it every so many seconds, None leaves that to the caller."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(look):
            meter.refresh()

    start = time.monotonic()
    _log.debug("%s: begun", meter.stage)
    _OPEN.append(meter)
    watcher = threading.Thread(target=watch, name="counterfoil-progress", daemon=True)
    if look is not None and meter.display is not None:
        watcher.start()
    try:
        yield meter
    finally:
        over.set()
        if watcher.is_alive():
            watcher.join()
        _OPEN.remove(meter)
        if meter.display is not None:
            meter.display.close(meter.counter.read())
        _log.debug("%s: over after %.2f s", meter.stage, time.monotonic() - start)


def count_progress(extent: Extent, forked: bool = False) -> ProgressMeter:
    """A meter for `open_meter`; `forked` where worker processes add to it."""
    counter: UnitCounter = ForkedCounter(extent.done) if forked else ThreadCounter(extent.done)
    return ProgressMeter(counter, _choose_display(extent), extent.stage)


_HIDDEN: list[bool] = []  # a member for each caller that shows nothing


@contextmanager
def hide_progress() -> Iterator[None]:
    """Show no progress meanwhile, as `-q` and COUNTERFOIL_PROGRESS=off say."""
    _HIDDEN.append(True)
    try:
        yield
    finally:
        _HIDDEN.pop()


def _choose_display(extent: Extent) -> Display | None:
    if _HIDDEN or os.environ.get("COUNTERFOIL_PROGRESS", "").lower() in ("off", "0"):
        return None
    notebook = find_notebook_display()
    if notebook is not None:
        return NotebookBar(extent, notebook)
    return ProgressBar(extent) if sys.stderr.isatty() else ProgressLines(extent, sys.stderr)


@contextmanager
def show_stage(stage: str) -> Iterator[None]:
    """Show that a stage is under way whose work cannot be counted."""
    with open_meter(count_progress(Extent(stage=stage))):
        yield


def show_progress(
    items: Iterable[Item], extent: Extent, size: Callable[[Item], int] = lambda item: 1
) -> Iterator[Item]:
    """Pass the items on and show count and time left on standard error."""
    with open_meter(count_progress(extent)) as meter:
        for item in items:
            yield item
            meter.add(size(item))


class ItemProgress:
    """Counts the parts of one item, never more than its size; `finish` counts what is left of it."""

    def __init__(self, meter: ProgressMeter, size: float) -> None:
        self._meter, self._left = meter, size

    def add(self, number: float = 1) -> None:
        """Count so many units of the item."""
        part = min(number, self._left)
        self._left -= part
        self._meter.add(part)

    def finish(self) -> None:
        """Count the rest of the item."""
        self.add(self._left)
