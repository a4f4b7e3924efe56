"""Batches that shrink until they fit memory.

Painter protocol, paint request, refusal, options; prompt from template, category and value; refusal of slow
painting without a GPU.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.plugins import import_extra
from counterfoil.types import Picture

Paints: TypeAlias = Literal["pictures", "backgrounds"]
PaintPrecision: TypeAlias = Literal["auto", "f32", "bf16", "fp16"]


@dataclass(frozen=True)
class PaintRequest:
    """One picture to paint; where `around` is given, its object stays and the rest is painted."""

    prompt: str
    negative: str
    seed: int
    around: Picture | None = None


@dataclass(frozen=True)
class PaintRefused:
    """A picture that the painter did not give, and why."""

    reason: str


Painted: TypeAlias = "NDArray[np.uint8] | PaintRefused"  # (height, width, 3), RGB


class Painter(Protocol):
    """Pictures from words; the picture of a wish does not depend on the wishes beside it.

    `PainterBase` has the defaults of all but the name and `paint`.
    """

    @property
    def name(self) -> str:
        """The address it was loaded from."""

    @property
    def settings(self) -> Mapping[str, object]:
        """What changes its pictures, ready for JSON: revision, scheduler, steps; part of every picture's id."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What its pictures are made with: device and versions; recorded, no part of the id."""

    def paint(self, wishes: Sequence[PaintRequest]) -> list[Painted]:
        """One picture or refusal per wish, in order."""

    def check_prompt(self, prompt: str) -> None:
        """Raise `UserError` where it does not understand this prompt."""

    def check_time(self, wish: PaintRequest, pictures: int) -> None:
        """Raise `UserError` with an estimate where so many pictures would take too long on this machine."""


class PainterBase:
    """Defaults of a `Painter`."""

    @cached_property
    def settings(self) -> Mapping[str, object]:
        """Nothing that can be set."""
        return {}

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """Nothing to record."""
        return {}

    def check_prompt(self, prompt: str) -> None:
        """Every prompt is understood."""

    def check_time(self, wish: PaintRequest, pictures: int) -> None:
        """It is fast enough on every machine."""


@dataclass(frozen=True, kw_only=True)
class PaintOptions:
    """How a painter is to be loaded and run; None leaves the choice to the model."""

    device: str = "auto"  # auto takes a GPU where torch sees one
    precision: PaintPrecision = "auto"  # bf16 on a GPU, f32 elsewhere
    batch_size: int = 8
    steps: int | None = None
    guidance: float | None = None
    scheduler: str | None = None
    size: int | None = None  # side of square pictures; the longer side where a photo's background is painted
    strength: float | None = None  # how much of the background's noise is new, where a background is painted

    def __post_init__(self) -> None:
        for name in ("batch_size", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"expected {name.replace('_', ' ')} of at least 1, got {value}")
        if self.size is not None and (self.size < 8 or self.size % 8):
            raise UserError(f"expected a size that is a multiple of 8, got {self.size}")
        if self.guidance is not None and not 0 <= self.guidance < float("inf"):
            raise UserError(f"expected guidance of 0 or more, got {self.guidance}")
        if self.strength is not None and not 0 < self.strength <= 1:
            raise UserError(f"expected a strength above 0 and at most 1, got {self.strength}")


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


def run_in_batches(
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
    except import_extra("torch", "diffusion").OutOfMemoryError:
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
        import_extra("torch", "diffusion").cuda.empty_cache()
    return failed // 2


_VOWELS = "aeiou"


def with_article(name: str) -> str:
    """A name with "a" or "an" before it."""
    return f"{'an' if name[:1].lower() in _VOWELS else 'a'} {name}"


def prompt_of(template: str, category: str, value: str = "") -> str:
    """The template with the category and the value in their places, each with its article where that is asked for."""
    return template.format(
        category=category, a_category=with_article(category), value=value, a_value=with_article(value)
    )


def display_name(name: str) -> str:
    """A label's name as one says it: "pop_can" is "pop can"."""
    return " ".join(name.replace("_", " ").split())


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
