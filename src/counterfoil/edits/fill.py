"""The background behind the object, filled with patches copied from the rest of the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.matting import LARGEST, distance_to, reduce_plane, repeat_channels
from counterfoil.edits.patch_composition import compose_patches
from counterfoil.edits.patch_match import Moves, OpenPicture, match_patches
from counterfoil.edits.patch_refinement import refine_moves
from counterfoil.edits.smooth_fill import fill_smoothly, fill_unknown
from counterfoil.errors import Unusable
from counterfoil.object_mask import object_trace

MARGIN = 0.02  # margin around the object, as a share of the shorter side, for rims and contact shadows
ISLAND = (
    0.04  # of the shorter side: background that the hole surrounds is filled too if it is nowhere wider than twice this
)
BACKGROUND_NEEDED = 0.05  # share of the picture that must be left to copy from
LARGEST_COMPOSED = 1_500_000  # pixels of a picture whose copies are joined at their seams; larger ones are blended
TONE_STEP = 4  # the tone of the fill is matched to its surroundings on a grid this coarse

_NO_FRACTIONS = np.empty(0, np.uint16)  # the maps hold whole pixels

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


def find_hole(alpha: Bytes) -> Flags:
    """The object and a margin around it: every pixel that the fill replaces."""
    if alpha.size > LARGEST:
        small = find_hole(reduce_plane(alpha)).astype(np.uint8)
        enlarged = cv2.resize(small, alpha.shape[::-1], interpolation=cv2.INTER_NEAREST)
        return np.asarray((np.asarray(enlarged) > 0) | object_trace(alpha))
    return grow(object_trace(alpha), max(1, round(MARGIN * min(alpha.shape))))


def close_islands(hole: Flags) -> Flags:
    """The hole with what it surrounds narrowly, such as the ground between two legs: too little to copy from."""
    clear = (~hole).astype(np.uint8)
    count, names = cv2.connectedComponents(clear)
    # Beyond the picture the background goes on: what lies along its border is no narrower for that.
    depth = np.asarray(
        cv2.distanceTransform(cv2.copyMakeBorder(clear, 1, 1, 1, 1, cv2.BORDER_REPLICATE), cv2.DIST_L2, 5)
    )
    deepest = np.zeros(count, np.float32)
    np.maximum.at(deepest, np.asarray(names, np.intp).ravel(), depth[1:-1, 1:-1].ravel())
    narrow = deepest < max(2, round(ISLAND * min(hole.shape)))
    narrow[0] = False
    return np.asarray(hole | narrow[names])


def check_background(share: float) -> None:
    """Raises `Unusable` where the picture shows hardly anything but its object."""
    if share < BACKGROUND_NEEDED:
        raise Unusable(f"the object leaves {share:.1%} of the picture as background, {BACKGROUND_NEEDED:.0%} is needed")


def fill_background(image: Bytes, alpha: Bytes) -> Bytes:
    """The picture without its object; pixels outside the hole stay as they are."""
    hole = find_hole(alpha)
    check_background(1 - np.count_nonzero(hole) / hole.size)
    return fill_hole(image, hole)


def fill_hole(image: Bytes, hole: Flags, levels: Sequence[Moves] | None = None) -> Bytes:
    """The picture with its hole filled quickly, for pictures that hide the fill; other pixels stay as they are.

    `levels` are the hole's patches, where they were matched before.
    """
    if not hole.any():
        return image
    if hole.size > LARGEST:
        return _fill_reduced(image, hole, fill_hole)
    levels = match_patches(OpenPicture(image, hole)) if levels is None else levels
    return _copy_pixels(image, hole, levels[-1]) if levels else fill_smoothly(image, hole)


def fill_visible_hole(picture: OpenPicture, again: bool = False, levels: Sequence[Moves] | None = None) -> Bytes:
    """The picture with its hole filled by patches of the rest, sharp and without seams; other pixels stay as they are.

    `again` copies from other places than the first fill does: what both agree on is not the fill's doing. `levels` are
    the hole's patches, where they were matched before.
    """
    image, hole = picture.image, picture.hole
    if not hole.any():
        return image
    if hole.size > LARGEST:
        return _fill_reduced(image, hole, lambda small, gap: fill_visible_hole(OpenPicture(small, gap), again))
    levels = match_patches(picture) if levels is None else levels
    if again:
        levels = match_patches(picture, levels) or levels
    if not levels:
        return fill_smoothly(image, hole)
    moves = refine_moves(picture, levels[-1])
    return _copy_pixels(image, hole, moves) if hole.size > LARGEST_COMPOSED else compose_patches(image, hole, moves)


def _fill_reduced(image: Bytes, hole: Flags, fill: Callable[[Bytes, Flags], Bytes]) -> Bytes:
    """The hole filled on a reduced copy, which bounds memory; other pixels stay as they are."""
    small = fill(reduce_plane(image), reduce_plane(hole.astype(np.uint8) * 255) > 0)
    enlarged = np.asarray(cv2.resize(small, hole.shape[::-1], interpolation=cv2.INTER_CUBIC), np.uint8)
    return np.where(hole[..., None], enlarged, image)


def _copy_pixels(image: Bytes, hole: Flags, moves: Moves) -> Bytes:
    """Copy full-size pixels by the moves of the small level, then match the tone of the surroundings."""
    rim = grow(hole, max(3, round(0.02 * min(hole.shape)))) & ~hole
    copied = _blend_copies(image, hole, moves)
    copied += _match_tone((image - copied) * rim[..., None], rim.astype(np.float32))
    return np.where(hole[..., None], np.clip(np.rint(copied), 0, 255).astype(np.uint8), image)


def _blend_copies(image: Bytes, hole: Flags, moves: Moves) -> Floats:
    """Each pixel as the weighted mean of the four nearest patches' copies."""
    steps = np.rint(moves.steps * (np.array(hole.shape) / np.array(moves.shape)))[..., ::-1].astype(np.int16, order="C")
    pairs = steps.view(np.int32)[..., 0]  # both numbers packed as one, for a much faster lookup
    upper, down = _locate_patches(hole.shape[0], moves.shape[0], moves.patch)
    left, right = _locate_patches(hole.shape[1], moves.shape[1], moves.patch)
    here = np.dstack(np.meshgrid(np.arange(hole.shape[1]), np.arange(hole.shape[0]))).astype(np.int16)
    total, sums = np.full(hole.shape, 1e-9, np.float32), np.zeros(image.shape, np.float32)
    clear, touched = (~hole).astype(np.float32), moves.touched.astype(np.float32)
    for lower, further in ((0, 0), (0, 1), (1, 0), (1, 1)):
        rows = np.minimum(upper + lower, len(touched) - 1)
        columns = np.minimum(left + further, len(touched[0]) - 1)
        source = here + pairs[rows].take(columns, axis=1).view(np.int16).reshape(here.shape)
        weight = np.outer(down if lower else 1 - down, right if further else 1 - right)
        # Copies from inside the hole count only where there are no others.
        weight *= np.maximum(_take(clear, source) * touched[rows].take(columns, axis=1), np.float32(1e-4))
        sums += _take(image, source) * repeat_channels(weight)
        total += weight
    sums /= repeat_channels(total)
    return sums


