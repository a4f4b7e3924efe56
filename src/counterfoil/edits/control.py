"""The control edit: cut out, filled and pasted back unchanged, to measure what cutting and pasting cost.

It covers the hole that it fills, so it says nothing about the fill behind a moved, shrunk or removed object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edits.composition import Composition, Plane
from counterfoil.edits.edit_protocol import ComposedEdit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.types import Attribute


@dataclass(frozen=True)
class Control(ComposedEdit):
    """Cut the object out, fill the background and paste the object back at its place."""

    attribute: ClassVar[Attribute] = "control"

    @property
    def level(self) -> str:
        """Always "none"."""
        return "none"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Paste the cut-out object back on the filled background."""
        return subject.compose_on(Plane(subject.background))
