"""The object moved elsewhere in the picture."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edits.composition import Composition, Placed, Plane
from counterfoil.edits.cutout import Cutout, Matrix, map_points, place_alpha
from counterfoil.edits.cutout_quality import check_cutout
from counterfoil.edits.donor_scene import check_whole
from counterfoil.edits.edit_protocol import (
    ComposedEdit,
    RecipeEdit,
    Supplied,
    cross_with_size,
    reference_at_rate,
    require_size,
)
from counterfoil.edits.foot_ground import FootGround, stands_on_ground
from counterfoil.edits.geometry import BoundingBox, check_rate, object_box, zoom, zoom_to_rate
from counterfoil.edits.photo_border import Side, anchor_point, refuse_cut
from counterfoil.edits.scene import highest_foot, place_in_scene
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, EditLevel

_CELL = re.compile(r"(\d+)/(\d+),(\d+)/(\d+)(@[\d.]+)?")  # row, column, rate
DRAWS = 60  # places that are tried where an object must come to ground like that on which it stood
CROP = 0.875  # of the shorter side: the crop of models that resize to 256 and crop 224


@dataclass(frozen=True)
class Position(ComposedEdit):
    """Move the object to a place drawn uniformly from all where its box is inside the picture."""

    attribute: ClassVar[Attribute] = "position"
    version: ClassVar[int] = (
        5  # 5, 4, 3: other fills and limits; 2: the fill is judged, shadows leave, cut objects stay at their border
    )
    later: ClassVar[tuple[str, ...]] = ("grounded", "faithful")
    words: ClassVar[str] = "moving the object"
    rate: float | None = None  # zoom to this rate first; ImageNet-E's release does so at 0.05
    inside_crop: bool = False  # stay inside the central square that models crop to
    grounded: bool = False  # feet on the ground where that can be told, a contact shadow, in the light of the place
    faithful: bool = False  # ImageNet-E's tolerance of 0.015 for the rate, as in `size`

    def __post_init__(self) -> None:
        check_rate(self.rate)

    @property
    def level(self) -> str:
        """The word random, with the rate where there is one: "random@0.05"."""
        return "random" if self.rate is None else f"random@{self.rate:g}"

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """The object at the same size where it stood; the original where the size is kept."""
        return reference_at_rate(level)

    @classmethod
    def crossed(cls, name: str, level: str) -> tuple[EditLevel, EditLevel] | None:
        """The size alone, and the edit at the object's own size."""
        return cross_with_size(name, level)

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """The object at the same size where it stood."""
        return require_size(self.rate, self.grounded, self.faithful)

    @property
    def shows_fill(self) -> bool:
        """The object leaves its place."""
        return True

    @property
    def moves_object(self) -> bool:
        """It does."""
        return True

    def check_subject(self, subject: Subject) -> None:
        """Raises `Unusable` where what the object hangs on would stay behind."""
        if self.grounded:
            check_whole(subject)
            check_cutout(subject)

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Draw a place and move the object there."""
        cut = subject.cutout
        if len(subject.cut_sides) > 1:
            refuse_cut(subject.cut_sides, "moving it")
        matrix, box = _zoom_object(cut, self.rate, subject.cut_sides, self.faithful)
        height, width = cut.alpha.shape
        side = round(CROP * min(height, width)) if self.inside_crop else None
        across = _possible_starts(width, side or width, box.width)
        down = _possible_starts(height, side or height, box.height)
        if subject.cut_sides in (("left",), ("right",)):  # along the border that cuts the object
            across = range(box.left, box.left + 1)
        elif subject.cut_sides:
            down = range(box.top, box.top + 1)
        elif self.grounded:
            down = _keep_on_ground(down, highest_foot(subject) - box.height)
        _check_room(len(across) > 1 or len(down) > 1, box)
        draws = ((across[rng.integers(len(across))], down[rng.integers(len(down))]) for _ in range(DRAWS))
        left, top = _choose_on_ground(subject, matrix, box, draws) if self.grounded else next(draws)
        matrix[:, 2] += (left - box.left, top - box.top)
        if self.grounded:
            return place_in_scene(subject, matrix)
        return Composition(Placed(subject.object_layer, matrix, Plane(subject.visible_background)))


@dataclass(frozen=True)
class PositionGrid(ComposedEdit):
    """Move the object to the middle of one cell of a grid: all cells together give a map of accuracy over places."""

    attribute: ClassVar[Attribute] = "position"
    version: ClassVar[int] = (
        5  # 5, 4, 3: other fills and limits; 2: the fill is judged, shadows leave, cut objects stay at their border
    )
    later: ClassVar[tuple[str, ...]] = ("grounded",)
    row: int = 1  # from the top, the first is 1
    column: int = 1  # from the left
    count: int = 3  # cells along each side
    rate: float | None = None  # zoom to this rate first, so that the object fits into every cell
    grounded: bool = False  # a contact shadow where the foot comes to the ground, in the light of the place

    def __post_init__(self) -> None:
        check_rate(self.rate)
        if not (1 <= self.row <= self.count and 1 <= self.column <= self.count):
            raise UserError(
                f"row, column: expected 1 to {self.count}, the count of cells, got {self.row} and {self.column}"
            )

    @property
    def picture_version(self) -> int:
        """Grounded pictures are newer: before, they took ImageNet-E's tolerance and the box of one piece."""
        return self.version + self.grounded

    @property
    def level(self) -> str:
        """Row and column of the cell: "1/3,2/3", with the rate where there is one: "1/3,2/3@0.05"."""
        cell = f"{self.row}/{self.count},{self.column}/{self.count}"
        return cell if self.rate is None else f"{cell}@{self.rate:g}"

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        cell = _CELL.fullmatch(level)
        if not cell:
            return f"moving the object ({level})" if level else "moving the object"
        return f"moving the object to row {cell[1]} of {cell[2]}, column {cell[3]} of {cell[4]}"

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """The object at the same size where it stood; the original where the size is kept."""
        return reference_at_rate(level)

    @classmethod
    def crossed(cls, name: str, level: str) -> tuple[EditLevel, EditLevel] | None:
        """The size alone, and the edit at the object's own size."""
        return cross_with_size(name, level)

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """The object at the same size where it stood."""
        return require_size(self.rate, self.grounded)

    @property
    def shows_fill(self) -> bool:
        """The object leaves its place."""
        return True

    @property
    def moves_object(self) -> bool:
        """It does."""
        return True

    def check_subject(self, subject: Subject) -> None:
        """Raises `Unusable` where what the object hangs on would stay behind."""
        if self.grounded:
            check_whole(subject)
            check_cutout(subject)

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Centre the object's box in the cell, as far as it fits into the picture."""
        refuse_cut(subject.cut_sides, "moving it to another place")
        cut = subject.cutout
        matrix, box = _zoom_object(cut, self.rate, ())
        height, width = cut.alpha.shape
        _check_room(box.width < width or box.height < height, box)
        left = _clamp_start(width, box.width, (self.column - 0.5) / self.count)
        top = _clamp_start(height, box.height, (self.row - 0.5) / self.count)
        matrix[:, 2] += (left - box.left, top - box.top)
        if self.grounded:
            return place_in_scene(subject, matrix)
        return Composition(Placed(subject.object_layer, matrix, Plane(subject.visible_background)))


