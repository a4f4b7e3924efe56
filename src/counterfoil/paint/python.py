"""A painter of one's own: `python:module:factory`."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
        for image in found:
            fits = isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.shape[2:] == (3,)
            if not (isinstance(image, Refusal) or fits):
                raise UserError(
                    f"expected pictures as uint8 arrays (height, width, 3) from {self.name}, got {type(image).__name__}"
                )
        return found


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
    painter = factory()
    file = Path(source.__file__ or "")
    return PythonPainter(
        address, painter, str(getattr(painter, "digest", hashlib.sha256(file.read_bytes()).hexdigest()))
    )
