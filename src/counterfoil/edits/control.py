"""The control edit: cut out, filled and pasted back unchanged, to measure what cutting and pasting cost.

It covers the hole that it fills, so it says nothing about the fill behind a moved, shrunk or removed object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.types import Attribute, Picture


@dataclass(frozen=True)
class Control(Edit):
    """Cut the object out, fill the background and paste the object back at its place."""

    attribute: ClassVar[Attribute] = "control"

    @property
    def level(self) -> str:
        """Always "none"."""
        return "none"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paste the cut-out object back on the filled background."""
        return subject.on_background(subject.background)
