"""The control: cut, filled and pasted back unchanged, to measure what the tool itself costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.types import Attribute, Picture


@dataclass(frozen=True)
class Control(Edit):
    """Cut the object, fill the background and paste the object back at its place: what the tool itself costs."""

    attribute: ClassVar[Attribute] = "control"

    @property
    def level(self) -> str:
        """Always "none"."""
        return "none"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Change nothing but what cutting and pasting change."""
        return subject.on_background(subject.background)
