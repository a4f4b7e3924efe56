"""The background behind the object, filled with patches copied from the rest of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from counterfoil.edits.matting import LARGEST, distance_to, reduce_plane, repeat_channels
from counterfoil.errors import Unusable
from counterfoil.object_mask import object_trace

# Every patch is compared with every other, so the levels must be small. The later level prefers wider patches, which
# carry more structure; a narrow strip of background may hold none of them.
LEVELS = ((32, 4, (5,)), (64, 2, (7, 5)))  # side of a square of the same area, rounds, widths of the patch
SOURCES_NEEDED = 40
GUIDANCE = np.float32(0.25)  # pull towards the colours of a smooth fill; a power of two keeps sums exact
LEVELNESS = 3  # weight in that smooth fill of what lies beside the hole, relative to above and below
COHERENCE = 0.25  # share of the usual error that a patch accepts per neighbour with the same move
NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1), (-1, 1), (1, -1))
NOWHERE = 1 << 30
MARGIN = 0.02  # margin around the object, as a share of the shorter side, for rims and contact shadows
BACKGROUND_NEEDED = 0.05  # share of the picture that must be left to copy from
TONE_STEP = 4  # the tone of the fill is matched to its surroundings on a grid this coarse

_NO_FRACTIONS = np.empty(0, np.uint16)  # the maps hold whole pixels

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]


def find_hole(alpha: Bytes) -> Flags:
    """The object and a margin around it: every pixel that the fill replaces."""
    if alpha.size > LARGEST:
        small = find_hole(reduce_plane(alpha)).astype(np.uint8)
        enlarged = cv2.resize(small, alpha.shape[::-1], interpolation=cv2.INTER_NEAREST)
        return np.asarray((np.asarray(enlarged) > 0) | object_trace(alpha))
    return grow(object_trace(alpha), max(1, round(MARGIN * min(alpha.shape))))


def check_background(share: float) -> None:
    """Raises `Unusable` where the picture shows hardly anything but its object."""
    if share < BACKGROUND_NEEDED:
        raise Unusable(f"the object leaves {share:.1%} of the picture as background, {BACKGROUND_NEEDED:.0%} is needed")


def fill_background(image: Bytes, alpha: Bytes) -> Bytes:
    """The picture without its object; pixels outside the hole stay as they are."""
    hole = find_hole(alpha)
    check_background(1 - np.count_nonzero(hole) / hole.size)
    return fill_hole(image, hole)


def fill_hole(image: Bytes, hole: Flags, again: bool = False) -> Bytes:
    """The picture with its hole filled by patches of the rest; pixels outside the hole stay as they are.

    `again` copies from other places than the first fill does: what both agree on is not the fill's doing.
    """
    if not hole.any():
        return image
    if hole.size > LARGEST:  # filled on a reduced copy to bound memory; other pixels stay
        small = fill_hole(reduce_plane(image), reduce_plane(hole.astype(np.uint8) * 255) > 0, again)
        enlarged = np.asarray(cv2.resize(small, hole.shape[::-1], interpolation=cv2.INTER_CUBIC), np.uint8)
        return np.where(hole[..., None], enlarged, image)
    levels = match_patches(image, hole)
    if again:
        levels = match_patches(image, hole, levels) or levels
    return _copy_pixels(image, hole, levels[-1]) if levels else fill_smoothly(image, hole)


def fill_smoothly(image: Bytes, hole: Flags) -> Bytes:
    """The hole filled with the mean of its surroundings, at the finest scale that has any."""
    filled = fill_unknown(image.astype(np.float32), (~hole).astype(np.float32))
    return np.where(hole[..., None], np.clip(np.rint(filled), 0, 255).astype(np.uint8), image)


def fill_unknown(values: Floats, weight: Floats) -> Floats:
    """Fill unknown places from known values: average to coarser scales, then fill back."""
    height, width = weight.shape
    if min(height, width) <= 2:
        mean = (values * weight[..., None]).sum(axis=(0, 1)) / max(float(weight.sum()), 1e-6)
        return np.asarray(values * weight[..., None] + mean * (1 - weight[..., None]), np.float32)
    small = ((width + 1) // 2, (height + 1) // 2)
    share = np.asarray(cv2.resize(weight, small, interpolation=cv2.INTER_AREA), np.float32)
    sums = cv2.resize(values * weight[..., None], small, interpolation=cv2.INTER_AREA)
    below = fill_unknown(np.asarray(sums / np.maximum(share, 1e-6)[..., None], np.float32), np.minimum(share * 4, 1))
    above = cv2.resize(below, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(values * weight[..., None] + above * (1 - weight[..., None]), np.float32)


class Moves(NamedTuple):
    """For each patch position of a small level, the offset of its source."""

    steps: NDArray[np.intp]  # (rows, columns, 2), down and right, in pixels of the level
    touched: Flags  # (rows, columns), whether the patch reaches into the hole at all
    shape: tuple[int, int]  # height and width of the level
    patch: int


def match_patches(image: Bytes, hole: Flags, earlier: Sequence[Moves] = ()) -> list[Moves]:
    """Match the hole's patches to background patches, coarse to fine; empty where too little is left to copy from.

    Sources of the `earlier` matches are left out where enough others remain.
    """
    levels: list[Moves] = []
    for side, rounds, widths in LEVELS:
        level = _choose_level(image, hole, side, widths)
        if level is not None:
            for moves in earlier:
                level = _leave_out(level, moves)
            start = _paint_by_moves(level, levels[-1]) if levels else _fill_inwards(level)
            levels.append(_match_level(level, start, rounds))
    return levels


def _leave_out(level: _Level, moves: Moves) -> _Level:
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


class _Level(NamedTuple):
    """A small copy of the picture; a patch is referred to by the flat index of its upper left corner in `touched`."""

    guide: Floats  # (height, width, 3), whole numbers -128..127: float32 sums of products are exact in any order
    hole: Flags  # (height, width); the guide holds a smooth fill there
    touched: Flags  # (rows, columns) of patch positions
    targets: Indices  # patches that reach into the hole
    sources: Indices  # patches that do not
    library: Floats  # (sources, patch * patch * 3)
    patch: int


def _choose_level(image: NDArray[np.uint8], hole: Flags, side: int, widths: tuple[int, ...]) -> _Level | None:
    """The level with the widest patches of which enough lie outside the hole; None where there is none."""
    guide, small = _shrink(image, hole, side)
    for patch in widths:
        reach = cv2.dilate(small.astype(np.uint8), np.ones((patch, patch), np.uint8), anchor=(0, 0))
        touched = np.asarray(reach)[: 1 - patch, : 1 - patch] > 0
        sources = np.flatnonzero(~touched)
        if len(sources) >= SOURCES_NEEDED:
            library = _extract_patches(guide, sources, patch)
            return _Level(
                guide=guide,
                hole=small,
                touched=touched,
                targets=np.flatnonzero(touched),
                sources=sources,
                library=library,
                patch=patch,
            )
    return None


def _shrink(image: NDArray[np.uint8], hole: Flags, side: int) -> tuple[Floats, Flags]:
    """The picture at `side` squared pixels, its hole filled smoothly, and the hole."""
    height, width = hole.shape
    scale = min(1.0, side / (height * width) ** 0.5)
    size = (max(7, round(width * scale)), max(7, round(height * scale)))
    known = (~hole).astype(np.float32)
    share = np.asarray(cv2.resize(known, size, interpolation=cv2.INTER_AREA))
    sums = cv2.resize(image * known[..., None], size, interpolation=cv2.INTER_AREA)
    colours = np.rint(sums / np.maximum(share, 1e-6)[..., None]) - 128
    small = share < 0.6
    smooth = np.rint(_spread_sideways(colours, (~small).astype(np.float32)))
    return np.where(small[..., None], smooth, colours).astype(np.float32), small


def _extract_patches(pixels: Floats, places: Indices, patch: int) -> Floats:
    """The patches at `places`, one per row."""
    windows = sliding_window_view(pixels, (patch, patch), axis=(0, 1))
    rows, columns = np.divmod(places, windows.shape[1])
    return windows[rows, columns].reshape(len(places), 3 * patch * patch)


def _fill_inwards(level: _Level) -> Floats:
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
        weights = _extract_patches(certainty, places, level.patch)
        errors = weights @ squares - 2 * ((_extract_patches(pixels, places, level.patch) * weights) @ level.library.T)
        source_rows, source_columns = np.divmod(level.sources[errors.argmin(axis=1)], columns_limit + 1)
        pixels[rows, columns] = pixels[source_rows + rows - top, source_columns + columns - left]
        known = grown
    return np.asarray(pixels)


def _paint_by_moves(level: _Level, moves: Moves) -> Floats:
    """The finer level painted with the coarser level's moves."""
    rows, columns = level.touched.shape
    target_rows, target_columns = np.divmod(level.targets, columns)
    coarse_rows = (2 * target_rows + 1) * moves.touched.shape[0] // (2 * rows)
    coarse_columns = (2 * target_columns + 1) * moves.touched.shape[1] // (2 * columns)
    ratio = np.array(level.hole.shape) / np.array(moves.shape)
    steps = np.rint(moves.steps[coarse_rows, coarse_columns] * ratio).astype(np.intp)
    source_rows = np.clip(target_rows + steps[:, 0], 0, rows - 1)
    source_columns = np.clip(target_columns + steps[:, 1], 0, columns - 1)
    return _average_patches(level, source_rows * columns + source_columns, np.ones(len(steps), np.float32))


