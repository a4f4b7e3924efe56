"""What stands behind the object: real background moved into its place."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.matching import Moves, matched_moves, spread
from counterfoil.edit.matting import LARGEST, distance_to, per_channel, reduced
from counterfoil.errors import Unusable

MARGIN = 0.02  # the hole is wider than the object by this share of the shorter side: rims and contact shadows go too
BACKGROUND_NEEDED = 0.05  # share of the picture that must be left to copy from
TONE_STEP = 4  # the tone of the fill is matched to its surroundings on a grid this coarse

_NO_FRACTIONS = np.empty(0, np.uint16)  # the maps hold whole pixels

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


def hole_of(alpha: Bytes) -> Flags:
    """The object and a margin around it: every pixel that the fill replaces."""
    if alpha.size > LARGEST:
        small = hole_of(reduced(alpha)).astype(np.uint8)
        enlarged = cv2.resize(small, alpha.shape[::-1], interpolation=cv2.INTER_NEAREST)
        return np.asarray((np.asarray(enlarged) > 0) | (alpha > 0))
    return _grown(alpha > 0, max(1, round(MARGIN * min(alpha.shape))))


def check_background(share: float) -> None:
    """Refuse a picture that shows hardly anything but its object."""
    if share < BACKGROUND_NEEDED:
        raise Unusable(f"the object leaves {share:.1%} of the picture as background, {BACKGROUND_NEEDED:.0%} is needed")


def filled_background(image: Bytes, alpha: Bytes) -> Bytes:
    """The picture without its object; pixels outside the hole stay as they are."""
    hole = hole_of(alpha)
    check_background(1 - np.count_nonzero(hole) / hole.size)
    if not hole.any():
        return image
    if alpha.size > LARGEST:  # filled on a copy, which bounds memory; the rest of the photo keeps its pixels
        small = filled_background(reduced(image), reduced(alpha))
        enlarged = np.asarray(cv2.resize(small, alpha.shape[::-1], interpolation=cv2.INTER_CUBIC), np.uint8)
        return np.where(hole[..., None], enlarged, image)
    moves = matched_moves(image, hole)
    return smooth_fill(image, hole) if moves is None else _moved(image, hole, moves)


def smooth_fill(image: Bytes, hole: Flags) -> Bytes:
    """The hole filled with the mean of its surroundings, taken at the finest scale that knows any."""
    filled = spread(image.astype(np.float32), (~hole).astype(np.float32))
    return np.where(hole[..., None], np.clip(np.rint(filled), 0, 255).astype(np.uint8), image)


def _moved(image: Bytes, hole: Flags, moves: Moves) -> Bytes:
    """Copy full-size pixels by the moves of the small level, then meet the tone of the surroundings."""
    rim = _grown(hole, max(3, round(0.02 * min(hole.shape)))) & ~hole
    copied = _blended(image, hole, moves)
    copied += _tone((image - copied) * rim[..., None], rim.astype(np.float32))
    return np.where(hole[..., None], np.clip(np.rint(copied), 0, 255).astype(np.uint8), image)


def _blended(image: Bytes, hole: Flags, moves: Moves) -> Floats:
    """Each pixel as the mean of the four nearest patches' copies: sharp where they agree, a cross-fade where not."""
    steps = np.rint(moves.steps * (np.array(hole.shape) / np.array(moves.shape)))[..., ::-1].astype(np.int16, order="C")
    pairs = steps.view(np.int32)[..., 0]  # both numbers as one: they are looked up together, which is far faster
    upper, down = _between(hole.shape[0], moves.shape[0], moves.patch)
    left, right = _between(hole.shape[1], moves.shape[1], moves.patch)
    here = np.dstack(np.meshgrid(np.arange(hole.shape[1]), np.arange(hole.shape[0]))).astype(np.int16)
    total, sums = np.full(hole.shape, 1e-9, np.float32), np.zeros(image.shape, np.float32)
    clear, touched = (~hole).astype(np.float32), moves.touched.astype(np.float32)
    for lower, further in ((0, 0), (0, 1), (1, 0), (1, 1)):
        rows = np.minimum(upper + lower, len(touched) - 1)
        columns = np.minimum(left + further, len(touched[0]) - 1)
        source = here + pairs[rows].take(columns, axis=1).view(np.int16).reshape(here.shape)
        weight = np.outer(down if lower else 1 - down, right if further else 1 - right)
        # What would come out of the hole itself counts only where nothing else is offered.
        weight *= np.maximum(_taken(clear, source) * touched[rows].take(columns, axis=1), np.float32(1e-4))
        sums += _taken(image, source) * per_channel(weight)
        total += weight
    sums /= per_channel(total)
    return sums


def _taken(plane: NDArray[Any], source: NDArray[np.int16]) -> NDArray[Any]:
    """The values of `plane` at the places in `source`, (height, width, 2), right and down."""
    return np.asarray(cv2.remap(plane, source, _NO_FRACTIONS, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE))


def _between(length: int, small: int, patch: int) -> tuple[NDArray[np.intp], Floats]:
    """For each pixel along one side: the patch before it, and how far it lies towards the next."""
    position = (np.arange(length, dtype=np.float32) + 0.5) * (small / length) - 0.5 - patch // 2
    position = np.clip(position, 0, small - patch)
    before = position.astype(np.intp)
    return before, (position - before).astype(np.float32)


def _tone(difference: Floats, rim: Floats) -> Floats:
    """The smooth field that takes the fill's tone to that of the photo around it."""
    height, width = rim.shape
    small = (-(-width // TONE_STEP), -(-height // TONE_STEP))
    share = np.asarray(cv2.resize(rim, small, interpolation=cv2.INTER_AREA))
    mean = cv2.resize(difference, small, interpolation=cv2.INTER_AREA) / np.maximum(share, 1e-6)[..., None]
    # A large difference is another thing beside the hole, not another tone of the same thing: it must not glow inside.
    share = share / (1 + (np.abs(mean).max(axis=2) / 16) ** 2)
    field = spread(np.clip(mean, -24, 24), share)
    return np.asarray(cv2.resize(field, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)


def _grown(flags: Flags, radius: int) -> Flags:
    """The flags and everything within `radius` of them."""
    # By distance, since dilation takes longer the larger the radius.
    return distance_to(flags) <= radius