def _take(plane: NDArray[Any], source: NDArray[np.int16]) -> NDArray[Any]:
    """The values of `plane` at the places in `source`, (height, width, 2), right and down."""
    return np.asarray(cv2.remap(plane, source, _NO_FRACTIONS, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE))


def _locate_patches(length: int, small: int, patch: int) -> tuple[NDArray[np.intp], Floats]:
    """For each pixel along one side, the patch before it and the fraction towards the next."""
    position = (np.arange(length, dtype=np.float32) + 0.5) * (small / length) - 0.5 - patch // 2
    position = np.clip(position, 0, small - patch)
    before = position.astype(np.intp)
    return before, (position - before).astype(np.float32)


def _match_tone(difference: Floats, rim: Floats) -> Floats:
    """The smooth field that shifts the fill's tone to that of the photo around it."""
    height, width = rim.shape
    small = (-(-width // TONE_STEP), -(-height // TONE_STEP))
    share = np.asarray(cv2.resize(rim, small, interpolation=cv2.INTER_AREA))
    mean = cv2.resize(difference, small, interpolation=cv2.INTER_AREA) / np.maximum(share, 1e-6)[..., None]
    # A large difference is another object beside the hole, not another tone; it must not spread inside.
    share = share / (1 + (np.abs(mean).max(axis=2) / 16) ** 2)
    field = fill_unknown(np.clip(mean, -24, 24), share)
    return np.asarray(cv2.resize(field, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)


def grow(flags: Flags, radius: int) -> Flags:
    """The flags and everything within `radius` of them."""
    # By distance, since dilation is slow for a large radius.
    return distance_to(flags) <= radius
