"""What is attached to an object and not in its mask: a hand that holds it, a leash, a bow, a seat.

A network for salient objects takes it for part of the object. A small piece leaves with the object. Where there is
more, a picture without the object, or with it elsewhere, shows an arm that ends in the air or a body in two pieces.
What stands out close to the mask or between its parts and is not in it (a collar, a stick, the fingers of a hand)
leaves its place with the hole, and the object is then seen with a gap.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.matting import distance_to
from counterfoil.object_mask import hard_object, object_trace

SALIENT = 0.5
TOUCHING = 0.01  # of the shorter side: what lies this near to the hole touches it
SMALLEST = 0.0003  # of the picture: smaller spots are the map's own edge
MOST_ATTACHED = 0.02  # of the object's area: more than this belongs to something that stays behind
EDGE, SPECK = 0.008, 0.012  # of the shorter side: beside the mask this is its edge; what is thinner is a speck
ENCLOSED = 0.05  # of the shorter side: a gap that closing the mask by this fills lies inside the object
MOST_MISSING = 0.1  # of the object's area that may stand out and be missing in the mask
MOST_GAPS = 0.003  # of the picture that such gaps inside the object may cover

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class Attachments(NamedTuple):
    """Salient things that touch the hole of an object."""

    region: Flags
    share: float  # of the object's area
    missing: float = 0.0  # of the object's area: what stands out close to the mask and is not in it
    gaps: float = 0.0  # of the picture: such places inside the object

    @property
    def reason(self) -> str:
        """Why the object cannot leave its place; empty where it can."""
        if self.share > MOST_ATTACHED:
            return f"something that stands out as part of the object is not in its mask ({self.share:.0%} of its area)"
        if self.missing > MOST_MISSING:
            return f"the mask leaves out what stands out close to the object ({self.missing:.0%} of its area)"
        if self.gaps > MOST_GAPS:
            return f"the mask leaves out what stands out inside the object ({self.gaps:.1%} of the picture)"
        return ""


def find_attachments(salience: Floats, hard: Flags, hole: Flags) -> Attachments:
    """The salient places outside the hole that are connected with it; `salience` is a network's answer, of any size."""
    height, width = hole.shape
    salient = np.asarray(cv2.resize(salience, (width, height), interpolation=cv2.INTER_LINEAR)) > SALIENT
    reach = max(1, round(TOUCHING * min(height, width)))
    near = np.asarray(cv2.dilate(hole.astype(np.uint8), np.ones((2 * reach + 1, 2 * reach + 1), np.uint8))) > 0
    count, labels = cv2.connectedComponents((salient & ~hole).astype(np.uint8), connectivity=8)
    touching = np.bincount(labels[near], minlength=count) > 0
    large = np.bincount(labels.ravel(), minlength=count) > SMALLEST * hole.size
    chosen = touching & large
    chosen[0] = False
    region = np.asarray(chosen[labels])
    return Attachments(region, float(np.count_nonzero(region)) / max(1, int(np.count_nonzero(hard))))


def measure_missing(salience: Floats, alpha: Bytes, hole: Flags) -> tuple[float, float]:
    """How much of an object's hole stands out and is not in the object: of its area, and inside it of the picture."""
    height, width = alpha.shape
    side, hard = min(height, width), hard_object(alpha)
    salient = np.asarray(cv2.resize(salience, (width, height), interpolation=cv2.INTER_LINEAR)) > SALIENT
    beside = salient & hole & (distance_to(object_trace(alpha)) > EDGE * side)
    left_out = np.asarray(cv2.morphologyEx(beside.astype(np.uint8), cv2.MORPH_OPEN, _disc(SPECK * side / 2))) > 0
    closed = np.asarray(cv2.morphologyEx(hard.astype(np.uint8), cv2.MORPH_CLOSE, _disc(ENCLOSED * side))) > 0
    area = max(1, int(np.count_nonzero(hard)))
    return float(np.count_nonzero(left_out)) / area, float(np.count_nonzero(left_out & closed)) / hard.size


def _disc(radius: float) -> Bytes:
    reach = max(1, round(radius))
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1)), np.uint8)
