"""Background that a surrogate handles worst."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.background import BackgroundSwap
from counterfoil.edits.edit_protocol import Edit, Needs, Resolution, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, DonorRule, Picture

TrueScores = Callable[[Sequence[NDArray[np.uint8]]], Sequence[float]]  # images to probabilities of the true label


@dataclass(frozen=True)
class BackgroundWorst(Edit):
    """Put the object before the one of several photos' backgrounds that makes a surrogate doubt the truth most."""

    attribute: ClassVar[Attribute] = "background"
    donors: DonorRule = "other"
    candidates: int = 8
    surrogate: str = "embedded:efficientnet-lite0"  # address of the model

    def __post_init__(self) -> None:
        if self.candidates < 2:
            raise UserError(f"candidates: expected at least 2 backgrounds to choose from, got {self.candidates}")

    @property
    def level(self) -> str:
        """How many there were: "worst of 8"."""
        return f"worst of {self.candidates}"

    @property
    def needs(self) -> Needs:
        """Several donors, and the surrogate that judges them."""
        return Needs(donor=self.donors, candidates=self.candidates, surrogate=self.surrogate)

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Choose the donor whose background leaves the true label the least probability."""
        return Resolution(self, donor=self.worst(subject, supplied.donors, supplied.true_scores))

    def worst(self, subject: Subject, donors: Sequence[Subject], score: TrueScores) -> int:
        """The place of the donor whose background leaves the true label the least probability."""
        places, images = [], []
        for place, donor in enumerate(donors):
            try:
                images.append(self.apply(subject, np.random.default_rng(0), Supplied(donors=(donor,))).image)
            except Unusable:
                continue
            places.append(place)
        if not places:
            raise Unusable(f"none of {len(donors)} donors has a background to lend")
        return places[int(np.argmin(score(images)))]

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Take the background of the donor that was chosen."""
        return BackgroundSwap(self.donors).apply(subject, rng, supplied)
