"""Batches that shrink until they fit into the device's memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from counterfoil.errors import UserError
from counterfoil.extras import required
from counterfoil.paint.painter import PaintOptions

Asked = TypeVar("Asked")
Made = TypeVar("Made")


class OnDevice(Protocol):
    """A painter as batching sees it."""

    @property
    def name(self) -> str:
        """Its address."""

    @property
    def device(self) -> str:
        """Where it paints."""

    @property
    def options(self) -> PaintOptions:
        """How many pictures at once it was asked for."""


def in_batches(
    items: Sequence[Asked], paint: Callable[[Sequence[Asked]], list[Made]], painter: OnDevice, room: list[int]
) -> list[Made]:
    """Everything painted; `room` remembers the batch that fits, so that no later call fails again."""
    done: list[Made] = []
    while len(done) < len(items):
        size = room[-1] if room else painter.options.batch_size
        batch = items[len(done) : len(done) + size]
        if not _fits(batch, paint, done):
            room.append(_smaller(len(batch), painter))
    return done


def _fits(batch: Sequence[Asked], paint: Callable[[Sequence[Asked]], list[Made]], done: list[Made]) -> bool:
    try:
        done += paint(batch)
    except required("torch", "diffusion").OutOfMemoryError:
        return False  # memory is freed outside: the error's traceback holds that of the batch that failed
    return True


def _smaller(failed: int, painter: OnDevice) -> int:
    if failed == 1:
        raise UserError(
            f"{painter.name} has no room for a single picture on {painter.device}: give a smaller --size"
            " (in a recipe: size or working_size), --precision bf16, or another device"
        )
    gc.collect()
    if painter.device.startswith("cuda"):
        required("torch", "diffusion").cuda.empty_cache()
    return failed // 2
