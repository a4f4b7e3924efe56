"""Two edits at once, which belong to no single attribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from counterfoil.errors import UserError
from counterfoil.types import AnyEdit, Attribute, DonorEdit, DonorRule, Edit, Picture


@dataclass(frozen=True)
class Part:
    """One edit of a combination, as in a recipe."""

    edit: str
    settings: dict[str, Any] = field(default_factory=dict, hash=False)


SMALL = Part("size", {"rate": 0.05})


@dataclass(frozen=True)
class Combine:
    """Apply two edits, the second to what the first made."""

    attribute: ClassVar[Attribute] = "combination"
    edits: tuple[Part, Part] = (Part("background-blur"), SMALL)

    def __post_init__(self) -> None:
        if any(isinstance(edit, DonorEdit) for edit in _made(self.edits)):
            raise UserError("edits: expected edits without another photo; 'combine-donor' takes one that needs it")

    @property
    def level(self) -> str:
        """Both edits with their levels: "background-blur 15/3 + size 0.05"."""
        return _level(self.edits)

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """First the one, then the other."""
        for edit in _made(self.edits):
            picture = _applied(edit, picture, rng, None)
        return picture


@dataclass(frozen=True)
class CombineDonor:
    """Apply two edits, one of which takes another photo's background."""

    attribute: ClassVar[Attribute] = "combination"
    edits: tuple[Part, Part] = (Part("background-swap"), SMALL)

    def __post_init__(self) -> None:
        if sum(isinstance(edit, DonorEdit) for edit in _made(self.edits)) != 1:
            raise UserError("edits: expected one edit that takes another photo's background, and one that does not")

    @property
    def donors(self) -> DonorRule:
        """The rule of the edit that takes one."""
        return next(edit.donors for edit in _made(self.edits) if isinstance(edit, DonorEdit))

    @property
    def level(self) -> str:
        """Both edits with their levels: "background-swap other + size 0.05"."""
        return _level(self.edits)

    def __call__(self, picture: Picture, rng: np.random.Generator, donor: Picture) -> Picture:
        """First the one, then the other."""
        for edit in _made(self.edits):
            picture = _applied(edit, picture, rng, donor)
        return picture


def _made(parts: tuple[Part, Part]) -> list[AnyEdit]:
    # The catalogue holds this module's edits, so it can be asked only once it is whole.
    from counterfoil.edit.catalogue import edit_named

    for part in parts:
        if part.edit.startswith("combine"):
            raise UserError(f"edits: expected two simple edits, got {part.edit!r}")
    return [edit_named(part.edit, part.settings) for part in parts]


def _level(parts: tuple[Part, Part]) -> str:
    return " + ".join(f"{part.edit} {edit.level}" for part, edit in zip(parts, _made(parts), strict=True))


def _applied(edit: AnyEdit, picture: Picture, rng: np.random.Generator, donor: Picture | None) -> Picture:
    if isinstance(edit, DonorEdit) and donor is not None:
        return edit(picture, rng, donor)
    assert isinstance(edit, Edit)
    return edit(picture, rng)
