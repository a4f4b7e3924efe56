"""The mask of an object: where it comes from, which pixels are the object, and which show any trace of it.

Edits ask a mask two questions and no other. How much of each pixel is the object: its soft alpha, `soft_alpha` in
edits/matting.py, which `Subject.alpha` holds. Which pixels are the object: `hard_object`. Nothing else compares alpha
with a number of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
MaskOrigin: TypeAlias = Literal["hand", "trimap", "salience"]  # drawn; drawn with an unknown band; found by a network

HARD = 128  # of 255: a pixel that is at least half object is object
UNKNOWN = 128  # the value of a trimap's undecided band, which counts as object where a hard object is asked for


class ObjectMask(NamedTuple):
    """A mask and where it comes from."""

    values: Bytes  # (height, width): 255 on the object, 0 off it, between at soft edges, 128 where a trimap is unknown
    origin: MaskOrigin


def as_mask(values: Bytes) -> ObjectMask:
    """A mask that was given with its photo: a trimap where it has exactly a trimap's values, else drawn by hand.

    Example:
        >>> import numpy as np
        >>> as_mask(np.array([[0, 128, 255]], np.uint8)).origin
        'trimap'
        >>> as_mask(np.array([[0, 1]], np.uint8)).values  # one value for the whole object: any nonzero is object
        array([[  0, 255]], dtype=uint8)
    """
    used = np.unique(values)
    if used.tolist() == [0, UNKNOWN, 255]:
        return ObjectMask(values, "trimap")
    if len(used) == 2 and used[0] == 0 and used[1] < 255:
        return ObjectMask(np.where(values != 0, 255, 0).astype(np.uint8), "hand")
    return ObjectMask(values, "hand")


def hard_object(alpha: Bytes) -> Flags:
    """The pixels that are the object: at least half of them is, or a trimap leaves it open."""
    return np.asarray(alpha >= HARD)


def object_trace(alpha: Bytes) -> Flags:
    """The pixels that show any of the object; the others are clear of it. For holes, which must hide all of it."""
    return np.asarray(alpha != 0)


def object_share(alpha: Bytes) -> float:
    """The object's share of the picture, 0 to 1."""
    return np.count_nonzero(hard_object(alpha)) / alpha.size


def mask_overlap(first: Flags, second: Flags) -> float:
    """Intersection over union of two objects, 0 to 1; 1 where both are empty."""
    union = np.count_nonzero(first | second)
    return np.count_nonzero(first & second) / union if union else 1.0


@dataclass(frozen=True, kw_only=True)
class MaskVerdict:
    """The verdict on one photo's mask, with what it rests on; NaN where a test was not made."""

    sample: str
    origin: MaskOrigin
    verdict: Literal["accepted", "doubtful"] = "accepted"
    reasons: tuple[str, ...] = ()  # why it is doubtful
    share: float = math.nan  # of the picture that the object covers
    agreement: float = math.nan  # overlap with what the second segmenter finds, 0 to 1
    steadiness: float = math.nan  # overlap with what the same segmenter finds in the photo with a wider border
    undecided: float = math.nan  # pixels of which the segmenter is not sure, as a share of the object's
    kept_alone: float = math.nan  # share of the network's certainty that is left with the object alone
    kept_without: float = math.nan  # and with everything but the object

    @property
    def is_doubtful(self) -> bool:
        """Whether edits that need the mask are refused."""
        return self.verdict == "doubtful"
