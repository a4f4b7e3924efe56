"""A hole filled with copied pixels: one source each, joined along the least visible seams, in matching tones.

Every pixel of the hole is copied from one place, its own plus a shift. Where two shifts meet is a seam; it is moved to
where both sources look alike. What difference is left, there and at the rim, is spread over the hole by solving
Poisson's equation for the correction, so that no edge is seen.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.patch_match import Moves

SWEEPS = 8  # over all seams; each moves a seam by at most two pixels
RIM = 2.0  # weight of the seam between hole and surroundings, relative to seams inside
MISFIT = 24.0  # levels: a larger step at a seam is another object beside it, not another tone, and is not spread
CYCLES, RELAXATIONS = 4, 3  # of the multigrid solver
DAMPING = np.float32(0.8)
COARSEST = 4  # pixels of the shorter side
DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0))
KNOWN, OUTSIDE = -1, -2  # neighbours that are no pixels of the hole

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]


class _Hole(NamedTuple):
    """The pixels of the hole, numbered, in a picture with one more pixel on each side."""

    pixels: Floats  # (padded places, 3)
    clear: Flags  # (padded places,): can be copied from
    places: Indices  # of the hole's pixels in the padded picture
    neighbours: Indices  # (4, hole's pixels): their numbers, or KNOWN or OUTSIDE
    strides: tuple[int, ...]  # from a place to its four neighbours


def compose_patches(image: Bytes, hole: Flags, moves: Moves) -> Bytes:
    """The hole filled by the moves; pixels outside it stay as they are."""
    numbered = _number_pixels(image, hole)
    shifts = _move_all_seams(numbered, _find_shifts(hole, moves, numbered))
    copied = numbered.pixels[numbered.places + shifts]
    steps = np.zeros((*hole.shape, 3), np.float32)
    steps[hole] = _measure_steps(numbered, shifts, copied)
    correction = solve_poisson(steps, hole)[hole]
    result: Bytes = image.copy()
    result[hole] = np.clip(np.rint(copied + correction), 0, 255)
    return result


def _number_pixels(image: Bytes, hole: Flags) -> _Hole:
    padded = cv2.copyMakeBorder(image, 1, 1, 1, 1, cv2.BORDER_REPLICATE)
    inside = np.pad(hole, 1)
    numbers = np.pad(np.full(hole.shape, KNOWN, np.intp), 1, constant_values=OUTSIDE)
    places = np.flatnonzero(inside)
    numbers.ravel()[places] = np.arange(len(places))
    strides = tuple(down * inside.shape[1] + right for down, right in DIRECTIONS)
    return _Hole(
        pixels=np.asarray(padded, np.float32).reshape(-1, 3),
        clear=np.pad(~hole, 1).ravel(),
        places=places,
        neighbours=np.stack([numbers.ravel()[places + stride] for stride in strides]),
        strides=strides,
    )


def _find_shifts(hole: Flags, moves: Moves, numbered: _Hole) -> Indices:
    """The shift of each pixel in the padded picture, from the patch around it; each leads to a clear place."""
    rows, columns = np.nonzero(hole)
    ratio = np.array(hole.shape) / np.array(moves.shape)
    patch_rows, patch_columns = (
        np.clip(((places + 0.5) / scale).astype(np.intp) - moves.patch // 2, 0, length - moves.patch)
        for places, scale, length in zip((rows, columns), ratio, moves.shape, strict=True)
    )
    steps = np.rint(moves.steps[patch_rows, patch_columns] * ratio).astype(np.intp)
    height, width = hole.shape
    down = np.clip(rows + steps[:, 0], 0, height - 1) - rows
    right = np.clip(columns + steps[:, 1], 0, width - 1) - columns
    shifts = down * (width + 2) + right
    valid = numbered.clear[numbered.places + shifts]
    while not valid.all():
        before = np.count_nonzero(valid)
        for neighbours in numbered.neighbours:  # the shift of a neighbour, where it leads to a clear place
            lost = np.flatnonzero(~valid & (neighbours >= 0) & valid[neighbours])
            borrowed = shifts[neighbours[lost]]
            usable = numbered.clear[numbered.places[lost] + borrowed]
            shifts[lost[usable]], valid[lost[usable]] = borrowed[usable], True
        if np.count_nonzero(valid) == before:
            break
    lost = np.flatnonzero(~valid)
    shifts[lost] = _find_nearest_clear(hole)[rows[lost], columns[lost]] - numbered.places[lost]
    return np.asarray(shifts, np.intp)


def _find_nearest_clear(hole: Flags) -> Indices:
    """For each pixel the nearest one outside the hole, as a place in the padded picture."""
    _, names = cv2.distanceTransformWithLabels(hole.astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    rows, columns = np.nonzero(~hole)
    place_of = np.zeros(int(names.max()) + 1, np.intp)
    place_of[np.asarray(names)[rows, columns]] = (rows + 1) * (hole.shape[1] + 2) + columns + 1
    return place_of[np.asarray(names)]


def _move_all_seams(hole: _Hole, shifts: Indices) -> Indices:
    """The shifts after all sweeps, each over every second pixel; the others stay meanwhile."""
    rows, columns = np.divmod(hole.places, hole.strides[2])
    parity = (rows + columns) % 2
    open_pixels = [np.flatnonzero(parity == turn) for turn in (0, 1)]  # those that may find another shift than before
    for sweep in range(2 * SWEEPS):
        changed = _move_seams(hole, shifts, open_pixels[sweep % 2])
        # A pixel looks again only after a neighbour has changed: what it took is the best of the same choices.
        around = hole.neighbours[:, changed]
        again = np.zeros(len(shifts), np.bool_)
        again[around[around >= 0]] = again[open_pixels[1 - sweep % 2]] = True
        open_pixels[sweep % 2], open_pixels[1 - sweep % 2] = np.empty(0, np.intp), np.flatnonzero(again)
    return shifts


def _move_seams(hole: _Hole, shifts: Indices, pixels: Indices) -> Indices:
    """Pixels at seams take the shift of a neighbour where that makes the seam less visible; which did."""
    around = hole.neighbours[:, pixels]
    others = np.where(around >= 0, shifts[around], shifts[pixels])
    at_seam = (others != shifts[pixels]).any(axis=0)
    active, others = pixels[at_seam], others[:, at_seam]
    best, lowest = shifts[active], _measure_seam(hole, shifts, active, shifts[active])
    for other in others:
        tried = np.flatnonzero((other != best) & hole.clear[hole.places[active] + other])
        cost = _measure_seam(hole, shifts, active[tried], other[tried])
        better = cost < lowest[tried]
        chosen = tried[better]
        best[chosen], lowest[chosen] = other[chosen], cost[better]
    changed = active[best != shifts[active]]
    shifts[active] = best
    return np.asarray(changed)


def _measure_seam(hole: _Hole, shifts: Indices, numbers: Indices, own: Indices) -> Floats:
    """How visible the seams around these pixels are if they take these shifts."""
    total = np.zeros(len(numbers), np.float32)
    here = hole.places[numbers]
    for stride, neighbours in zip(hole.strides, hole.neighbours[:, numbers], strict=True):
        other = np.where(neighbours >= 0, shifts[neighbours], 0)  # a known pixel stays where it is
        seam = np.flatnonzero((other != own) & (neighbours != OUTSIDE))  # between equal shifts there is none
        copied, continued, inside = here[seam] + own[seam], here[seam] + other[seam], neighbours[seam] >= 0
        cost = _square_steps(hole, copied + stride, continued + stride)
        cost += np.where(inside, _square_steps(hole, copied, continued), 0)
        total[seam] += np.where(inside, np.float32(1), np.float32(RIM)) * np.sqrt(cost)
    return total


def _square_steps(hole: _Hole, first: Indices, second: Indices) -> Floats:
    """The squared differences of colours between pairs of places: whole numbers, exact in any order."""
    steps = hole.pixels.take(first, axis=0)
    steps -= hole.pixels.take(second, axis=0)
    return np.asarray(np.einsum("ij,ij->i", steps, steps), np.float32)


def _measure_steps(hole: _Hole, shifts: Indices, copied: Floats) -> Floats:
    """For each pixel the sum over its neighbours of the steps that copying added to the gradients of the sources."""
    total = np.zeros_like(copied)
    for stride, neighbours in zip(hole.strides, hole.neighbours, strict=True):
        inside = neighbours >= 0
        # Where both are copied by one shift, the step is the source's own.
        numbers = np.flatnonzero((neighbours == KNOWN) | (inside & (shifts[neighbours] != shifts)))
        inside, neighbours = inside[numbers], neighbours[numbers]
        own, here = hole.places[numbers] + shifts[numbers], hole.places[numbers]
        wanted = hole.pixels[own + stride] - hole.pixels[own]
        other = here + np.where(inside, shifts[neighbours], shifts[numbers])
        wanted = (wanted + hole.pixels[other + stride] - hole.pixels[other]) / 2
        beside = np.where(inside[:, None], copied[neighbours], hole.pixels[here + stride])
        step = beside - copied[numbers] - wanted
        total[numbers] += step / (1 + (np.abs(step).max(axis=1, keepdims=True) / MISFIT) ** 2)
    return np.asarray(total, np.float32)


def solve_poisson(sums: Floats, hole: Flags) -> Floats:
    """The field, 0 outside the hole, whose differences to its four neighbours add up to these sums; by multigrid."""
    left, top, width, height = cv2.boundingRect(hole.astype(np.uint8))
    window = (slice(max(0, top - 1), top + height + 1), slice(max(0, left - 1), left + width + 1))
    inside = hole[window][..., None].astype(np.float32)
    field = np.zeros_like(sums[window])
    for _ in range(CYCLES):
        field = _improve(field, sums[window], inside)
    result = np.zeros_like(sums)
    result[window] = field
    return result


def _improve(field: Floats, sums: Floats, inside: Floats) -> Floats:
    """One cycle of the solver: relaxed, corrected by the coarser scales, relaxed again."""
    field = _relax(field, sums, inside, RELAXATIONS)
    height, width = inside.shape[:2]
    if min(height, width) <= COARSEST:
        return _relax(field, sums, inside, 8 * RELAXATIONS)
    left = inside * (sums - 4 * field + _add_neighbours(field))
    small = ((width + 1) // 2, (height + 1) // 2)
    # A coarse place is solved for only where all of it is: one that reaches over the rim would not converge.
    coarse = np.asarray(cv2.resize(inside, small, interpolation=cv2.INTER_AREA))[..., None] > 0.99
    coarse_sums = 4 * np.asarray(cv2.resize(left, small, interpolation=cv2.INTER_AREA), np.float32)
    below = _improve(np.zeros_like(coarse_sums), coarse_sums, coarse.astype(np.float32))
    field = field + inside * np.asarray(cv2.resize(below, (width, height), interpolation=cv2.INTER_LINEAR))
    return _relax(field, sums, inside, RELAXATIONS)


def _relax(field: Floats, sums: Floats, inside: Floats, times: int) -> Floats:
    for _ in range(times):
        change = _add_neighbours(field)
        for work, plane in ((np.add, sums), (np.divide, 4), (np.subtract, field), (np.multiply, DAMPING),
                            (np.add, field), (np.multiply, inside)):  # fmt: skip
            work(change, plane, out=change)  # in place: the planes stay in the cache
        field = change
    return field


def _add_neighbours(field: Floats) -> Floats:
    padded = np.asarray(cv2.copyMakeBorder(field, 1, 1, 1, 1, cv2.BORDER_REPLICATE))
    total = padded[:-2, 1:-1] + padded[2:, 1:-1]
    total += padded[1:-1, :-2]
    total += padded[1:-1, 2:]
    return np.asarray(total, np.float32)
