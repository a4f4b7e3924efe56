"""The object seen in part: cropped by the picture's edge, or covered by a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Edit, Needs, Supplied, format_percent
from counterfoil.edits.geometry import Frame, frame_holding, object_point
from counterfoil.edits.subject import Subject
from counterfoil.edits.texture_patterns import check_pattern, draw_colours, draw_pattern
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, Picture

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
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
class Occlusion(Edit):
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

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Draw a place and find the box there that hides the share."""
        alpha = subject.cutout.alpha
        whole = Frame(*(float(value) for value in cv2.boundingRect(alpha)))
        frame = frame_holding(alpha, self.share, object_point(alpha, rng), whole)
        rows = _measure_coverage(alpha.shape[0], frame.top, frame.height)
        hidden = np.outer(rows, _measure_coverage(alpha.shape[1], frame.left, frame.width))
        photo = subject.picture.image
        image = photo + hidden[..., None] * (self._draw_surface(frame, photo.shape, rng) - photo)
        visible = np.rint(alpha * (1 - hidden))
        return Picture(np.rint(image).astype(np.uint8), visible.astype(np.uint8))

    def _draw_surface(self, frame: Frame, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """The occluder's colours over the whole picture."""
        if self.texture is None:
            colour = rng.integers(0, 256, 3) if self.colour is None else self.colour
            return np.broadcast_to(np.array(colour, np.float32), shape)
        side = max(8, round(max(frame.width, frame.height)))
        tile = np.asarray(
            cv2.resize(draw_pattern(self.texture), (side, side), interpolation=cv2.INTER_AREA), np.float32
        )
        rows, columns = (np.arange(length) % side for length in shape[:2])
        dark, light = draw_colours(rng)
        return np.asarray(dark + tile[rows][:, columns, None] * (light - dark), np.float32)


def _measure_coverage(length: int, start: float, extent: float) -> Floats:
    """The share of each pixel along a side that lies inside an extent."""
    edges = np.arange(length, dtype=np.float32)
    inside = np.minimum(edges + 1, start + extent) - np.maximum(edges, start)
    return np.asarray(np.clip(inside, 0, 1), np.float32)
