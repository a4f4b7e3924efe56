"""The patches of a hole matched to patches of the rest of the picture, on small copies, coarse to fine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from counterfoil.edits.smooth_fill import fill_unknown

# Every patch is compared with every other, so the levels must be small. The later level prefers wider patches, which
# carry more structure; a narrow strip of background may hold none of them.
LEVELS = ((32, 4, (5,)), (64, 2, (7, 5)))  # side of a square of the same area, rounds, widths of the patch
SOURCES_NEEDED = 40
GUIDANCE = np.float32(0.25)  # pull towards the colours of a smooth fill; a power of two keeps sums exact
LEVELNESS = 3  # weight in that smooth fill of what lies beside the hole, relative to above and below
COHERENCE = 0.25  # share of the usual error that a patch accepts per neighbour with the same move
NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1), (-1, 1), (1, -1))
NOWHERE = 1 << 30


Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]


class OpenPicture(NamedTuple):
    """A picture with a hole, and what the structure inside it may follow."""

    image: Bytes
    hole: Flags
    guide: Bytes | None = None  # the picture filled otherwise; the smooth surroundings where there is none


class Moves(NamedTuple):
    """For each patch position of a small level, the offset of its source."""

    steps: NDArray[np.intp]  # (rows, columns, 2), down and right, in pixels of the level
    touched: Flags  # (rows, columns), whether the patch reaches into the hole at all
    shape: tuple[int, int]  # height and width of the level
    patch: int


def match_patches(picture: OpenPicture, earlier: Sequence[Moves] = ()) -> list[Moves]:
    """Match the hole's patches to background patches, coarse to fine; empty where too little is left to copy from.

    Sources of the `earlier` matches are left out where enough others remain.
    """
    levels: list[Moves] = []
    for side, rounds, widths in LEVELS:
        level = choose_level(picture, side, widths)
        if level is not None and len(level.targets):  # a hole of a few pixels vanishes where it is reduced
            for moves in earlier:
                level = _leave_out(level, moves)
            start = _paint_by_moves(level, levels[-1]) if levels else _fill_inwards(level)
            levels.append(_match_level(level, start, rounds))
    return levels


def _leave_out(level: PatchLevel, moves: Moves) -> PatchLevel:
    """The level without the sources of earlier matches of the same level, as far as enough others remain."""
    if moves.touched.shape != level.touched.shape:
        return level
    rows, columns = np.nonzero(moves.touched)
    steps = moves.steps[rows, columns]
    used = (rows + steps[:, 0]) * level.touched.shape[1] + columns + steps[:, 1]
    kept = ~np.isin(level.sources, used)
    if np.count_nonzero(kept) < max(SOURCES_NEEDED, len(level.sources) // 4):
        return level
    return level._replace(sources=level.sources[kept], library=level.library[kept])


def _spread_sideways(values: Floats, weight: Floats) -> Floats:
    """Fill unknown places from known values, more across than down, so that horizons and floors stay level."""
    height, width = weight.shape
    narrow = (max(3, round(width / LEVELNESS)), height)
    share = np.asarray(cv2.resize(weight, narrow, interpolation=cv2.INTER_AREA), np.float32)
    sums = cv2.resize(values * weight[..., None], narrow, interpolation=cv2.INTER_AREA)
    means = np.asarray(sums / np.maximum(share, 1e-6)[..., None], np.float32)
    field = cv2.resize(
        fill_unknown(means, np.minimum(share * LEVELNESS, 1)), (width, height), interpolation=cv2.INTER_LINEAR
    )
    return np.asarray(np.where(weight[..., None] > 0, values, field), np.float32)


class PatchLevel(NamedTuple):
    """A small copy of the picture; a patch is referred to by the flat index of its upper left corner in `touched`."""

    guide: Floats  # (height, width, 3), whole numbers -128..127: float32 sums of products are exact in any order
    hole: Flags  # (height, width); the guide holds a smooth fill there
    touched: Flags  # (rows, columns) of patch positions
    targets: Indices  # patches that reach into the hole
    sources: Indices  # patches that do not
    library: Floats  # (sources, patch * patch * 3)
    patch: int


def choose_level(picture: OpenPicture, side: int, widths: tuple[int, ...]) -> PatchLevel | None:
    """The level with the widest patches of which enough lie outside the hole; None where there is none."""
    guide, small = _shrink(picture, side)
    for patch in widths:
        reach = cv2.dilate(small.astype(np.uint8), np.ones((patch, patch), np.uint8), anchor=(0, 0))
        touched = np.asarray(reach)[: 1 - patch, : 1 - patch] > 0
        sources = np.flatnonzero(~touched)
        if len(sources) >= SOURCES_NEEDED:
            library = extract_patches(guide, sources, patch)
            return PatchLevel(
                guide=guide,
                hole=small,
                touched=touched,
                targets=np.flatnonzero(touched),
                sources=sources,
                library=library,
                patch=patch,
            )
    return None


def _shrink(picture: OpenPicture, side: int) -> tuple[Floats, Flags]:
    """The picture at `side` squared pixels, its hole filled smoothly or by the guide, and the hole."""
    height, width = picture.hole.shape
    scale = min(1.0, side / (height * width) ** 0.5)
    size = (max(7, round(width * scale)), max(7, round(height * scale)))
    known = (~picture.hole).astype(np.float32)
    share = np.asarray(cv2.resize(known, size, interpolation=cv2.INTER_AREA))
    sums = cv2.resize(picture.image * known[..., None], size, interpolation=cv2.INTER_AREA)
    colours = np.rint(sums / np.maximum(share, 1e-6)[..., None]) - 128
    small = share < 0.6
    if picture.guide is None:
        inside = np.rint(_spread_sideways(colours, (~small).astype(np.float32)))
    else:
        inside = np.asarray(cv2.resize(picture.guide, size, interpolation=cv2.INTER_AREA), np.float32) - 128
    return np.where(small[..., None], inside, colours).astype(np.float32), small


def extract_patches(pixels: Floats, places: Indices, patch: int) -> Floats:
    """The patches at `places`, one per row."""
    windows = sliding_window_view(pixels, (patch, patch), axis=(0, 1))
    rows, columns = np.divmod(places, windows.shape[1])
    return windows[rows, columns].reshape(len(places), 3 * patch * patch)


def _fill_inwards(level: PatchLevel) -> Floats:
    """The hole filled from its rim inwards: the known part of a patch is matched to find its middle."""
    pixels, known, squares = level.guide.copy(), ~level.hole, (level.library * level.library).T
    rows_limit, columns_limit = level.touched.shape[0] - 1, level.touched.shape[1] - 1
    while not known.all():
        grown = cv2.dilate(known.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        rows, columns = np.nonzero(grown & ~known)
        top = np.clip(rows - level.patch // 2, 0, rows_limit)
        left = np.clip(columns - level.patch // 2, 0, columns_limit)
        places = top * (columns_limit + 1) + left
        certainty = np.where(known, np.float32(1), GUIDANCE)[..., None].repeat(3, axis=2)
        weights = extract_patches(certainty, places, level.patch)
        errors = weights @ squares - 2 * ((extract_patches(pixels, places, level.patch) * weights) @ level.library.T)
        source_rows, source_columns = np.divmod(level.sources[errors.argmin(axis=1)], columns_limit + 1)
        pixels[rows, columns] = pixels[source_rows + rows - top, source_columns + columns - left]
        known = grown
    return np.asarray(pixels)


def _paint_by_moves(level: PatchLevel, moves: Moves) -> Floats:
    """The finer level painted with the coarser level's moves."""
    rows, columns = level.touched.shape
    places = locate_sources(level, moves)
    sources = np.clip(places[0], 0, rows - 1) * columns + np.clip(places[1], 0, columns - 1)
    return average_patches(level, sources, np.ones(len(sources), np.float32))


