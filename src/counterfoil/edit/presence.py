"""The picture without its object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edit.base import Edit, Subject, Supplied
from counterfoil.types import Attribute, Picture


@dataclass(frozen=True)
class ObjectRemoved(Edit):
    """Take the object away and fill what was behind it: a model that is still right reads the background."""

    attribute: ClassVar[Attribute] = "presence"

    @property
    def level(self) -> str:
        """Always "removed"."""
        return "removed"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Leave the filled background alone."""
        subject.check_object()
        return Picture(subject.background.copy(), np.zeros_like(subject.picture.alpha))
