"""MI-GAN: a network that paints what is missing in a picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.inpainting_graph import FULL, PAINTED, PLANES, STEP, open_inpainting_session
from counterfoil.edits.smooth_fill import fill_smoothly

AROUND = 256  # pixels beyond the longer side of a hole that the network sees with it, half of them on each side
SMALLEST = 256  # pixels of a side of what the network is given
SOFTENED = 5  # pixels: width of the blur over which the network's answer passes into what it was given

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class _Window(NamedTuple):
    rows: slice
    columns: slice


@dataclass(frozen=True)
class InpaintingNetwork:
    """MI-GAN in ONNX Runtime."""

    weights: Path

    @cached_property
    def _session(self) -> Any:
        return open_inpainting_session(self.weights)

    def fill(self, image: Bytes, hole: Flags) -> Bytes:
        """The picture with its hole filled; pixels outside the hole stay as they are."""
        if not hole.any():
            return image
        # The network mixes what the hole held into its answer, most at the rim; smooth colours hold nothing.
        smooth, window = fill_smoothly(image, hole), _find_window(hole)
        part, inside = smooth[window], hole[window]
        painted = self._paint(part, inside)
        known = cv2.dilate((~inside).astype(np.float32), np.ones((3, 3), np.uint8))
        share = np.asarray(cv2.GaussianBlur(known, (SOFTENED, SOFTENED), 1.0))[..., None]
        mixed = np.clip(part * share + painted * (1 - share), 0, 255).astype(np.uint8)
        result: Bytes = image.copy()
        result[window] = np.where(inside[..., None], mixed, image[window])
        return result

    def _paint(self, part: Bytes, inside: Flags) -> Floats:
        """What the network paints, (height, width, 3), from 0 to 255; at the picture's own scale where it can."""
        height, width = inside.shape
        size = (_fit_side(width), _fit_side(height))
        small = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_LINEAR), np.float32)
        known = cv2.resize((~inside).astype(np.uint8), size, interpolation=cv2.INTER_NEAREST).astype(np.float32)
        colours = (small * np.float32(2 / 255) - 1) * known[..., None]
        planes = np.concatenate([known[None] - np.float32(0.5), colours.transpose(2, 0, 1)])[None]
        (answer,) = self._session.run([PAINTED], {PLANES: planes})
        levels = np.clip((answer[0].transpose(1, 2, 0) + 1) * np.float32(127.5), 0, 255)
        enlarged = cv2.resize(np.ascontiguousarray(levels), (width, height), interpolation=cv2.INTER_LINEAR)
        return np.asarray(enlarged, np.float32)


def _find_window(hole: Flags) -> _Window:
    """The square around the hole that the network sees, kept inside the picture."""
    left, top, width, height = cv2.boundingRect(hole.astype(np.uint8))
    side = max(max(width, height) + AROUND, FULL)
    starts = (top + height // 2 - side // 2, left + width // 2 - side // 2)
    rows, columns = (
        slice(first, min(first + side, length))
        for first, length in zip(
            (max(0, min(start, length - side)) for start, length in zip(starts, hole.shape, strict=True)),
            hole.shape,
            strict=True,
        )
    )
    return _Window(rows, columns)


def _fit_side(length: int) -> int:
    """The side of the network's planes nearest to this one."""
    return min(FULL, max(SMALLEST, STEP * round(length / STEP)))
