"""Background that a mask holds: a light rim, grass between legs, sky in a window. It is taken out of the alpha.

Near every place the colours of what is surely object and of what is surely background are counted. What has a colour
that is seen in the background there and hardly in the object, and is connected with the outline, is background.
Objects coloured like their background keep their edge: there neither colour tells.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.edits.matting import distance_to
from counterfoil.object_mask import hard_object, object_trace

SIDE = 512  # shorter side in pixels at which colours are compared; larger pictures are reduced
COLOURS = 48  # kinds of colour, chosen for each picture
ALIKE = 5.0  # levels of CIE Lab by which colours differ that count for one another in part
GRID = 72  # places along the shorter side at which colours are counted
NEAR = 0.1  # of the object's size: how far around a place they are
FAR = 0.35  # of the object's size: beyond this background does not count
CORE = 0.03  # of the object's size: what is so deep inside the mask is surely object, or half as deep as its middle
CLEAR = 0.012  # of the object's size, and a pixel and a half: as near to the mask, background is mixed with the object
FEW = 0.004  # share of the colours nearby below which a colour is not known
BACKGROUND = 0.85  # share of the background in a colour, from which a pixel is background
UNSURE = 0.25  # weight as sure object of what the author of a mask left open
SURE = 0.6  # the same, from which a pixel inside is no sure object
DEEPEST = 0.05  # of the object's size: how deep remains lie in a mask without an unknown band
RIM = (0.02, 4.0)  # of the object's size, and in pixels: what is no deeper is a rim
EDGE = 1.3  # by how much the edge between deeper remains and the object is clearer than that along the outline
SEEN = 100  # alpha of what is left from which a piece is seen as one
SPECK = 0.002  # of the object's area: smaller pieces that are cut off are taken away too
PIECE, LIKELY = 0.01, 0.55  # of its area: smaller pieces by themselves, of which so much is background by their colour

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]


def trim_remains(image: Bytes, alpha: Bytes, unknown: Flags | None = None) -> Bytes:
    """The alpha without what is background; `unknown` is the band that the author of a mask left open."""
    hard = hard_object(alpha)
    if not hard.any() or hard.all():
        return alpha
    scale = min(1.0, SIDE / min(alpha.shape))
    if scale == 1:
        kept = _find_kept(image, alpha, unknown)
    else:
        size = round(alpha.shape[1] * scale), round(alpha.shape[0] * scale)
        small, small_alpha = (np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.uint8)
                              for plane in (image, alpha))  # fmt: skip
        band = None if unknown is None else _resize_flags(unknown, size)
        kept = _find_kept(small, small_alpha, band)
        kept = np.asarray(cv2.resize(kept, alpha.shape[::-1], interpolation=cv2.INTER_LINEAR), np.float32)
    trimmed = np.asarray(np.rint(alpha * kept), np.uint8)
    return trimmed if hard_object(trimmed).any() else alpha


def _resize_flags(flags: Flags, size: tuple[int, int]) -> Flags:
    return np.asarray(cv2.resize(flags.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)) > 0


class _Outline(NamedTuple):
    """The object of a mask, with what depends on its outline alone."""

    hard: Flags
    size: float  # the root of its area
    depth: Floats  # of the pixels inside
    away: Floats  # of those outside

    @classmethod
    def of(cls, hard: Flags) -> _Outline:
        return cls(hard, float(np.sqrt(np.count_nonzero(hard))), distance_to(~hard), distance_to(hard))


def _find_kept(image: Bytes, alpha: Bytes, unknown: Flags | None) -> Floats:
    """The share of each pixel's alpha that stays."""
    outline = _Outline.of(hard_object(alpha))
    odds = np.asarray(cv2.blur(_measure_odds(image, outline, unknown), (3, 3)), np.float32)
    if unknown is None:
        open_ = outline.depth <= max(3.0, DEEPEST * outline.size)
    else:
        open_ = np.asarray(cv2.dilate(unknown.astype(np.uint8), np.ones((5, 5)))) > 0
    likely = (odds > BACKGROUND) & object_trace(alpha) & open_
    remains = _select_remains(image, likely, outline)
    kept = 1 - np.clip(1.5 * cv2.GaussianBlur(remains.astype(np.float32), (0, 0), 0.8), 0, 1)
    kept[_find_specks(odds, alpha * kept, outline)] = 0
    return np.asarray(kept, np.float32)


