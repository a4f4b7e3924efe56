"""Does a mask look like an object's? What does not is counted and listed, never used in silence."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

SMALLEST_SHARE = 0.01
LARGEST_SHARE = 0.90
LARGEST_PIECE_SHARE = 0.80  # below this the mask is many pieces, not an object


def fault_of(alpha: NDArray[np.uint8]) -> str | None:
    """Why this mask is implausible, or None where it looks right."""
    hard = (alpha >= 128).astype(np.uint8)
    share = float(hard.mean())
    if share < SMALLEST_SHARE:
        return f"the mask is too small: {share:.1%} of the picture"
    if share > LARGEST_SHARE:
        return f"the mask is too large: {share:.1%} of the picture"
    if (piece := _largest_piece(hard)) < LARGEST_PIECE_SHARE:
        return f"the mask is in many pieces: the largest holds {piece:.0%} of it"
    if (sides := _sides_touched(hard)) >= 3:
        return f"the mask touches {sides} sides of the picture"
    return None


def _largest_piece(hard: NDArray[np.uint8]) -> float:
    areas = cv2.connectedComponentsWithStats(hard, connectivity=8)[2][1:, cv2.CC_STAT_AREA]
    return float(areas.max() / areas.sum())


def _sides_touched(hard: NDArray[np.uint8]) -> int:
    return sum(bool(side.any()) for side in (hard[0], hard[-1], hard[:, 0], hard[:, -1]))
