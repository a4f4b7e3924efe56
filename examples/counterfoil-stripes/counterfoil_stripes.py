"""Two edits of one's own: all that a contributor writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil import Edit, Needs, Picture, Resolution, Subject, Supplied, UserError
from counterfoil.edits.cutout import cover


@dataclass(frozen=True)
class BackgroundStripes(Edit):
    """Put the object on black and white stripes of a given width."""

    attribute: ClassVar[str] = "background"
    words: ClassVar[str] = "stripes instead"
    width: int = 8

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UserError(f"expected stripes of at least 1 pixel, got {self.width}")

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paste the object; where the stripes begin is drawn."""
        shape = subject.picture.image.shape
        columns = np.arange(shape[1]) + rng.integers(0, 2 * self.width)
        stripes = np.where(columns // self.width % 2, 255, 0).astype(np.uint8)
        return subject.on_background(np.broadcast_to(stripes[None, :, None], shape).copy())


@dataclass(frozen=True)
class PhotoOverlay(Edit):
    """Mix another photo into the background, the one of several that a surrogate handles worst."""

    attribute: ClassVar[str] = "overlay"  # an attribute of its own: tables and report take it as it is
    strength: float = 0.3  # share of the other photo
    candidates: int = 3
    surrogate: str = "embedded:efficientnet-lite0"

    @property
    def needs(self) -> Needs:
        """Several photos of other classes, and the model that chooses among them."""
        return Needs(donor="other", candidates=self.candidates, surrogate=self.surrogate)

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Take the photo that leaves the true label the least probability."""
        images = [self._mix(subject, donor).image for donor in supplied.donors]
        return Resolution(self, donor=int(np.argmin(supplied.true_scores(images))))

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Mix in the photo that was chosen."""
        return self._mix(subject, supplied.donor)

    def _mix(self, subject: Subject, donor: Subject) -> Picture:
        overlay = cover(donor.picture.image, subject.picture.alpha.shape)
        mixed = (1 - self.strength) * subject.background + self.strength * overlay
        return subject.on_background(np.rint(mixed).astype(np.uint8))

    @classmethod
    def describe(cls, level: str) -> str:
        """In the report: "mixing another photo into it (share 0.3) costs ..."."""
        return f"mixing another photo into it (share {level})"
