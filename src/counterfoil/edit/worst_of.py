"""The background that a given model handles worst, among several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.background import BackgroundSwap
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, DonorRule, Picture

TrueScores = Callable[[Sequence[NDArray[np.uint8]]], Sequence[float]]  # images to probabilities of the true label


@dataclass(frozen=True)
class BackgroundWorst:
    """Put the object before the one of several photos' backgrounds that makes a surrogate doubt the truth most."""

    # The choice needs a model, the picture does not: whoever has the model calls `worst` and records the donor, and
    # from then on this is a swap like any other.
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

    def worst(self, picture: Picture, donors: Sequence[Picture], score: TrueScores) -> int:
        """The place of the donor whose background leaves the true label the least probability."""
        swap, places, images = BackgroundSwap(self.donors), [], []
        for place, donor in enumerate(donors):
            try:
                images.append(swap(picture, np.random.default_rng(0), donor).image)
            except Unusable:
                continue
            places.append(place)
        if not places:
            raise Unusable(f"none of {len(donors)} donors has a background to lend")
        return places[int(np.argmin(score(images)))]

    def __call__(self, picture: Picture, rng: np.random.Generator, donor: Picture) -> Picture:
        """Take the background of the donor that was chosen."""
        return BackgroundSwap(self.donors)(picture, rng, donor)