def locate_sources(level: PatchLevel, moves: Moves) -> tuple[Indices, Indices]:
    """The rows and columns to which a coarser level's moves take the targets of a finer one; they may lie outside."""
    rows, columns = level.touched.shape
    target_rows, target_columns = np.divmod(level.targets, columns)
    coarse_rows = (2 * target_rows + 1) * moves.touched.shape[0] // (2 * rows)
    coarse_columns = (2 * target_columns + 1) * moves.touched.shape[1] // (2 * columns)
    ratio = np.array(level.hole.shape) / np.array(moves.shape)
    steps = np.rint(moves.steps[coarse_rows, coarse_columns] * ratio).astype(np.intp)
    return target_rows + steps[:, 0], target_columns + steps[:, 1]


def _match_level(level: PatchLevel, pixels: Floats, rounds: int) -> Moves:
    """Match every patch and repaint by the matches, several times."""
    each = np.arange(len(level.targets))
    best, library = None, _extend_library(level)
    for _ in range(rounds):
        errors = _measure_errors(level, pixels, library)
        nearest = errors.argmin(axis=1)
        bonus = max(COHERENCE * float(np.median(errors[each, nearest])), 4.0 * level.library.shape[1])
        if best is not None:
            errors += _measure_overuse(level, best) * np.float32(0.5 * bonus)
            nearest = errors.argmin(axis=1)
        best = _align_neighbours(level, errors, nearest, bonus)
        misfit = errors[each, best]
        usual = np.percentile(misfit, 75) + 1
        pixels = average_patches(level, level.sources[best], (usual / (usual + misfit)).astype(np.float32) ** 2)
    steps = np.zeros((*level.touched.shape, 2), np.intp)
    starts = np.divmod(level.targets, level.touched.shape[1])
    ends = np.divmod(level.sources[best], level.touched.shape[1])
    steps[starts] = np.stack(ends, axis=1) - np.stack(starts, axis=1)
    return Moves(steps, level.touched, level.hole.shape, level.patch)


