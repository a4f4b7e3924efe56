"""The object made larger or smaller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, Placed, Plane
from counterfoil.edits.cutout_quality import check_cutout
from counterfoil.edits.edit_protocol import ComposedEdit, Needs, Supplied, format_percent
from counterfoil.edits.foot_ground import check_foot_ground
from counterfoil.edits.geometry import BoundingBox, check_rate, object_box, object_rate, zoom_to_rate
from counterfoil.edits.photo_border import anchor_point
from counterfoil.edits.scene import place_in_scene, zoom_about_foot
from counterfoil.edits.subject import Subject
from counterfoil.types import Attribute, Picture


@dataclass(frozen=True)
class Size(ComposedEdit):
    """Zoom the object until it covers a given share of the picture, or crop the photo to it (full)."""

    attribute: ClassVar[Attribute] = "size"
    version: ClassVar[int] = (
        5  # 5, 4, 3: other fills and limits; 2: the fill is judged, shadows leave, cut objects stay at their border
    )
    later: ClassVar[tuple[str, ...]] = ("grounded",)
    rate: float | Literal["full"] = "full"
    faithful: bool = False  # ImageNet-E's tolerance of 0.015, within which an object stays as it is
    grounded: bool = False  # zoom about the foot, with a contact shadow, in the light of the place

    def __post_init__(self) -> None:
        if self.rate != "full":
            check_rate(self.rate)

    @property
    def picture_version(self) -> int:
        """Grounded pictures are newer: an object that is enlarged stays inside the picture."""
        return self.version + (self.grounded and self.rate != "full")

    @property
    def needs(self) -> Needs:
        """The photo at its own size for a crop, since that is enlarged."""
        return Needs(photo=self.rate == "full")

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        if level == "full":
            return "the object at full size"
        share = format_percent(level)
        return f"the object at {share} of the picture" if share else f"the object at size {level}"

    @property
    def shows_fill(self) -> bool:
        """Where the object shrinks; a crop shows the photo."""
        return self.rate != "full"

    @classmethod
    def shows_fill_at(cls, level: str) -> bool:
        """At every level but the crop."""
        return level != "full"

    @property
    def moves_object(self) -> bool:
        """Where it shrinks."""
        return self.shows_fill

    def check_subject(self, subject: Subject) -> None:
        """Raises `Unusable` where an object that shrinks would show that it was cut out."""
        if self.grounded and self.shows_fill:
            check_cutout(subject)

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Zoom the object, or crop the photo."""
        cut = subject.cutout
        frame = _fit_frame(object_box(cut.alpha, self.faithful), cut.alpha.shape)
        # A target above what the object covers when it fills the picture means full.
        full_rate = object_rate(cut.alpha, self.faithful) * cut.alpha.size / (frame.width * frame.height)
        if self.rate == "full" or self.rate > full_rate:
            return Composition.of(_crop_to(subject.picture.image, cut.alpha, frame))
        about = anchor_point(cut.alpha, subject.cut_sides, self.grounded) if subject.cut_sides else None
        matrix = zoom_to_rate(cut.alpha, self.rate, self.faithful, about)
        if self.grounded:
            matrix = matrix if subject.cut_sides else zoom_about_foot(cut.alpha, matrix)
            check_foot_ground(subject, matrix)
            return place_in_scene(subject, matrix)
        return Composition(Placed(subject.object_layer, matrix, Plane(subject.visible_background)))


def _fit_frame(box: BoundingBox, shape: tuple[int, ...]) -> BoundingBox:
    """The smallest frame of the picture's aspect ratio around the box, inside the picture."""
    height, width = shape[:2]
    share = max(box.width / width, box.height / height)
    frame_width, frame_height = min(width, round(width * share)), min(height, round(height * share))
    left = round(box.left + (box.width - frame_width) / 2)
    top = round(box.top + (box.height - frame_height) / 2)
    left, top = np.clip([left, top], 0, [width - frame_width, height - frame_height])
    return BoundingBox(int(left), int(top), frame_width, frame_height)


def _crop_to(image: NDArray[np.uint8], alpha: NDArray[np.uint8], frame: BoundingBox) -> Picture:
    """The original photo inside the frame, with its real background, enlarged to the picture's size."""
    height, width = alpha.shape
    rows = slice(frame.top, frame.top + frame.height)
    columns = slice(frame.left, frame.left + frame.width)
    crops = (plane[rows, columns] for plane in (image, alpha))
    enlarged = [
        np.asarray(cv2.resize(crop, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8) for crop in crops
    ]
    return Picture(enlarged[0], enlarged[1])
