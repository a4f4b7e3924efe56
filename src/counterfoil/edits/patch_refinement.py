"""Matches of patches refined on a larger copy of the picture, by the moves around them and small steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.patch_match import (
    COHERENCE,
    NEIGHBOURS,
    NOWHERE,
    Moves,
    OpenPicture,
    PatchLevel,
    average_patches,
    choose_level,
    extract_patches,
    locate_sources,
)

SIDE = 128  # of a square of the same area, in pixels
WIDTHS = (7, 5)  # of a patch
TURNS = 4  # of a round; patches change in a checkerboard pattern
STEPS = ((2, 1), (1, 1))  # reach of the small steps tried in the first two turns of each round

Floats = NDArray[np.float32]
Indices = NDArray[np.intp]


class _FineLevel(NamedTuple):
    level: PatchLevel
    patches: Floats  # (patch positions, patch * patch * 3)
    nearest: Indices  # for each patch position the nearest one clear of the hole


def refine_moves(picture: OpenPicture, coarse: Moves) -> Moves:
    """The moves at a larger level; the coarse ones where it leaves too little to copy from."""
    level = choose_level(picture, SIDE, WIDTHS)
    if level is None:
        return coarse
    every = np.arange(level.touched.size)
    fine = _FineLevel(level, extract_patches(level.guide, every, level.patch), _find_nearest_sources(level))
    best = _snap(fine, *locate_sources(level, coarse))
    weight = np.ones(len(best), np.float32)
    for reach in STEPS:
        own = extract_patches(average_patches(level, best, weight), level.targets, level.patch)
        best, errors = _match_again(fine, own, best, reach)
        usual = np.percentile(errors, 75) + 1
        weight = (usual / (usual + errors)).astype(np.float32) ** 2
    steps = np.zeros((*level.touched.shape, 2), np.intp)
    starts, ends = (np.divmod(places, level.touched.shape[1]) for places in (level.targets, best))
    steps[starts] = np.stack(ends, axis=1) - np.stack(starts, axis=1)
    return Moves(steps, level.touched, level.hole.shape, level.patch)


def _find_nearest_sources(level: PatchLevel) -> Indices:
    touched = level.touched.astype(np.uint8)
    _, names = cv2.distanceTransformWithLabels(touched, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    source_of = np.zeros(int(names.max()) + 1, np.intp)
    source_of[np.asarray(names).ravel()[level.sources]] = level.sources
    return np.asarray(source_of[np.asarray(names)].ravel())


def _snap(fine: _FineLevel, rows: Indices, columns: Indices) -> Indices:
    """The patches nearest to these places that are clear of the hole."""
    height, width = fine.level.touched.shape
    return np.asarray(fine.nearest[np.clip(rows, 0, height - 1) * width + np.clip(columns, 0, width - 1)])


def _match_again(fine: _FineLevel, own: Floats, best: Indices, reaches: Sequence[int]) -> tuple[Indices, Floats]:
    """Better sources of the patches `own`, and their errors; a source that continues a neighbour's is preferred."""
    level, columns = fine.level, fine.level.touched.shape[1]
    rows_of, columns_of = np.divmod(level.targets, columns)
    centre = (rows_of + 1) * (columns + 2) + columns_of + 1
    padded = np.full((level.touched.shape[0] + 2) * (columns + 2), NOWHERE, np.intp)
    errors = _measure(own, np.arange(len(own)), fine.patches, best)
    bonus = max(COHERENCE * float(np.median(errors)), 4.0 * own.shape[1])
    for turn in range(TURNS):
        padded[centre] = best - level.targets
        turned = np.flatnonzero((rows_of + columns_of) % 2 == turn % 2)
        around = np.stack([padded[centre[turned] + down * (columns + 2) + right] for down, right in NEIGHBOURS])
        reach = reaches[turn] if turn < len(reaches) else 0
        pick, least = best[turned], errors[turned]
        lowest = least - bonus * np.count_nonzero(around == pick - level.targets[turned], axis=0)
        tried = [pick]
        for candidate in _propose(fine, turned, pick, around, reach):
            # A source that was tried, for another neighbour, is no better now.
            places = np.flatnonzero(np.logical_and.reduce([candidate != earlier for earlier in tried]))
            tried.append(candidate)
            sources, targets = candidate[places], turned[places]
            error = _measure(own, targets, fine.patches, sources)
            cost = error - bonus * np.count_nonzero(around[:, places] == sources - level.targets[targets], axis=0)
            better = cost < lowest[places]
            chosen = places[better]
            lowest[chosen], pick[chosen], least[chosen] = cost[better], sources[better], error[better]
        best, errors = best.copy(), errors.copy()
        best[turned], errors[turned] = pick, least
    return best, errors


def _propose(fine: _FineLevel, turned: Indices, best: Indices, around: Indices, reach: int) -> list[Indices]:
    """Sources to try for some patches: those that continue the neighbours' moves, and those a small step away."""
    proposed = []
    for moves in around:
        places = fine.level.targets[turned] + moves
        inside = (moves != NOWHERE) & (places >= 0) & (places < len(fine.nearest))
        proposed.append(fine.nearest[np.where(inside, places, best)])
    rows, columns = np.divmod(best, fine.level.touched.shape[1])
    for down, right in NEIGHBOURS if reach else ():
        proposed.append(_snap(fine, rows + down * reach, columns + right * reach))
    return proposed


def _measure(own: Floats, targets: Indices, patches: Floats, sources: Indices) -> Floats:
    """The squared differences of pairs of patches."""
    difference = own.take(targets, axis=0)
    difference -= patches.take(sources, axis=0)
    return np.asarray(np.einsum("ij,ij->i", difference, difference), np.float32)