def _extend_library(level: PatchLevel) -> Floats:
    """The library with two more columns, with which one product of matrices gives squared differences."""
    library = level.library
    squares = np.einsum("ij,ij->i", library, library)
    return np.column_stack([library * -2, squares, np.ones_like(squares)])


def _measure_errors(level: PatchLevel, pixels: Floats, library: Floats) -> Floats:
    """Squared differences of every target patch (row) to every source patch (column) of the extended library."""
    # Without the guide the fill could match itself and drift to any colour.
    pulled = np.where(level.hole[..., None], np.rint(pixels + (level.guide - pixels) * (GUIDANCE / 2)), pixels)
    patches = extract_patches(pulled, level.targets, level.patch)
    squares = np.einsum("ij,ij->i", patches, patches)
    # Whole numbers below 2^24, also in between: exact in any order.
    return np.asarray(np.column_stack([patches, np.ones_like(squares), squares]) @ library.T, np.float32)


def _measure_overuse(level: PatchLevel, best: Indices) -> Floats:
    """How far each source is used more than its share: repeated patches look like wallpaper."""
    uses = np.bincount(level.sources[best], minlength=level.touched.size).astype(np.float32)
    around = cv2.blur(uses.reshape(level.touched.shape), (3, 3), borderType=cv2.BORDER_CONSTANT)
    fair = max(1.0, len(level.targets) / len(level.sources))
    return np.asarray(np.clip(np.asarray(around).ravel()[level.sources] / fair - 2, 0, 6), np.float32)


def _align_neighbours(level: PatchLevel, errors: Floats, best: Indices, bonus: float) -> Indices:
    """Give patches the move of their neighbours where that costs little, for fewer seams."""
    rows, columns = level.touched.shape
    source_at = np.full(level.touched.size, -1, np.intp)
    source_at[level.sources] = np.arange(len(level.sources))
    target_rows, target_columns = np.divmod(level.targets, columns)
    padded = np.full((rows + 2) * (columns + 2), NOWHERE, np.intp)
    centre = (target_rows + 1) * (columns + 2) + target_columns + 1
    for turn in range(4):  # in a checkerboard pattern: neighbours stay while a patch changes
        padded[centre] = level.sources[best] - level.targets
        turned = np.flatnonzero((target_rows + target_columns) % 2 == turn % 2)
        around = np.stack([padded[centre[turned] + down * (columns + 2) + right] for down, right in NEIGHBOURS])
        pick, own = best[turned], padded[centre[turned]]
        lowest = errors[turned, pick] - bonus * _count_equal(around, own)
        for candidate in around:
            place = level.targets[turned] + candidate
            inside = (place >= 0) & (place < level.touched.size)
            source = np.where(inside, source_at[np.where(inside, place, 0)], -1)
            cost = errors[turned, source] - bonus * _count_equal(around, candidate)
            better = (source >= 0) & (cost < lowest)
            lowest, pick = np.where(better, cost, lowest), np.where(better, source, pick)
        best = best.copy()
        best[turned] = pick
    return best


def _count_equal(around: Indices, step: Indices) -> NDArray[np.intp]:
    """How many of the neighbours' moves, one row each, are this one."""
    return np.asarray(np.count_nonzero(around == step, axis=0))


def average_patches(level: PatchLevel, places: Indices, weight: Floats) -> Floats:
    """The hole painted with the weighted mean of all patches that cover each pixel."""
    width, (rows, columns) = level.hole.shape[1], level.touched.shape
    painted = np.dstack([level.guide, np.ones_like(level.guide[..., 0])])
    source, share = np.zeros(rows * columns, np.intp), np.zeros((rows * columns, 1), np.float32)
    source[level.targets] = places + places // columns * (width - columns)
    share[level.targets, 0] = weight
    # Rows without a patch to be painted add nothing.
    first, last = (int(level.targets[end]) // columns for end in (0, -1))
    source, share = (plane[first * columns : (last + 1) * columns] for plane in (source, share))
    sums = np.zeros_like(painted)
    for down, right in np.ndindex(level.patch, level.patch):
        copies = painted.reshape(-1, 4).take(source + (down * width + right), axis=0)
        copies *= share
        sums[first + down : last + 1 + down, right : right + columns] += copies.reshape(-1, columns, 4)
    mean = np.rint(sums[..., :3] / np.maximum(sums[..., 3:], 1e-6))
    return np.where(level.hole[..., None], mean, level.guide)