def _zoom_object(
    cut: Cutout, rate: float | None, sides: Sequence[Side], faithful: bool = False
) -> tuple[Matrix, BoundingBox]:
    """The zoom to the rate, if one is asked for, and the object's box after it."""
    if rate is None:
        return zoom((0, 0), 1), object_box(cut.alpha, faithful)
    matrix = zoom_to_rate(cut.alpha, rate, faithful, anchor_point(cut.alpha, sides) if sides else None)
    return matrix, object_box(place_alpha(cut.alpha, matrix), faithful)


def _choose_on_ground(
    subject: Subject, matrix: Matrix, box: BoundingBox, draws: Iterator[tuple[int, int]]
) -> tuple[int, int]:
    """The first of the drawn upper left corners at which an object that stands is on ground as it was."""
    if not stands_on_ground(subject):
        return next(draws)
    ground = FootGround.of(subject)
    foot, scale = map_points(np.vstack([matrix, (0, 0, 1)]), [ground.foot])[0], abs(float(matrix[0, 0]))
    for left, top in draws:
        if ground.suits((float(foot[0]) + left - box.left, float(foot[1]) + top - box.top), scale):
            return left, top
    raise Unusable("elsewhere the object's foot would come to another kind of ground than the one on which it stood")


def _keep_on_ground(starts: range, highest: float) -> range:
    """The starts at which the foot is on the ground; the lowest one where none is."""
    return range(min(max(starts.start, math.ceil(highest)), starts.stop - 1), starts.stop)


def _check_room(enough: bool, box: BoundingBox) -> None:
    if not enough:
        raise Unusable(f"the object ({box.width} x {box.height} pixels) is as large as the picture: no room to move")


def _clamp_start(length: int, extent: int, middle: float) -> int:
    """The start of an extent centred at a share of the length, as far as it fits."""
    return int(np.clip(round(middle * length - extent / 2), 0, max(0, length - extent)))


def _possible_starts(length: int, view: int, extent: int) -> range:
    """The starts at which the object lies inside the middle `view` of a side; the centred one where it does not fit."""
    first, free = (length - view) // 2, view - extent
    if free < 0:
        return range(first + free // 2, first + free // 2 + 1)
    return range(first, first + free + 1)
