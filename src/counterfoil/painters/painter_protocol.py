"""The protocol of a painter, its requests and options, and functions that painters share.

These are prompts from templates, batches that shrink until they fit into memory, and the refusal of hours on a CPU.
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
_LONGEST_SECONDS = 3600.0  # that a CPU may paint without `--device cpu`


@dataclass(frozen=True)
class PaintRequest:
    """One picture to paint; where `around` is given, its object stays and the rest is painted."""

    prompt: str
    negative: str
    seed: int
    around: Picture | None = None


@dataclass(frozen=True)
class PaintRefused:
    """The reason why the painter gave no picture."""

    reason: str


Painted: TypeAlias = "NDArray[np.uint8] | PaintRefused"  # (height, width, 3), RGB


class Painter(Protocol):
    """Paints pictures from prompts; a picture does not depend on the other requests of its batch.

    `PainterBase` has the defaults of all but the name and `paint`.
    """

    @property
    def name(self) -> str:
        """The address it was loaded from."""

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings that change its pictures, as JSON values (revision, steps, ...); part of every picture's id."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Device and versions, which are recorded but are no part of the id."""

    def paint(self, requests: Sequence[PaintRequest]) -> list[Painted]:
        """One picture or refusal per request, in order."""

    def check_prompt(self, prompt: str) -> None:
        """Raises `UserError` where it does not understand this prompt."""

    def check_time(self, request: PaintRequest, pictures: int) -> None:
        """Raises `UserError` with an estimate where so many pictures would take too long on this machine."""


class PainterBase:
    """Defaults of a `Painter`."""

    @cached_property
    def settings(self) -> Mapping[str, object]:
        """Empty: there are no settings."""
        return {}

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """Empty: there is nothing to record."""
        return {}

    def check_prompt(self, prompt: str) -> None:
        """Accepts every prompt."""

    def check_time(self, request: PaintRequest, pictures: int) -> None:
        """Accepts any number of pictures."""


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


Item = TypeVar("Item")
Result = TypeVar("Result")


class OnDevice(Protocol):
    """The attributes of a painter that batching needs."""

    @property
    def name(self) -> str:
        """Its address."""

    @property
    def device(self) -> str:
        """Its device."""

    @property
    def options(self) -> PaintOptions:
        """Its options, with the batch size."""


def run_in_batches(
    items: Sequence[Item], paint: Callable[[Sequence[Item]], list[Result]], painter: OnDevice, fitting: list[int]
) -> list[Result]:
    """The results of all items, in batches; `fitting` keeps the batch size that fits into memory."""
    done: list[Result] = []
    while len(done) < len(items):
        size = fitting[-1] if fitting else painter.options.batch_size
        batch = items[len(done) : len(done) + size]
        try:
            done += paint(batch)
            continue
        except import_extra("torch", "diffusion").OutOfMemoryError:
            pass  # memory is freed below: here the error's traceback still holds the failed batch
        fitting.append(_free_memory(len(batch), painter))
    return done


def _free_memory(failed: int, painter: OnDevice) -> int:
    """Free the failed batch's memory; returns half of its size, to try next."""
    if failed == 1:
        raise UserError(
            f"{painter.name} has no room for a single picture on {painter.device}: give a smaller --size"
            " (in a recipe: size or working_size), --precision bf16, or another device"
        )
    gc.collect()
    if painter.device.startswith("cuda"):
        import_extra("torch", "diffusion").cuda.empty_cache()
    return failed // 2


def add_article(name: str) -> str:
    """A name with "a" or "an" before it."""
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def fill_template(template: str, category: str, value: str = "") -> str:
    """The template with category and value filled in, each with its article where asked for."""
    return template.format(category=category, a_category=add_article(category), value=value, a_value=add_article(value))


def display_name(name: str) -> str:
    """A label's name with spaces: "pop can" for "pop_can"."""
    return " ".join(name.replace("_", " ").split())


def refuse_slow(painter: OnDevice, seconds_a_picture: Callable[[], float], pictures: int) -> None:
    """Raises `UserError` where a CPU would paint for hours, unless it was chosen by `--device cpu`."""
    if painter.device != "cpu" or painter.options.device == "cpu":
        return
    seconds = seconds_a_picture()
    if seconds * pictures > _LONGEST_SECONDS:
        raise UserError(
            f"no GPU here: {painter.name} takes about {seconds:.1f} seconds a picture on this CPU,"
            f" {seconds * pictures / 3600:.1f} hours for {pictures:,}; use a machine with a GPU, fewer pictures"
            " (--limit), fewer --steps, or give --device cpu to go on all the same"
        )


def measure_seconds(work: Callable[[], object]) -> float:
    """The seconds that some work takes."""
    start = time.monotonic()
    work()
    return time.monotonic() - start
