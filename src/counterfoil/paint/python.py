"""A painter of one's own: `python:module:factory`."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from counterfoil.errors import UserError
from counterfoil.paint.painter import Painted, PaintOptions, Paints, Refusal, Wish


@dataclass(frozen=True)
class PythonPainter:
    """Lifts what a factory returned to a painter: the number, type and shape of its pictures are checked."""

    name: str
    painter: Any
    digest: str  # of the module's source, where the object names none

    @property
    def settings(self) -> Mapping[str, object]:
        """What the object says of itself."""
        return {"painter": self.name, "revision": self.digest, **getattr(self.painter, "settings", {})}

    @property
    def environment(self) -> Mapping[str, str]:
        """What the object says of its making."""
        return dict(getattr(self.painter, "environment", {}))

    def paint(self, wishes: Sequence[Wish]) -> list[Painted]:
        """One picture or refusal per wish, in order."""
        found = list(self.painter.paint(wishes))
        if len(found) != len(wishes):
            raise UserError(f"expected {len(wishes)} pictures from {self.name}, got {len(found)}")
        for image, wish in zip(found, wishes, strict=True):
            if not (isinstance(image, Refusal) or _fits(image, wish)):
                raise UserError(f"expected uint8 arrays {_shape(wish)} from {self.name}, got {_told(image)}")
        return found


def _fits(image: object, wish: Wish) -> bool:
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.shape[2:] != (3,) or not image.size:
        return False
    return wish.around is None or image.shape == wish.around.image.shape


def _shape(wish: Wish) -> str:
    return "(height, width, 3)" if wish.around is None else f"of the photo's shape {wish.around.image.shape}"


def _told(image: object) -> str:
    return f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__


def load_python_painter(address: str, place: str, paints: Paints, options: PaintOptions) -> PythonPainter:
    """Import the module, from the working folder too, and call its factory."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise UserError(f"expected python:module:factory, got '{address}'")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        source = importlib.import_module(module)
        factory = getattr(source, name)
    except (ImportError, AttributeError) as error:
        raise UserError(f"expected '{address}' to name a factory, but it cannot be imported: {error}") from error
    painter = factory() if callable(factory) else None
    if not callable(getattr(painter, "paint", None)):
        raise UserError(f"expected '{address}' to name a factory of an object with `paint(wishes)`, got none")
    return PythonPainter(address, painter, str(getattr(painter, "digest", None) or _source_digest(source)))


def _source_digest(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes() if file else module.__name__.encode()).hexdigest()
