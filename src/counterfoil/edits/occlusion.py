"""The object seen in part: cropped by the picture's edge, covered by a box or by another object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, Covered, Plane
from counterfoil.edits.donor_object import (
    check_donor_object,
    check_ground_room,
    place_donor,
    place_foot_at,
    stands_on_border,
)
from counterfoil.edits.edit_protocol import ComposedEdit, Edit, Needs, Supplied, format_percent
from counterfoil.edits.geometry import Frame, frame_holding, object_box, object_point
from counterfoil.edits.subject import Subject
from counterfoil.edits.texture_patterns import check_pattern, draw_colours, draw_pattern
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, DonorRule, Picture

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
FORWARD = 0.05  # how much lower an occluder in front has its foot, as a share of the object's height
LARGEST_OCCLUDER = 1.6  # times the picture's longer side
GROWTH = 1.15  # by which an occluder that hides too little is enlarged
NARROWEST = 16  # pixels of the photo that a crop must show along its shorter side


@dataclass(frozen=True)
class Crop(Edit):
    """Crop the photo about a point of the object, drawn at random, until only a share of the object is visible."""

    attribute: ClassVar[Attribute] = "occlusion"
    share: float = 0.5  # of the object's area that stays visible

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UserError(f"share: expected more than 0 and at most 1, got {self.share:g}")

    @property
    def needs(self) -> Needs:
        """The photo at its own size, since the crop is enlarged."""
        return Needs(photo=True)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Find the crop, in the picture's own shape, and enlarge it to the picture's size."""
        alpha = subject.cutout.alpha
        height, width = alpha.shape
        frame = frame_holding(alpha, self.share, object_point(alpha, rng), Frame(0, 0, width, height))
        if min(frame.width, frame.height) < min(NARROWEST, height, width):
            raise Unusable(
                f"a crop with {self.share:g} of the object would show {frame.width:.0f} x {frame.height:.0f}"
                f" pixels of the photo, {NARROWEST} are needed"
            )
        return Picture(_enlarge(subject.picture.image, frame), _enlarge(alpha, frame))


def _enlarge(plane: Bytes, frame: Frame) -> Bytes:
    """The part in the frame, enlarged to the size of the plane."""
    height, width = plane.shape[:2]
    across, down = frame.width / width, frame.height / height
    # Pixel centres lie at whole coordinates, frames count from the corner of the first pixel.
    matrix = np.array([[across, 0, frame.left + across / 2 - 0.5], [0, down, frame.top + down / 2 - 0.5]], np.float64)
    method = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(plane, matrix, (width, height), flags=method, borderMode=cv2.BORDER_REPLICATE), np.uint8
    )


