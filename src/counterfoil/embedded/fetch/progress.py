"""How a download shows itself on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from tqdm import tqdm

# Called with a download's name and its size in bytes; yields what is called with the number of bytes present so far.
Progress: TypeAlias = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def show_progress(what: str, size: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; elsewhere one line at the start and one at the end."""
    with (_bar if sys.stderr.isatty() else _lines)(what, size) as update:
        yield update


@contextmanager
def _bar(what: str, size: int) -> Iterator[Callable[[int], None]]:
    with tqdm(desc=what, total=size, unit="B", unit_scale=True, file=sys.stderr) as bar:

        def update(present: int) -> None:
            bar.update(present - bar.n)

        yield update


@contextmanager
def _lines(what: str, size: int) -> Iterator[Callable[[int], None]]:
    print(f"fetching {what} ({size / 1e6:.1f} MB)", file=sys.stderr, flush=True)
    yield lambda present: None
    print(f"fetched {what}", file=sys.stderr, flush=True)
