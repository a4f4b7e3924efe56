"""A painter of one's own, by `python:module:factory` or from another package; its faults are said in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from counterfoil.errors import UserError
from counterfoil.own_code import Plugin, made_by, optional, source_digest, told_of
from counterfoil.paint.painter import Painted, PainterBase, PaintOptions, Paints, Refusal, Wish

_OF_DIFFUSERS = ("steps", "guidance", "scheduler", "size", "strength", "device", "precision")


@dataclass(frozen=True)
class PythonPainter(PainterBase):
    """Makes a painter of an object with `paint(wishes)`: the number, type and shape of its pictures are checked."""

    name: str
    painter: Any
    digest: str  # of the module's source, where the object names none

    @property
    def settings(self) -> Mapping[str, object]:
        """What the object says of itself."""
        return {"painter": self.name, "revision": self.digest, **optional(self.painter, "settings", {})}

    @property
    def environment(self) -> Mapping[str, str]:
        """What the object says of its making."""
        return dict(optional(self.painter, "environment", {}))

    def check_prompt(self, prompt: str) -> None:
        """What the object refuses, where it looks at prompts."""
        if isinstance(self.painter, PainterBase):
            self.painter.check_prompt(prompt)

    def check_time(self, wish: Wish, pictures: int) -> None:
        """What the object refuses, where it knows how long it takes."""
        if isinstance(self.painter, PainterBase):
            self.painter.check_time(wish, pictures)

    def paint(self, wishes: Sequence[Wish]) -> list[Painted]:
        """One picture or refusal per wish, in order."""
        with told_of(f"{self.name} failed at {_prompts(wishes)}", "; what is finished is kept"):
            found = list(self.painter.paint(wishes))
        if len(found) != len(wishes):
            raise UserError(f"expected {len(wishes)} pictures from {self.name}, got {len(found)}")
        for image, wish in zip(found, wishes, strict=True):
            if not (isinstance(image, Refusal) or _fits(image, wish)):
                raise UserError(f"expected {_wanted(wish)} or a Refusal from {self.name}, got {_told(image)}")
        return found


def _fits(image: object, wish: Wish) -> bool:
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.shape[2:] != (3,) or not image.size:
        return False
    return wish.around is None or image.shape == wish.around.image.shape


def _wanted(wish: Wish) -> str:
    shape = "(height, width, 3)" if wish.around is None else f"{wish.around.image.shape}, that of the photo,"
    return f"an array of dtype uint8 and shape {shape}"


def _told(image: object) -> str:
    if isinstance(image, np.ndarray):
        return f"one of dtype {image.dtype} and shape {image.shape}"
    return f"an object of type {type(image).__name__}"


def _prompts(wishes: Sequence[Wish]) -> str:
    more = f" or at one of {len(wishes) - 1} more prompts of its batch" if len(wishes) > 1 else ""
    return f"the prompt '{wishes[0].prompt}'{more}"


def load_python_painter(address: str, place: str, paints: Paints, options: PaintOptions) -> PythonPainter:
    """Import the module and call its factory."""
    _refuse_unused(address, options)
    return _as_painter(address, *made_by(address, place))


def load_plugin_painter(address: str, plugin: Plugin, paints: Paints, options: PaintOptions) -> PythonPainter:
    """The painter that another package's loader makes of the address."""
    with told_of(f"expected '{address}' to load, but it fails"):
        painter = plugin.load(address, address.partition(":")[2], paints, options)
    return _as_painter(address, painter, plugin.module)


def _as_painter(address: str, painter: Any, module: ModuleType) -> PythonPainter:
    if not callable(optional(painter, "paint", None)):
        raise UserError(f"expected '{address}' to name a factory of an object with `paint(wishes)`, got none")
    made = PythonPainter(address, painter, str(optional(painter, "digest", None) or source_digest(module)))
    try:
        json.dumps([made.settings, made.environment], allow_nan=False)
    except (TypeError, ValueError) as error:
        expected = f"expected `settings` and `environment` of '{address}' as dictionaries ready for JSON"
        raise UserError(f"{expected}: {error}") from error
    return made


def _refuse_unused(address: str, options: PaintOptions) -> None:
    """A setting that goes nowhere would stand in nobody's pictures."""
    usual = PaintOptions()
    for name in _OF_DIFFUSERS:
        if getattr(options, name) != getattr(usual, name):
            raise UserError(f"expected no --{name} with {address}: its factory is asked without settings; set it there")
