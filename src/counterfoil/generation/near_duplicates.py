"""Detection of blank pictures and near-duplicates: blank check, perceptual hash, nearest pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

BITS = 64
_SIDE, _KEPT = 32, 8  # a hash is the sign of the 8 x 8 lowest frequencies of the picture at 32 x 32
_SMALLEST = 8  # pixels along a side; a smaller picture shows nothing
_FLAT = 2.0  # levels of standard deviation; below it a picture is one colour
_ALIKE = 0.2  # correlation of neighbours: noise has none; at 64 px the roughest of 240 photos has 0.59, gravel 0.27
_BLOCK, _ENOUGH = 4, 128  # pixels averaged to see beneath noise, and the side from which on this is done
_TINY = 1e-9  # of a variance; blocks of a fine pattern may be of one colour
_DARK = 8  # levels; a picture whose brightest pixel is darker is black
_ONES = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


class Fault(NamedTuple):
    """Why a picture shows nothing."""

    kind: str  # blank or noise
    reason: str


def find_blank_fault(image: NDArray[np.uint8]) -> Fault | None:
    """Return why a picture shows nothing; None where it shows something."""
    height, width = image.shape[:2]
    if int(image.max(initial=0)) < _DARK:
        return Fault("blank", "black, as safety checkers leave pictures they hold back")
    if float(image.std(axis=(0, 1)).max()) < _FLAT:
        return Fault("blank", "of one colour")
    if min(height, width) < _SMALLEST:
        return Fault("blank", f"of {width} x {height} pixels, {_SMALLEST} along a side are needed")
    if max(map(_correlate_neighbours, _at_two_scales(image))) < _ALIKE:
        return Fault("noise", "nothing but noise")
    return None


def _at_two_scales(image: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """The picture, and where it is large enough its block means: noise is noise in both, a noisy photo is not."""
    height, width = image.shape[:2]
    if min(height, width) < _ENOUGH:
        return [image]
    size = (width // _BLOCK, height // _BLOCK)
    return [image, np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)]


def _correlate_neighbours(image: NDArray[np.uint8]) -> float:
    """Correlation of a pixel with the one beside or below it, whichever is larger in absolute value."""
    apart = image.astype(np.float32) - image.mean(axis=(0, 1), dtype=np.float32)
    products = (apart[1:] * apart[:-1], apart[:, 1:] * apart[:, :-1])
    return max(abs(float(product.mean())) for product in products) / max(float(np.mean(apart**2)), _TINY)


def hash_perceptually(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return 64 bits in 8 bytes: which low frequencies are above their median; small changes flip few of them."""
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(gray, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)
    low = np.asarray(cv2.dct(small.astype(np.float32))[:_KEPT, :_KEPT]).ravel()
    return np.packbits(low > np.median(low[1:]))  # the mean level is excluded from the median


def count_differing_bits(hashes: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count the bits in which each of the hashes, (n, 8), differs from another, (8,)."""
    return np.asarray(_ONES[hashes ^ other].sum(axis=1, dtype=np.int64))


def find_near_duplicates(hashes: NDArray[np.uint8], groups_alike: Sequence[str], most_bits: int) -> dict[int, int]:
    """Return the earlier picture that each near-duplicate repeats; pictures meant to look alike are not compared.

    Pictures are compared in order with those kept so far, so that the first of a cluster stays.
    """
    groups = np.unique(np.asarray(groups_alike, object).astype(str), return_inverse=True)[1]
    kept: list[int] = []
    repeats: dict[int, int] = {}
    for place, one in enumerate(hashes):
        apart = count_differing_bits(hashes[kept], one)
        apart[groups[kept] == groups[place]] = BITS + 1
        if len(apart) and int(apart.min()) <= most_bits:
            repeats[place] = kept[int(apart.argmin())]
        else:
            kept.append(place)
    return repeats


def find_nearest_pictures(embeddings: NDArray[np.float32], references: NDArray[np.float32]) -> list[tuple[int, float]]:
    """Return the most similar reference of each embedding and their cosine; rows have length 1."""
    nearest: list[tuple[int, float]] = []
    for start in range(0, len(embeddings), 1024):  # in blocks: the whole matrix may not fit in memory
        cosines = embeddings[start : start + 1024] @ references.T
        best = cosines.argmax(axis=1)
        nearest += [(int(place), float(row[place])) for place, row in zip(best, cosines, strict=True)]
    return nearest