def _measure_odds(image: Bytes, outline: _Outline, unknown: Flags | None = None) -> Floats:
    """For each pixel the share of the background in its colour near it, 0 to 1."""
    counts = _ColourCounts.of(image, NEAR * outline.size)
    size, depth, away = outline.size, outline.depth, outline.away
    reach = max(1, round(2 * CORE * size))
    thick = np.asarray(cv2.dilate(depth, np.ones((2 * reach + 1, 2 * reach + 1))), np.float32)
    core = np.clip(depth / np.clip(0.8 * thick, 1.5, max(1.5, CORE * size)) - 0.5, 0, 1) * outline.hard
    if unknown is not None:
        core[unknown] *= UNSURE
    beyond = ((away > CLEAR * size + 1.5) & (away < FAR * size)).astype(np.float32)
    behind = counts.measure(beyond)
    # A patch of grass inside the mask is no sure object.
    anywhere = counts.measure(core, everywhere=True)
    core = core * np.clip(1 - (behind / (behind + anywhere + FEW) - SURE) / 0.3, 0, 1)
    inside = counts.measure(core)
    return np.asarray(behind / (behind + inside + FEW), np.float32)


class _ColourCounts(NamedTuple):
    """Counts of a picture's kinds of colour around every place."""

    kinds: Integers  # (height, width): the kind of each pixel's colour
    likeness: Floats  # (kinds, kinds): how far one kind counts for another
    grid: tuple[int, int]  # width and height
    reach: float  # in places of the grid

    @classmethod
    def of(cls, image: Bytes, reach: float) -> _ColourCounts:
        """The kinds of a picture's colours; `reach` in pixels."""
        height, width = image.shape[:2]
        kinds, palette = _sort_colours(image)
        likeness = np.exp(-((palette[:, None] - palette[None]) ** 2).sum(axis=2) / (2 * ALIKE**2))
        scale = min(1.0, GRID / min(height, width))
        grid = max(1, round(width * scale)), max(1, round(height * scale))
        return cls(kinds, np.asarray(likeness, np.float32), grid, max(0.8, reach * scale))

    def measure(self, weight: Floats, everywhere: bool = False) -> Floats:
        """How frequent each pixel's colour is among pixels of this weight near it, or everywhere."""
        counted, (width, height), number = weight > 0, self.grid, len(self.likeness)
        rows, columns = (np.arange(length) for length in weight.shape)
        places = (rows * height // len(rows))[:, None] * width + (columns * width // len(columns))[None]
        cells = (places * number + self.kinds)[counted]
        sums = np.bincount(cells, weights=weight[counted], minlength=width * height * number)
        counts = sums.reshape(height, width, number).astype(np.float32)
        total = counts.sum(axis=(0, 1))
        usual = total / max(1e-6, float(total.sum())) @ self.likeness
        if everywhere:
            return np.asarray(usual[self.kinds], np.float32)
        parts = [_blur(counts[..., first : first + 4], self.reach) for first in range(0, number, 4)]
        near = np.concatenate(parts, axis=2)
        few = 8.0 * width * height / weight.size  # where little is near, what is usual counts
        share = (near @ self.likeness + few * usual) / (near.sum(axis=2, keepdims=True) + few)
        return np.asarray(share.reshape(-1)[places * number + self.kinds], np.float32)


def _blur(planes: Floats, reach: float) -> Floats:
    blurred = cv2.GaussianBlur(np.ascontiguousarray(planes), (0, 0), reach, borderType=cv2.BORDER_REFLECT)
    return np.asarray(blurred, np.float32).reshape(planes.shape)


def _sort_colours(image: Bytes) -> tuple[Integers, Floats]:
    """The kind of each pixel's colour, and the colours of the kinds in CIE Lab; always the same for a picture."""
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    small = np.asarray(cv2.resize(lab, (96, 96), interpolation=cv2.INTER_NEAREST), np.uint8)
    method, dither = Image.Quantize.MEDIANCUT, Image.Dither.NONE
    found = Image.fromarray(small).quantize(COLOURS, method=method, dither=dither).getpalette() or []
    palette = np.unique(np.array(found, np.float32).reshape(-1, 3)[:COLOURS], axis=0)
    # Colours are sorted in steps of 8, 4 and 4 levels, of which a picture has some hundreds.
    light, red, yellow = (np.asarray(lab[..., i], np.int32) // step for i, step in enumerate((8, 4, 4)))
    codes = light * 4096 + red * 64 + yellow
    used = np.flatnonzero(np.bincount(codes.ravel()))
    centres = np.stack([used // 4096 * 8 + 3.5, used // 64 % 64 * 4 + 1.5, used % 64 * 4 + 1.5], axis=1)
    levels = np.array([100 / 255, 1, 1], np.float32)  # OpenCV stretches L* to 255
    nearest = (((centres[:, None] - palette[None]) * levels) ** 2).sum(axis=2).argmin(axis=1)
    table = np.zeros(int(codes.max()) + 1, np.int32)
    table[used] = nearest
    return table[codes], np.asarray(palette * levels, np.float32)


def _select_remains(image: Bytes, likely: Flags, outline: _Outline) -> Flags:
    """The regions that begin at the outline and, where they reach deep, go on outside of it without a clear edge."""
    count, labels, boxes, _ = cv2.connectedComponentsWithStats(likely.astype(np.uint8), connectivity=4)
    chosen = np.bincount(labels[outline.depth <= 2.5], minlength=count) > 0
    chosen[0] = False
    deepest = np.zeros(count, np.float32)
    np.maximum.at(deepest, np.asarray(labels.ravel(), np.intp), outline.depth.ravel())
    for number in np.flatnonzero(chosen & (deepest > max(RIM[0] * outline.size, RIM[1]))).tolist():
        left, top, width, height = (int(value) for value in boxes[number, :4])
        window = slice(max(0, top - 8), top + height + 8), slice(max(0, left - 8), left + width + 8)
        chosen[number] = _goes_on(image[window], labels[window] == number, outline.hard[window])
    return np.asarray(chosen[labels])


def _goes_on(image: Bytes, region: Flags, hard: Flags) -> bool:
    """Whether the edge between a region and the rest of the object is clearer than that along the outline."""
    lab = cv2.cvtColor(np.asarray(cv2.GaussianBlur(image, (0, 0), 1.2), np.uint8), cv2.COLOR_RGB2LAB)
    planes = lab.astype(np.float32) * np.array([100 / 255, 1, 1], np.float32)
    steps = np.sqrt(sum((cv2.Sobel(planes, cv2.CV_32F, *way) ** 2).sum(axis=2) for way in ((1, 0), (0, 1))))
    grown = np.asarray(cv2.dilate(region.astype(np.uint8), np.ones((3, 3)))) > 0
    shrunk = np.asarray(cv2.erode(hard.astype(np.uint8), np.ones((7, 7)))) > 0
    rim = hard & ~(np.asarray(cv2.erode(hard.astype(np.uint8), np.ones((5, 5)))) > 0)
    inner, outer = grown & ~region & shrunk, region & rim
    if not inner.any() or not outer.any():
        return bool(outer.any())
    return float(np.median(steps[inner])) >= EDGE * float(np.median(steps[outer]))


def _find_specks(odds: Floats, left: Floats, outline: _Outline) -> Flags:
    """Small pieces: those that were part of something much larger before, and those coloured like background."""
    count, labels, boxes, _ = cv2.connectedComponentsWithStats((left > SEEN).astype(np.uint8), connectivity=8)
    before = cv2.connectedComponentsWithStats(outline.hard.astype(np.uint8), connectivity=8)
    whole = np.zeros(count, np.int64)
    np.maximum.at(whole, np.asarray(labels.ravel(), np.intp), before[2][:, cv2.CC_STAT_AREA][before[1]].ravel())
    areas = boxes[:, cv2.CC_STAT_AREA]
    likely = np.bincount(labels.ravel(), weights=odds.ravel(), minlength=count) > LIKELY * areas
    small = ((areas < SPECK * outline.size**2) & (whole > 10 * areas)) | ((areas < PIECE * outline.size**2) & likely)
    small[0] = False
    if not small.any():
        return np.zeros(left.shape, bool)
    return np.asarray(cv2.dilate(small[labels].astype(np.uint8), np.ones((5, 5)))) > 0