@dataclass(frozen=True)
class Occlusion(ComposedEdit):
    """Hide a share of the object's area behind a box at a random place; it never reaches beyond the object's box."""

    attribute: ClassVar[Attribute] = "occlusion"
    share: float = 0.25
    colour: tuple[int, int, int] | None = (128, 128, 128)  # drawn at random if None
    texture: str | None = None  # a pattern from the pool of `texture`, instead of the plain colour

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise UserError(f"share: expected a share of the object between 0 and 1, got {self.share:g}")
        if self.colour is not None and not all(0 <= value <= 255 for value in self.colour):
            raise UserError(f"colour: expected three numbers from 0 to 255 (red, green, blue), got {self.colour}")
        if self.texture is not None:
            check_pattern(self.texture)

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        share = format_percent(level)
        return f"covering {share} of the object" if share else f"covering the object ({level})"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Draw a place and find the box there that hides the share."""
        alpha = subject.cutout.alpha
        whole = Frame(*(float(value) for value in cv2.boundingRect(alpha)))
        frame = frame_holding(alpha, self.share, object_point(alpha, rng), whole)
        rows = _measure_coverage(alpha.shape[0], frame.top, frame.height)
        columns = _measure_coverage(alpha.shape[1], frame.left, frame.width)
        hidden = np.outer(rows, columns)
        photo = subject.picture.image
        visible = np.rint(alpha * (1 - hidden)).astype(np.uint8)
        if self.texture is None:
            colour = rng.integers(0, 256, 3) if self.colour is None else self.colour
            red, green, blue = (int(value) for value in colour)
            return Composition(Covered(Plane(photo), rows, columns, (red, green, blue)), visible)
        image = photo + hidden[..., None] * (self._draw_surface(self.texture, frame, photo.shape, rng) - photo)
        return Composition(Plane(np.rint(image).astype(np.uint8)), visible)

    def _draw_surface(self, texture: str, frame: Frame, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """The colours of a textured occluder over the whole picture."""
        side = max(8, round(max(frame.width, frame.height)))
        tile = np.asarray(cv2.resize(draw_pattern(texture), (side, side), interpolation=cv2.INTER_AREA), np.float32)
        rows, columns = (np.arange(length) % side for length in shape[:2])
        dark, light = draw_colours(rng)
        return np.asarray(dark + tile[rows][:, columns, None] * (light - dark), np.float32)


def _measure_coverage(length: int, start: float, extent: float) -> Floats:
    """The share of each pixel along a side that lies inside an extent."""
    edges = np.arange(length, dtype=np.float32)
    inside = np.minimum(edges + 1, start + extent) - np.maximum(edges, start)
    return np.asarray(np.clip(inside, 0, 1), np.float32)


@dataclass(frozen=True)
class OcclusionObject(Edit):
    """Hide a share of the object's area behind the object of another photo, which stands in front of one side."""

    attribute: ClassVar[Attribute] = "occlusion"
    version: ClassVar[int] = 3  # 3: nor in water or below what is in the air; 2: not where it would hang in the air
    share: float = 0.25
    donors: DonorRule = "other"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise UserError(f"share: expected a share of the object between 0 and 1, got {self.share:g}")

    @property
    def needs(self) -> Needs:
        """The photo whose object is taken."""
        return Needs(donor=self.donors)

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        share = format_percent(level)
        return f"another object before {share} of it" if share else f"another object before it ({level})"

    def check_donor(self, donor: Subject) -> None:
        """Raises `Unusable` where the donor's object is cut by its photo."""
        check_donor_object(donor)

    def check_fit(self, subject: Subject, donor: Subject, exposed: bool = False) -> None:
        """Raises `Unusable` where the donor's object would hang in the air."""
        check_ground_room(subject, donor)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Slide the donor's object from one side before the object until it hides the share."""
        donor, alpha = supplied.donor, subject.cutout.alpha
        self.check_donor(donor)
        other, own = object_box(donor.cutout.alpha), object_box(alpha)
        bottom = float(alpha.shape[0])
        foot = bottom if stands_on_border(donor) else min(bottom, own.top + (1 + FORWARD) * own.height)
        scale = own.height / other.height
        mask = donor.cutout.alpha[other.top : other.top + other.height, other.left : other.left + other.width]
        from_left = bool(rng.integers(2))
        while max(other.width, other.height) * scale <= LARGEST_OCCLUDER * max(alpha.shape):
            across = _slide_before(alpha, _scale_mask(mask, scale), foot, (self.share, from_left))
            if across is not None:
                return _place_before(subject, donor, place_foot_at(other, scale, (across, foot)))
            scale *= GROWTH
        raise Unusable(f"the donor's object cannot hide {self.share:.0%} of the object from one side")


def _scale_mask(mask: Bytes, scale: float) -> Floats:
    size = (max(1, round(mask.shape[1] * scale)), max(1, round(mask.shape[0] * scale)))
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(mask, size, interpolation=method) / np.float32(255), np.float32)


def _slide_before(alpha: Bytes, mask: Floats, foot: float, wanted: tuple[float, bool]) -> float | None:
    """The middle of an occluder that comes from one side and hides the share; None where it never hides so much."""
    (share, from_left), (height, width) = wanted, mask.shape
    top = round(foot) - height
    padded = np.zeros((height, alpha.shape[1] + 2 * width), np.float32)
    rows = slice(max(0, top), min(alpha.shape[0], top + height))
    padded[rows.start - top : rows.stop - top, width:-width] = alpha[rows]
    hidden = cv2.matchTemplate(padded, mask, cv2.TM_CCORR)[0] / max(float(alpha.sum(dtype=np.float64)), 1.0)
    own = object_box(alpha)
    # Only places up to where it stands before the object's middle: from there on it uncovers again.
    middle = round(own.left + own.width / 2 + width / 2)
    starts = np.arange(len(hidden))
    reached = np.flatnonzero((hidden >= share) & ((starts <= middle) if from_left else (starts >= middle)))
    if not len(reached):
        return None
    return float(int(reached[0 if from_left else -1]) - width / 2)


def _place_before(subject: Subject, donor: Subject, matrix: NDArray[np.float64]) -> Picture:
    """The donor's object over the picture; what it hides of the object is no longer in the alpha."""
    over = place_donor(subject, donor, matrix)
    visible = subject.cutout.alpha * (1 - over.alpha / np.float32(255))
    return Picture(over.image, np.rint(visible).astype(np.uint8))
