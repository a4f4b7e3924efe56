"""Edits of the background: swapped, plain, blurred, added, textured; object removed or alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.blur import describe_kernel
from counterfoil.edits.cutout import cover
from counterfoil.edits.edit_protocol import Edit, Needs, Supplied
from counterfoil.edits.fill import check_background
from counterfoil.edits.shadow import relight
from counterfoil.edits.subject import Subject
from counterfoil.edits.texture import RANDOM, check_texture, texture_image, tile_texture
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
        return relight(subject, background) if self.blend else subject.on_background(background)


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


Bytes = NDArray[np.uint8]
Window = tuple[slice, slice]


@dataclass(frozen=True)
class ObjectBox(Edit):
    """Cover the box around the object, so that not even its outline is left: black, or tiled with background."""

    attribute: ClassVar[Attribute] = "presence"
    fill: Literal["black", "tiled"] = "black"

    @property
    def level(self) -> str:
        """The word black or tiled."""
        return self.fill

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Cover everything from the object's first row to its last, and so its columns."""
        subject.check_object()
        left, top, width, height = cv2.boundingRect(subject.alpha)
        check_background(1 - width * height / subject.picture.alpha.size)
        window = (slice(top, top + height), slice(left, left + width))
        image = subject.picture.image.copy()
        image[window] = (
            0 if self.fill == "black" else _tiled(_largest_strip(subject.picture.image, window), (height, width))
        )
        return Picture(image, np.zeros_like(subject.picture.alpha))


def _largest_strip(image: Bytes, window: Window) -> Bytes:
    """The largest rectangle of background: all that is above, below, left or right of the box."""
    rows, columns = window
    strips = (image[: rows.start], image[rows.stop :], image[:, : columns.start], image[:, columns.stop :])
    return max(strips, key=lambda strip: strip.size)


def _tiled(strip: Bytes, shape: tuple[int, int]) -> Bytes:
    """The strip side by side and one below the other until `shape` is full."""
    times = (-(-shape[0] // strip.shape[0]), -(-shape[1] // strip.shape[1]), 1)
    return np.tile(strip, times)[: shape[0], : shape[1]]


@dataclass(frozen=True)
class BackgroundTexture(Edit):
    """Put the object before a texture, in the mean colour of the background that was there."""

    attribute: ClassVar[Attribute] = "background"
    texture: str = RANDOM  # a name of the pool, "random" for any drawn one
    keep_colour: bool = True  # off: the texture's own colours

    def __post_init__(self) -> None:
        check_texture(self.texture, None)

    @property
    def level(self) -> str:
        """The texture: "striped", "random"."""
        return self.texture

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Lay one swatch over the shorter side, from a place drawn at random."""
        piece = texture_image(self.texture, None, rng)
        height, width = subject.picture.alpha.shape
        side = min(height, width)
        left, top = rng.integers(side, size=2)
        places = np.dstack(np.meshgrid(np.arange(width) + left, np.arange(height) + top)).astype(np.float32)
        texture = tile_texture(piece, places, side)
        return subject.on_background(_toned(texture, subject.background) if self.keep_colour else texture)


def _toned(texture: Bytes, behind: Bytes) -> Bytes:
    """The texture moved to the mean colour of what was there, so that the texture alone is what changes."""
    step = np.rint(np.array(cv2.mean(behind)[:3]) - np.array(cv2.mean(texture)[:3]))
    table = np.clip(np.arange(256)[:, None] + step, 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(texture, table[None]), np.uint8)


@dataclass(frozen=True)
class ObjectRemoved(Edit):
    """Take the object away and fill what was behind it: a model that is still right reads the background."""

    attribute: ClassVar[Attribute] = "presence"

    @property
    def level(self) -> str:
        """Always "removed"."""
        return "removed"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Leave the filled background alone."""
        subject.check_object()
        return Picture(subject.background.copy(), np.zeros_like(subject.picture.alpha))


LEVELS_OF_GREY = {"black": 0, "white": 255, "transparent": 0}


@dataclass(frozen=True)
class Segmented(Edit):
    """Leave the object alone on black or white; transparent is black too, with the object's alpha to go with it."""

    # Whoever opens XImageNet-12's transparent pictures as RGB sees the object on black: so does the model here.

    attribute: ClassVar[Attribute] = "background"
    ground: Literal["black", "white", "transparent"] = "black"

    @property
    def level(self) -> str:
        """The ground: "black"."""
        return self.ground

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint everything but the object."""
        return subject.on_background(np.full(subject.picture.image.shape, LEVELS_OF_GREY[self.ground], np.uint8))
