"""Two edits at once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from counterfoil.edits.edit_protocol import Edit, Needs, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Attribute, DonorRule, Picture


@dataclass(frozen=True)
class Part:
    """One edit of a combination, as in a recipe."""

    edit: str
    settings: dict[str, Any] = field(default_factory=dict, hash=False)


SMALL = Part("size", {"rate": 0.05})


@dataclass(frozen=True)
class Combine(Edit):
    """Apply two edits, the second to what the first made."""

    # The parts get a donor from the frame, and nothing else: one that asks a surrogate paints or swaps without it.
    attribute: ClassVar[Attribute] = "combination"
    edits: tuple[Part, Part] = (Part("background-blur"), SMALL)

    def __post_init__(self) -> None:
        if self._rules():
            raise UserError("edits: expected edits without another photo; 'combine-donor' takes one that needs it")

    def _rules(self) -> list[DonorRule]:
        """The rule of each part that takes a donor."""
        return [edit.needs.donor for edit in _made(self.edits) if edit.needs.donor is not None]

    @property
    def level(self) -> str:
        """Both edits with their levels: "background-blur 15/3 + size 0.05"."""
        return " + ".join(f"{part.edit} {edit.level}" for part, edit in zip(self.edits, _made(self.edits), strict=True))

    @property
    def needs(self) -> Needs:
        """The donor of the part that takes one, and a GPU where a part names one."""
        return Needs(donor=next(iter(self._rules()), None), gpu=any(edit.needs.gpu for edit in _made(self.edits)))

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """First the one, then the other."""
        first, second = _made(self.edits)
        parts = Supplied(label=supplied.label, seed=supplied.seed, donors=supplied.donors)
        return second.apply(Subject(first.apply(subject, rng, parts)), rng, parts)


@dataclass(frozen=True)
class CombineDonor(Combine):
    """Apply two edits, one of which takes another photo's background."""

    edits: tuple[Part, Part] = (Part("background-swap"), SMALL)

    def __post_init__(self) -> None:
        if len(self._rules()) != 1:
            raise UserError("edits: expected one edit that takes another photo's background, and one that does not")


def _made(parts: tuple[Part, Part]) -> tuple[Edit, Edit]:
    for part in parts:
        if part.edit.startswith("combine"):
            raise UserError(f"edits: expected two simple edits, got {part.edit!r}")
    first, second = (_part(part.edit, json.dumps(part.settings, sort_keys=True)) for part in parts)
    return first, second


@lru_cache(maxsize=256)
def _part(name: str, settings: str) -> Edit:
    # The catalogue holds this module's edits, so it can be asked only once it is whole.
    from counterfoil.edits.registry import edit_named

    return edit_named(name, json.loads(settings))
