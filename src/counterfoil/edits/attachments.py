"""What is attached to an object and not in its mask: a hand that holds it, a leash, a bow, a seat.

A network for salient objects takes it for part of the object. A small piece leaves with the object. Where there is
more, a picture without the object, or with it elsewhere, shows an arm that ends in the air or a body in two pieces.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

SALIENT = 0.5
TOUCHING = 0.01  # of the shorter side: what lies this near to the hole touches it
SMALLEST = 0.0003  # of the picture: smaller spots are the map's own edge
MOST_ATTACHED = 0.02  # of the object's area: more than this belongs to something that stays behind

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class Attachments(NamedTuple):
    """Salient things that touch the hole of an object."""

    region: Flags
    share: float  # of the object's area

    @property
    def reason(self) -> str:
        """Why the object cannot leave its place; empty where it can."""
        if self.share <= MOST_ATTACHED:
            return ""
        return f"something that stands out as part of the object is not in its mask ({self.share:.0%} of its area)"


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
