"""How far the work is: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

from tqdm import tqdm

from counterfoil.types import Item

_SECONDS_BETWEEN_LINES = 10.0


def shown(items: Iterable[Item], done: int, total: int, unit: str) -> Iterator[Item]:
    """Pass the items on and show rate and time left on standard error."""
    if sys.stderr.isatty():
        yield from tqdm(items, initial=done, total=total, unit=unit, file=sys.stderr, dynamic_ncols=True)
        return
    start = last = time.monotonic()
    for count, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES or done + count == total:
            print(
                tqdm.format_meter(done + count, total, now - start, initial=done, unit=unit, ncols=0), file=sys.stderr
            )
            last = now
