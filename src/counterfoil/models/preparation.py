"""A library's transform and our own, held against each other: ours is used only where it is shown to be equal.

Preprocessing that is almost right moves accuracy by a point and says nothing. So the library's own transform is
asked about trial pictures when a model is loaded, and only where ours agrees within two levels of 255 does the fast
path take its place; otherwise the library's transform is what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.models.preparing import fitted, prepared
from counterfoil.types import Preprocessing

LEVELS_ALLOWED = 2.0
_SIZES = ((375, 500), (500, 333), (640, 640), (120, 97))  # (height, width): landscape, portrait, square, small

Transform = Callable[[Image.Image], NDArray[np.float32]]  # a picture to (3, height, width), normalised
Fit = Callable[[Sequence[NDArray[np.uint8]], Preprocessing], NDArray[np.uint8]]  # pictures to (n, height, width, 3)


def fitted_one_by_one(images: Sequence[NDArray[np.uint8]], wanted: Preprocessing) -> NDArray[np.uint8]:
    """The pictures at the network's size, side by side."""
    return np.stack([fitted(image, wanted) for image in images])


@dataclass(frozen=True)
class LibraryTransform(Preprocessing):
    """Preprocessing that the library's own transform does; size and the rest are what its configuration says."""

    transform: str = ""


@dataclass(frozen=True)
class Preparation:
    """What is done to a picture, and by whom."""

    preprocessing: Preprocessing
    how: str
    transform: Transform | None = None  # the library's, where ours is not equal
    fit: Fit = fitted_one_by_one

    def picture(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The network's input, (3, height, width), normalised."""
        if self.transform is not None:
            return self.transform(Image.fromarray(image))
        return prepared(image, self.preprocessing)

    def levels(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """The pictures at the network's size in levels 0..255, (n, height, width, 3); only where ours is used."""
        return self.fit(images, self.preprocessing)


def described(preprocessing: Preprocessing) -> Preparation:
    """Preprocessing that the user described: there is no library to ask."""
    return Preparation(preprocessing, "counterfoil, as described")


def proven(transform: Transform, guess: Preprocessing, library: str) -> Preparation:
    """Our preparation where it is equal to the library's on every trial picture, else the library's."""
    difference = largest_difference(transform, guess)
    if difference <= LEVELS_ALLOWED:
        told = f"counterfoil; differs from {library}'s own transform by at most {difference:.2f} levels of 255"
        return Preparation(guess, told)
    _, height, width = transform(Image.fromarray(trial_pictures()[0])).shape
    kept = LibraryTransform(
        **{**asdict(guess), "size": (height, width)}, transform=f"{library}: {_in_one_line(transform)}"
    )
    return Preparation(kept, f"{library}'s own transform; ours would differ by {difference:.1f} levels", transform)


def largest_difference(transform: Transform, guess: Preprocessing) -> float:
    """In levels 0..255, over trial pictures of several sizes."""
    scale = np.array(guess.std, np.float32).reshape(3, 1, 1)
    differences = []
    for image in trial_pictures():
        theirs = transform(Image.fromarray(image))
        if theirs.shape != (3, *guess.size) or not _covers(guess):
            return float("inf")
        differences.append(float((np.abs(prepared(image, guess) - theirs) * scale).max()))
    return max(differences)


def _covers(guess: Preprocessing) -> bool:
    """A crop larger than the resized picture would need padding, which is the library's affair."""
    return guess.resize is None or guess.resize >= max(guess.size)


def swiftest(preparation: Preparation, fit: Fit, name: str) -> Preparation:
    """The same preparation through a faster resize, where that too stays within the levels allowed."""
    wanted = preparation.preprocessing
    if preparation.transform is not None:
        return preparation
    pairs = ((fit([image], wanted)[0].astype(int), fitted(image, wanted)) for image in trial_pictures())
    difference = max(int(np.abs(swift - exact).max()) for swift, exact in pairs)
    if difference > LEVELS_ALLOWED:
        return preparation
    return Preparation(
        wanted, f"{preparation.how}; resized by {name}, at most {difference} levels from Pillow", fit=fit
    )


def trial_pictures() -> Sequence[NDArray[np.uint8]]:
    """Pictures with structure at every scale, always the same: harder on a resize than photos are."""
    rng = np.random.default_rng(20)
    return [_structured(rng, height, width) for height, width in _SIZES]


def _structured(rng: np.random.Generator, height: int, width: int) -> NDArray[np.uint8]:
    picture = np.zeros((height, width, 3))
    for cells in (4, 16, 64, 256):
        grid = rng.uniform(-1, 1, (cells, cells, 3))
        picture += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(127 + 60 * picture, 0, 255).astype(np.uint8)


def _in_one_line(transform: Transform) -> str:
    return " ".join(str(transform).split())