def _match_level(level: _Level, pixels: Floats, rounds: int) -> Moves:
    """Match every patch and repaint by the matches, several times."""
    each = np.arange(len(level.targets))
    best = None
    for _ in range(rounds):
        errors = _measure_errors(level, pixels)
        nearest = errors.argmin(axis=1)
        bonus = max(COHERENCE * float(np.median(errors[each, nearest])), 4.0 * level.library.shape[1])
        if best is not None:
            errors += _measure_overuse(level, best) * np.float32(0.5 * bonus)
            nearest = errors.argmin(axis=1)
        best = _align_neighbours(level, errors, nearest, bonus)
        misfit = errors[each, best]
        usual = np.percentile(misfit, 75) + 1
        pixels = _average_patches(level, level.sources[best], (usual / (usual + misfit)).astype(np.float32) ** 2)
    steps = np.zeros((*level.touched.shape, 2), np.intp)
    starts = np.divmod(level.targets, level.touched.shape[1])
    ends = np.divmod(level.sources[best], level.touched.shape[1])
    steps[starts] = np.stack(ends, axis=1) - np.stack(starts, axis=1)
    return Moves(steps, level.touched, level.hole.shape, level.patch)


def _measure_errors(level: _Level, pixels: Floats) -> Floats:
    """Squared differences of every target patch (row) to every source patch (column)."""
    # Without the guide the fill could match itself and drift to any colour.
    pulled = np.where(level.hole[..., None], np.rint(pixels + (level.guide - pixels) * (GUIDANCE / 2)), pixels)
    patches = _extract_patches(pulled, level.targets, level.patch)
    errors = patches @ level.library.T
    errors *= -2
    errors += np.einsum("ij,ij->i", patches, patches)[:, None]
    errors += np.einsum("ij,ij->i", level.library, level.library)
    return np.asarray(errors)


