"""Grass at the foot of an object: it stands on drawn grass then, whose blades hide what the real ones hid."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.geometry import object_box
from counterfoil.edits.subject import Subject
from counterfoil.object_mask import hard_object, object_trace

BESIDE = (0.15, 0.1)  # of the object's size above and below its foot, and to its sides: where grass is looked for
GREEN, STRAW = (-4.0, 6.0), (12.0, 11.0)  # a* of CIE Lab below, and b* above; straw, heath or leaves
ROUGH, ROUGH_STRAW = 2.2, 4.5  # levels of L* by which green grass and straw differ from their mean around
SHARE = 0.4  # of the ground there
FEWEST = 50  # pixels that tell

LOWEST = 0.12  # of the object's size: what is no higher above its foot stands in the grass
BLADES = (0.02, 0.055)  # of the object's size: how high they reach
THIN, WIDE = 0.008, 0.03  # of the object's size: a blade, and a tuft

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


def stands_in_grass(subject: Subject) -> bool:
    """Whether what is seen at the foot of a photo's object is rough and green, or rough and of the colour of straw."""
    return subject.once(_stands_in_grass)


def _stands_in_grass(subject: Subject) -> bool:
    image, alpha = subject.picture.image, subject.cutout.alpha
    box = object_box(alpha)
    size, foot = float(np.sqrt(box.width * box.height)), box.top + box.height
    rows = slice(max(0, round(foot - BESIDE[0] * size)), round(foot + BESIDE[0] * size))
    columns = slice(max(0, round(box.left - BESIDE[1] * size)), round(box.left + box.width + BESIDE[1] * size))
    ground = ~object_trace(alpha[rows, columns])
    if np.count_nonzero(ground) < FEWEST:
        return False
    lab = cv2.cvtColor(image[rows, columns].astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB)
    light = np.asarray(lab[..., 0])
    rough = float(np.abs(light - cv2.GaussianBlur(light, (0, 0), 2))[ground].mean())
    red, yellow = lab[..., 1][ground], lab[..., 2][ground]
    green = float(((red < GREEN[0]) & (yellow > GREEN[1])).mean())
    straw = float(((red < STRAW[0]) & (yellow > STRAW[1])).mean())
    return (green > SHARE and rough > ROUGH) or (straw > SHARE and rough > ROUGH_STRAW)


def hide_in_grass(alpha: Bytes, seed: int) -> Bytes:
    """The alpha of an object whose lowest parts end in blades of grass, as far as its outline is near its foot."""
    box, hard = object_box(alpha), hard_object(alpha)
    size, foot = float(np.sqrt(box.width * box.height)), box.top + box.height
    rows = np.arange(alpha.shape[0], dtype=np.float32)[:, None]
    lowest = np.where(hard.any(axis=0), alpha.shape[0] - np.argmax(hard[::-1], axis=0), 0).astype(np.float32)
    low = lowest > foot - LOWEST * size
    if box.top + box.height >= alpha.shape[0] - 1:  # the picture ends before the grass
        return alpha
    tops = lowest - size * _draw_blades(len(lowest), size, np.random.default_rng(seed))
    above = np.clip(tops[None] - rows + 0.5, 0, 1)
    kept = np.where(low[None], above, 1)
    return np.asarray(np.rint(alpha * kept), np.uint8)


def _draw_blades(width: int, size: float, rng: np.random.Generator) -> Floats:
    """How high the blades reach in each column, as shares of the object's size."""
    height = np.zeros(width, np.float32)
    for scale, part in ((THIN, 0.6), (WIDE, 0.4)):
        steps = max(2, round(width / max(1.5, scale * size)))
        knots = rng.uniform(0, 1, (1, steps)).astype(np.float32)
        height += part * np.asarray(cv2.resize(knots, (width, 1), interpolation=cv2.INTER_LINEAR), np.float32)[0]
    return np.asarray(BLADES[0] + (BLADES[1] - BLADES[0]) * height, np.float32)
