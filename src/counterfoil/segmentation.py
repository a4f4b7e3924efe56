"""Masks for photos without one: the U2-Netp saliency network, and a check of its masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import fetch_asset
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.errors import Unsegmented
from counterfoil.object_mask import ObjectMask, hard_object
from counterfoil.types import Sample

Segmenter = Callable[[NDArray[np.uint8]], ObjectMask]
SMALLEST_SHARE = 0.01
LARGEST_SHARE = 0.90
LARGEST_PIECE_SHARE = 0.80  # below this the mask is many pieces, not an object
_SIDE = 320  # pixels of the network's input
_MEAN = np.array((0.485, 0.456, 0.406), np.float32)
_STD = np.array((0.229, 0.224, 0.225), np.float32)


@dataclass(frozen=True)
class U2Netp:
    """The U2-Netp network, from a photo to its mask; raises `Unsegmented` where that is implausible."""

    weights: Path

    @cached_property
    def _session(self) -> Any:
        return open_onnx_session(self.weights)

    def __call__(self, image: NDArray[np.uint8]) -> ObjectMask:
        """The object, (height, width), hard: a salience map is no alpha, so the edits estimate its edge."""
        salience = self.salience(image)
        if fault := find_mask_fault(salience):
            raise Unsegmented(fault)
        return ObjectMask(np.where(hard_object(salience), 255, 0).astype(np.uint8), "salience")

    def salience(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The network's saliency map, stretched to 0..255, at the photo's size."""
        small = cv2.resize(image, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
        ready = (small / max(float(small.max()), 1e-6) - _MEAN) / _STD
        source, target = self._session.get_inputs()[0].name, self._session.get_outputs()[0].name
        salience = self._session.run([target], {source: ready.transpose(2, 0, 1)[None]})[0][0, 0]
        stretched = (salience - salience.min()) / max(float(salience.max() - salience.min()), 1e-6)
        full = cv2.resize(stretched, (image.shape[1], image.shape[0]), interpolation=cv2.INTER_LINEAR)
        return np.asarray(np.rint(full.clip(0, 1) * 255), np.uint8)


def make_segmenter(samples: Sequence[Sample]) -> Segmenter:
    """The segmenter for these samples; its weights are fetched only where a photo has no mask."""
    if all(sample.mask is not None for sample in samples):
        return U2Netp(Path())
    return U2Netp(fetch_asset("u2netp"))


def find_mask_fault(alpha: NDArray[np.uint8]) -> str | None:
    """Why this mask is implausible; None where it is plausible."""
    hard = hard_object(alpha).astype(np.uint8)
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
