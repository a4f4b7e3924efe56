"""Unknown places filled smoothly from what is known around them."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


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
