"""Two edits at once, the second applied to the picture that the first makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from counterfoil.edits.edit_protocol import Edit, Needs, RecipeEdit, Resolution, ShownFill, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Classifier, EditLevel, Picture


@dataclass(frozen=True)
class Part:
    """One edit of a combination, as in a recipe."""

    edit: str
    settings: dict[str, Any] = field(default_factory=dict, hash=False)


SMALL = Part("size", {"rate": 0.05})


@dataclass(frozen=True)
class Combine(Edit):
    """Apply two edits, the second to what the first made."""

    attribute: ClassVar[Attribute] = "combination"
    edits: tuple[Part, Part] = (Part("background-blur"), SMALL)

    def __post_init__(self) -> None:
        self._check_surrogates()
        if self._donor_rules:
            raise UserError("edits: expected edits without another photo; 'combine-donor' takes one that needs it")

    def _check_surrogates(self) -> None:
        addresses = {edit.needs.surrogate for edit in _make_parts(self.edits)} - {None}
        if len(addresses) > 1:
            raise UserError(f"edits: expected one surrogate, got {' and '.join(sorted(map(str, addresses)))}")

    @property
    def _donor_rules(self) -> list[str]:
        """The donor rules of the parts that take a donor."""
        return [edit.needs.donor for edit in _make_parts(self.edits) if edit.needs.donor is not None]

    @property
    def level(self) -> str:
        """Both edits with their levels: "background-blur 15/3 + size 0.05"."""
        parts = zip(self.edits, _make_parts(self.edits), strict=True)
        return " + ".join(f"{part.edit} {edit.level}" for part, edit in parts)

    @classmethod
    def crossed(cls, name: str, level: str) -> tuple[EditLevel, EditLevel] | None:
        """Both edits, each alone."""
        first, found, second = level.partition(" + ")
        parts = [EditLevel(*part.partition(" ")[::2]) for part in (first, second)]
        return (parts[0], parts[1]) if found else None

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """Both edits, each alone."""
        return tuple(RecipeEdit(part.edit, part.settings) for part in self.edits)

    @property
    def picture_version(self) -> int:
        """The version, raised by those of the parts."""
        return self.version + sum(edit.picture_version - 1 for edit in _make_parts(self.edits))

    @property
    def needs(self) -> Needs:
        """The donor, surrogate and GPU that the parts need."""
        first, second = (edit.needs for edit in _make_parts(self.edits))
        return Needs(
            donor=first.donor or second.donor,
            candidates=max(first.candidates, second.candidates),
            surrogate=first.surrogate or second.surrogate,
            gpu=first.gpu or second.gpu,
            scene=first.scene or second.scene,
        )

    def settle(self) -> Edit:
        """With the parts as this machine can make them; raises `UserError` where one then takes another photo."""
        return self._exchange(lambda edit: edit.settle())

    def choose(self, seed: int) -> Edit:
        """Let a part in a scene choose it, the same as it has alone; other parts choose when they are applied."""
        return self._exchange(lambda edit: edit.choose(seed) if edit.needs.scene else edit)

    @property
    def shows_fill(self) -> bool:
        """Whether a part shows one."""
        return any(edit.shows_fill for edit in _make_parts(self.edits))

    def find_shown_fill(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> ShownFill | None:
        """That of the part which shows one; None where it fills what the other part made, which is not kept."""
        first, second = _make_parts(self.edits)
        if second.shows_fill and second.needs.donor is not None:
            return second.find_shown_fill(subject, rng, supplied)
        if second.shows_fill and first.behind(subject, supplied) is None:
            return None
        return first.find_shown_fill(subject, rng, supplied)

    @property
    def moves_object(self) -> bool:
        """Whether a part does."""
        return any(edit.moves_object for edit in _make_parts(self.edits))

    def check_surrogate(self, surrogate: Classifier) -> None:
        """Raises `UserError` where a part refuses the surrogate."""
        for edit in _make_parts(self.edits):
            if edit.needs.surrogate is not None:
                edit.check_surrogate(surrogate)

    def check_subject(self, subject: Subject) -> None:
        """Raises `Unusable` where a part refuses the photo."""
        for edit in _make_parts(self.edits):
            edit.check_subject(subject)

    def check_donor(self, donor: Subject) -> None:
        """Raises `Unusable` where the part that takes the donor refuses it."""
        for edit in _make_parts(self.edits):
            if edit.needs.donor is not None:
                edit.check_donor(donor)

    def check_fit(self, subject: Subject, donor: Subject, exposed: bool = False) -> None:
        """Raises `Unusable` where the part that takes the donor refuses it for this photo."""
        parts = _make_parts(self.edits)
        exposed = exposed or any(edit.moves_object for edit in parts)
        for edit in parts:
            if edit.needs.donor is not None:
                edit.check_fit(subject, donor, exposed)

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Let each part choose on the unedited photo, as it would alone."""
        donors = [0]

        def resolve(edit: Edit) -> Edit:
            resolution = edit.resolve(subject, supplied)
            donors.extend([resolution.donor] if edit.needs.donor is not None else [])
            return resolution.edit

        return Resolution(self._exchange(resolve), donors[-1])

    def _exchange(self, change: Callable[[Edit], Edit]) -> Combine:
        """The combination of other edits for its parts; a part that stays keeps its settings as they were given."""
        # Imported here because the registry imports this module.
        from counterfoil.edits.registry import settings_of

        parts = []
        for part, edit in zip(self.edits, _make_parts(self.edits), strict=True):
            changed = change(edit)
            parts.append(part if changed == edit else Part(part.edit, settings_of(changed)))
        return replace(self, edits=(parts[0], parts[1]))

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Apply the first edit, then the second to its result."""
        first, second = _make_parts(self.edits)
        made = first.apply(subject, rng, supplied)
        return second.apply(subject.derive(made, first.behind(subject, supplied)), rng, supplied)


@dataclass(frozen=True)
class CombineDonor(Combine):
    """Apply two edits, one of which takes another photo's background."""

    edits: tuple[Part, Part] = (Part("background-swap"), SMALL)

    def __post_init__(self) -> None:
        self._check_surrogates()
        if len(self._donor_rules) != 1:
            raise UserError("edits: expected one edit that takes another photo's background, and one that does not")


def _make_parts(parts: tuple[Part, Part]) -> tuple[Edit, Edit]:
    for part in parts:
        if part.edit.startswith("combine"):
            raise UserError(f"edits: expected two simple edits, got {part.edit!r}")
    first, second = (_make_part(part.edit, json.dumps(part.settings, sort_keys=True)) for part in parts)
    return first, second


@lru_cache(maxsize=256)
def _make_part(name: str, settings: str) -> Edit:
    # Imported here because the registry imports this module.
    from counterfoil.edits.registry import edit_named

    return edit_named(name, json.loads(settings))
