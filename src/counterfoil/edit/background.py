"""Another background behind the same object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.base import Edit, Needs, Subject, Supplied
from counterfoil.edit.blur import describe_kernel
from counterfoil.edit.cutting import cover
from counterfoil.edit.lighting import in_the_light_of
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, DonorRule, Picture


@dataclass(frozen=True)
class BackgroundSwap(Edit):
    """Put the object before the background of another photo, whose own object is removed and filled."""

    attribute: ClassVar[Attribute] = "background"
    words: ClassVar[str] = "swapping it"
    donors: DonorRule = "other"
    blend: bool = False  # brightens or darkens the object as its new surroundings are: plausible, no longer exact

    @property
    def needs(self) -> Needs:
        """The photo that lends its background."""
        return Needs(donor=self.donors)

    @property
    def level(self) -> str:
        """The class that lends the background: other, same or next."""
        return f"{self.donors}, blended" if self.blend else self.donors

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Take the donor's background, scaled to cover."""
        height, width = subject.picture.alpha.shape
        background = cover(_lent(supplied.donor), (height, width))
        return in_the_light_of(subject, background) if self.blend else subject.on_background(background)


def _lent(donor: Subject) -> NDArray[np.uint8]:
    try:
        return donor.background
    except Unusable as error:
        raise Unusable(f"the donor has no background to lend: {error}") from error


@dataclass(frozen=True)
class BackgroundPlain(Edit):
    """Put the object on a plain colour, drawn at random unless one is given."""

    attribute: ClassVar[Attribute] = "background"
    words: ClassVar[str] = "a plain one instead"
    colour: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        if self.colour is not None and not all(0 <= value <= 255 for value in self.colour):
            raise UserError(f"colour: expected three numbers from 0 to 255 (red, green, blue), got {self.colour}")

    @property
    def level(self) -> str:
        """The colour as in HTML, or "random"."""
        return "random" if self.colour is None else "#{:02x}{:02x}{:02x}".format(*self.colour)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint everything but the object."""
        colour = rng.integers(0, 256, 3) if self.colour is None else self.colour
        return subject.on_background(np.full(subject.picture.image.shape, colour, np.uint8))


@dataclass(frozen=True)
class BackgroundBlur(Edit):
    """Blur the background by a Gaussian of `kernel` x `kernel` pixels, XImageNet-12's unless told otherwise."""

    attribute: ClassVar[Attribute] = "background"
    words: ClassVar[str] = "blurring it"
    kernel: int = 15
    sigma: float = 3.0
    faithful: bool = False  # blur the photo with its object, as the release does: the object's colours spread

    def __post_init__(self) -> None:
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise UserError(f"kernel: expected an odd number of pixels, got {self.kernel}")
        if self.sigma <= 0:
            raise UserError(f"sigma: expected more than 0 pixels, got {self.sigma:g}")

    @property
    def level(self) -> str:
        """Kernel and sigma: "15/3"."""
        return f"{self.kernel}/{self.sigma:g}"

    @classmethod
    def describe(cls, level: str) -> str:
        """What was done at this level, as the subject of a sentence."""
        return super().describe(describe_kernel(level))

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Blur what is behind the object, so that its colours do not leak into a halo."""
        sharp = subject.picture.image if self.faithful else subject.background
        blurred = np.asarray(cv2.GaussianBlur(sharp, (self.kernel, self.kernel), self.sigma), np.uint8)
        if not self.faithful:
            return subject.on_background(blurred)
        alpha = subject.cutout.alpha
        return Picture(np.where((subject.picture.alpha > 0)[..., None], subject.picture.image, blurred), alpha.copy())


@dataclass(frozen=True)
class BackgroundAdditive(Edit):
    """Add another photo's background to the object on black, as XImageNet-12 does: the object shines through."""

    attribute: ClassVar[Attribute] = "background"
    donors: DonorRule = "other"

    @property
    def needs(self) -> Needs:
        """The photo that lends its background."""
        return Needs(donor=self.donors)

    @property
    def level(self) -> str:
        """The class that lends the background: other, same or next."""
        return self.donors

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Sum the levels; what exceeds white is white."""
        height, width = subject.picture.alpha.shape
        alone = subject.on_background(np.zeros_like(subject.picture.image))
        ghost = cv2.add(alone.image, cover(_lent(supplied.donor), (height, width)))
        return Picture(np.asarray(ghost, np.uint8), alone.alpha)
