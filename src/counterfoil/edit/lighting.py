"""The object in the light of another background: plausible, and therefore never part of an exact recipe."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.base import Subject
from counterfoil.edit.cutting import Cutout, paste
from counterfoil.edit.filling import check_background
from counterfoil.types import Picture

SHARE = 0.5  # of the difference in light (as a power): the rest may be paint, not light
LIMITS = (0.6, 1.6)  # gains beyond which an object would look painted over

Bytes = NDArray[np.uint8]


def in_the_light_of(subject: Subject, background: Bytes) -> Picture:
    """The picture's object where it was before another background, brighter or darker as its surroundings are."""
    cut = subject.cutout
    check_background(cut.background_share)
    clear = (cut.alpha == 0).astype(np.uint8)
    old, new = (float(np.mean(cv2.mean(image, clear)[:3])) for image in (subject.picture.image, background))
    gain = float(np.clip(((new + 8) / (old + 8)) ** SHARE, *LIMITS))
    table = np.clip(np.rint(np.arange(256) * gain), 0, 255).astype(np.uint8)
    lit = Cutout(np.asarray(cv2.LUT(cut.image, table), np.uint8), cut.alpha, cut.background_share)
    return Picture(paste(lit, background), cut.alpha.copy())
