"""A second object in the picture: the cut-out of another photo, beside the object or behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import paste
from counterfoil.edits.donor_object import (
    check_donor_object,
    check_ground_room,
    place_donor,
    place_foot_at,
    stands_on_border,
)
from counterfoil.edits.edit_protocol import Edit, Needs, Supplied
from counterfoil.edits.geometry import BoundingBox, object_box
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.object_mask import hard_object
from counterfoil.types import Attribute, Picture

Bytes = NDArray[np.uint8]
GAP = 0.02  # between the two objects, as a share of the picture's shorter side
SEEN = 0.35  # share of the second object that must be visible behind the first
BEYOND = 0.25  # share of its width by which a second object may be cut by the picture's border
LEAST = 0.2  # of the size that is asked for: the second object may be smaller where there is little room
REARWARD = 0.06  # how much higher an object that stands behind has its foot, as a share of the first one's height
_PLACES = {"beside": "beside it", "behind": "behind it"}


@dataclass(frozen=True)
class SecondObject(Edit):
    """Put the object of another photo beside the object or behind it; the object itself is untouched."""

    attribute: ClassVar[Attribute] = "second-object"
    version: ClassVar[int] = 3  # 3: nor in water or below what is in the air; 2: not where it would hang in the air
    donors: Literal["other", "same"] = "other"
    place: Literal["beside", "behind"] = "beside"
    size: float = 0.8  # of the second object: its area as a share of the first one's

    def __post_init__(self) -> None:
        if not 0 < self.size <= 4:
            raise UserError(
                f"size: expected a share of the object's area, more than 0 and at most 4, got {self.size:g}"
            )

    @property
    def level(self) -> str:
        """Class and place of the second object: "other beside"."""
        return f"{self.donors} {self.place}"

    @property
    def needs(self) -> Needs:
        """The photo whose object is taken."""
        return Needs(donor=self.donors)

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        donors, _, place = level.partition(" ")
        if donors not in ("other", "same") or place not in _PLACES:
            return f"a second object ({level})" if level else "a second object"
        return f"an object of {'another' if donors == 'other' else 'the same'} class {_PLACES[place]}"

    def check_donor(self, donor: Subject) -> None:
        """Raises `Unusable` where the donor's object is cut by its photo."""
        check_donor_object(donor)

    def check_fit(self, subject: Subject, donor: Subject, exposed: bool = False) -> None:
        """Raises `Unusable` where the donor's object would hang in the air."""
        check_ground_room(subject, donor)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Place the donor's object on the ground line of the object."""
        subject.check_background()
        donor, alpha = supplied.donor, subject.cutout.alpha
        self.check_donor(donor)
        other, own = object_box(donor.cutout.alpha), object_box(alpha)
        areas = [float(np.count_nonzero(hard_object(each.cutout.alpha))) for each in (subject, donor)]
        scale = (self.size * areas[0] / areas[1]) ** 0.5
        ground = float(alpha.shape[0]) if stands_on_border(donor) else float(own.top + own.height)
        to_right = bool(rng.integers(2))
        stand = self._fit_next_to if self.place == "beside" else self._fit_behind
        scale, foot = stand(subject, BoundingBox(0, 0, other.width, other.height), (scale, ground), to_right)
        second = place_donor(subject, donor, place_foot_at(other, scale, foot))
        if self.place == "behind":
            _check_visible(second.alpha, alpha)
        return Picture(_keep_object(subject, second), alpha.copy())

    def _fit_next_to(
        self, subject: Subject, other: BoundingBox, wanted: tuple[float, float], to_right: bool
    ) -> tuple[float, tuple[float, float]]:
        """Scale and foot of an object that fits beside the object, on the side where it can be larger."""
        height, width = subject.cutout.alpha.shape
        own, gap, (scale, ground) = object_box(subject.cutout.alpha), GAP * min(height, width), wanted
        rooms = {True: width - (own.left + own.width) - gap, False: own.left - gap}
        seen = (1 - BEYOND) * other.width
        fits = {side: min(scale, room / seen, ground / other.height) for side, room in rooms.items()}
        side = to_right if fits[to_right] == fits[not to_right] else fits[True] > fits[False]
        if fits[side] < LEAST**0.5 * scale:
            raise Unusable("no room beside the object for a second one of the size that is asked for")
        reach = gap + other.width * fits[side] / 2
        return fits[side], (own.left + own.width + reach if side else own.left - reach, ground)

    def _fit_behind(
        self, subject: Subject, other: BoundingBox, wanted: tuple[float, float], to_right: bool
    ) -> tuple[float, tuple[float, float]]:
        """Scale and foot of an object whose outer half shows beyond the object, on the side with more room."""
        height, width = subject.cutout.alpha.shape
        own, (scale, ground) = object_box(subject.cutout.alpha), wanted
        if ground < height:
            ground -= REARWARD * own.height
        scale = min(scale, ground / other.height, width / other.width)
        reach = other.width * scale / 2
        feet = {True: own.left + own.width, False: own.left}
        hidden = {side: max(0.0, foot + reach - width, reach - foot) for side, foot in feet.items()}
        side = to_right if hidden[to_right] == hidden[not to_right] else hidden[True] < hidden[False]
        return scale, (float(np.clip(feet[side], reach, max(reach, width - reach))), ground)


def _check_visible(second: Bytes, alpha: Bytes) -> None:
    total = float(second.sum(dtype=np.float64))
    visible = float((second * (1 - alpha / np.float32(255))).sum(dtype=np.float64)) / max(total, 1.0)
    if visible < SEEN:
        raise Unusable(f"{visible:.0%} of the second object would show behind the object, {SEEN:.0%} are needed")


def _keep_object(subject: Subject, second: Picture) -> Bytes:
    """The second object and its shadow under the object; other pixels stay as photographed."""
    changed = (second.image != subject.picture.image).any(axis=2)
    return np.where(changed[..., None], paste(subject.cutout, second.image), subject.picture.image)
