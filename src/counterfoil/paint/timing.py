"""How long painting takes where there is no GPU, said before it begins."""

from __future__ import annotations

import time
from collections.abc import Callable

from counterfoil.errors import UserError
from counterfoil.paint.batching import OnDevice

_LONGEST_SECONDS = 3600.0  # that a CPU may paint without being asked twice


def refuse_slow(painter: OnDevice, seconds_a_picture: Callable[[], float], pictures: int) -> None:
    """Raise where a CPU that nobody chose would paint for hours; a GPU, or `--device cpu`, is never asked."""
    if painter.device != "cpu" or painter.options.device == "cpu":
        return
    seconds = seconds_a_picture()
    if seconds * pictures > _LONGEST_SECONDS:
        raise UserError(
            f"no GPU here: {painter.name} takes about {seconds:.1f} seconds a picture on this CPU,"
            f" {seconds * pictures / 3600:.1f} hours for {pictures:,}; use a machine with a GPU, fewer pictures"
            " (--limit), fewer --steps, or give --device cpu to go on all the same"
        )


def seconds_of(work: Callable[[], object]) -> float:
    """How long this takes."""
    start = time.monotonic()
    work()
    return time.monotonic() - start
