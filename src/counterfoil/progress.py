"""Progress on standard error: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tqdm import tqdm

from counterfoil.types import Item

_SECONDS_BETWEEN_LINES = 10.0
# always items per second, never seconds per item
_NUMBERS = "{n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_noinv_fmt}]"
_LINE, _BAR = f"{{percentage:3.0f}}% {_NUMBERS}", f"{{percentage:3.0f}}%|{{bar}}| {_NUMBERS}"


@dataclass(frozen=True)
class Extent:
    """The amount of work, in units; an item may hold several."""

    done: int  # before
    total: int
    unit: str  # such as " photos"


def show_progress(
    items: Iterable[Item], extent: Extent, size: Callable[[Item], int] = lambda item: 1
) -> Iterator[Item]:
    """Pass the items on and show rate and time left on standard error."""
    if sys.stderr.isatty():
        yield from _with_bar(items, extent, size)
        return
    start = last = time.monotonic()
    count = extent.done
    for item in items:
        yield item
        count, now = count + size(item), time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES or count == extent.total:
            line = tqdm.format_meter(
                count, extent.total, now - start, initial=extent.done, unit=extent.unit, bar_format=_LINE
            )
            print(line, file=sys.stderr)
            last = now


def _with_bar(items: Iterable[Item], extent: Extent, size: Callable[[Item], int]) -> Iterator[Item]:
    with tqdm(
        initial=extent.done, total=extent.total, unit=extent.unit, bar_format=_BAR, file=sys.stderr, dynamic_ncols=True
    ) as bar:
        for item in items:
            yield item
            bar.update(size(item))