def _measure_overuse(level: _Level, best: Indices) -> Floats:
    """How far each source is used more than its share: repeated patches look like wallpaper."""
    uses = np.bincount(level.sources[best], minlength=level.touched.size).astype(np.float32)
    around = cv2.blur(uses.reshape(level.touched.shape), (3, 3), borderType=cv2.BORDER_CONSTANT)
    fair = max(1.0, len(level.targets) / len(level.sources))
    return np.asarray(np.clip(np.asarray(around).ravel()[level.sources] / fair - 2, 0, 6), np.float32)


def _align_neighbours(level: _Level, errors: Floats, best: Indices, bonus: float) -> Indices:
    """Give patches the move of their neighbours where that costs little, for fewer seams."""
    rows, columns = level.touched.shape
    source_at = np.full(level.touched.size, -1, np.intp)
    source_at[level.sources] = np.arange(len(level.sources))
    each = np.arange(len(level.targets))
    target_rows, target_columns = np.divmod(level.targets, columns)
    padded = np.full((rows + 2) * (columns + 2), NOWHERE, np.intp)
    centre = (target_rows + 1) * (columns + 2) + target_columns + 1
    for turn in range(4):  # in a checkerboard pattern: neighbours stay while a patch changes
        padded[centre] = own = level.sources[best] - level.targets
        around = [padded[centre + down * (columns + 2) + right] for down, right in NEIGHBOURS]
        lowest, pick = errors[each, best] - bonus * sum(step == own for step in around), best
        for candidate in around:
            place = level.targets + candidate
            inside = (place >= 0) & (place < level.touched.size)
            source = np.where(inside, source_at[np.where(inside, place, 0)], -1)
            cost = errors[each, source] - bonus * sum(step == candidate for step in around)
            better = (source >= 0) & (cost < lowest)
            lowest, pick = np.where(better, cost, lowest), np.where(better, source, pick)
        best = np.where((target_rows + target_columns) % 2 == turn % 2, pick, best)
    return best


def _average_patches(level: _Level, places: Indices, weight: Floats) -> Floats:
    """The hole painted with the weighted mean of all patches that cover each pixel."""
    width, (rows, columns) = level.hole.shape[1], level.touched.shape
    painted = np.dstack([level.guide, np.ones_like(level.guide[..., 0])])
    source, share = np.zeros(rows * columns, np.intp), np.zeros((rows * columns, 1), np.float32)
    source[level.targets] = places + places // columns * (width - columns)
    share[level.targets, 0] = weight
    sums = np.zeros_like(painted)
    for down, right in np.ndindex(level.patch, level.patch):
        copies = painted.reshape(-1, 4).take(source + (down * width + right), axis=0)
        copies *= share
        sums[down : down + rows, right : right + columns] += copies.reshape(rows, columns, 4)
    mean = np.rint(sums[..., :3] / np.maximum(sums[..., 3:], 1e-6))
    return np.where(level.hole[..., None], mean, level.guide)


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
