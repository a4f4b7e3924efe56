"""The object of a donor photo, whole enough to stand in another picture, and placed there with its contact shadow."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import Cutout, Matrix, place
from counterfoil.edits.donor_scene import classify_support, find_frame, find_ground, is_in_water
from counterfoil.edits.geometry import BoundingBox, object_box
from counterfoil.edits.photo_border import find_cut_sides, name_sides
from counterfoil.edits.scene import darken_foot, measure_contact_shadow
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.object_mask import object_trace
from counterfoil.types import Picture

LARGEST_SHARE = 0.6  # of the donor's photo: a larger object is a close view, of which much is missing
LARGEST_PIECE = 0.85  # of the object's area that must hang together
SMALLEST = 32  # pixels of the donor's object along its longer side
MOST_ENLARGED = 3.0  # times its size that a donor's object can be given without looking soft
EVENNESS = (0.6, 1.25)  # limits of the change of light, of whose root a donor's object gets that of its surroundings

Bytes = NDArray[np.uint8]


def check_donor_object(donor: Subject) -> None:
    """Raises `Unusable` where the donor's object cannot stand elsewhere: only the lower border may cut it."""
    cut = [side for side in find_cut_sides(donor.hard_object) if side != "bottom"]
    if cut:
        raise Unusable(f"the donor's object is cut by the {name_sides(cut)} of its photo")
    hard = donor.hard_object.astype(np.uint8)
    share = float(hard.mean())
    if share > LARGEST_SHARE:
        raise Unusable(f"the donor's object covers {share:.0%} of its photo, at most {LARGEST_SHARE:.0%} can be used")
    pieces = np.asarray(cv2.connectedComponentsWithStats(hard, connectivity=8)[2][1:])
    areas = pieces[:, cv2.CC_STAT_AREA]
    if len(areas) and areas.max() < LARGEST_PIECE * areas.sum():
        raise Unusable(f"the donor's object is in {len(areas)} pieces")
    box = object_box(donor.cutout.alpha)
    if max(box.width, box.height) < SMALLEST:
        raise Unusable(f"the donor's object has {box.width} x {box.height} pixels, {SMALLEST} are needed")


def check_ground_room(subject: Subject, donor: Subject) -> None:
    """Raises `Unusable` where the donor's object would hang in the air, stand on a frame or be enlarged too much."""
    areas = [np.count_nonzero(each.hard_object) for each in (subject, donor)]
    if areas[0] > MOST_ENLARGED**2 * areas[1]:
        raise Unusable(f"the donor's object would be enlarged more than {MOST_ENLARGED:g} times")
    frame = subject.once(find_frame)
    if frame.top + frame.height < 1:
        raise Unusable("the photo has a frame at its lower border, on which the donor's object would stand")
    support = classify_support(subject)
    if support == "ground" and is_in_water(subject):
        raise Unusable("the object may be in water, in which the donor's object would stand")
    if stands_on_border(donor) and support != "air":
        return
    if support == "air" and classify_support(donor) != "air":
        raise Unusable("the object is in the air, in which the donor's object would hang")
    if support == "ground" and find_ground(subject) is None:
        raise Unusable("the photo shows no ground that the donor's object could stand on")


def stands_on_border(donor: Subject) -> bool:
    """Whether the lower border cuts the donor's object, so that it can stand only on the border of another picture."""
    return "bottom" in find_cut_sides(donor.hard_object)


def match_light(donor: Subject, subject: Subject) -> Cutout:
    """The donor's object, as light as in its own photo relative to its background."""
    cut = donor.cutout
    own, new = (_median_light(each) for each in (donor, subject))
    gain = float(np.clip((new + 8) / (own + 8), *EVENNESS)) ** 0.5
    # By a power instead of a factor: nothing becomes white that was not.
    table = np.rint(255 * (np.arange(256) / 255) ** (1 - np.log2(gain))).astype(np.uint8)
    return Cutout(np.asarray(cv2.LUT(cut.image, table), np.uint8), cut.alpha, cut.background_share)


def _median_light(subject: Subject) -> float:
    """The median level of the background."""
    gray = cv2.cvtColor(subject.picture.image, cv2.COLOR_RGB2GRAY)
    clear = gray[~object_trace(subject.cutout.alpha)]
    return float(np.median(clear if clear.size else gray))


def place_donor(subject: Subject, donor: Subject, matrix: Matrix) -> Picture:
    """The donor's object over the picture, with a contact shadow where the picture's own object has one; its alpha."""
    lit = match_light(donor, subject)
    placed = place(lit, matrix, subject.picture.image)
    strength = 0.0 if stands_on_border(donor) else subject.once(measure_contact_shadow)
    if strength == 0:
        return placed
    image, on_object = subject.picture.image, object_trace(subject.cutout.alpha)  # the shadow falls on the ground alone
    ground = np.where(on_object[..., None], image, darken_foot(image, placed.alpha, strength).draw())
    return place(lit, matrix, ground)


def place_foot_at(box: BoundingBox, scale: float, foot: tuple[float, float]) -> Matrix:
    """Scale an object and move it, so that the middle of its box's lower edge comes to the point `foot`."""
    middle, bottom = box.left + box.width / 2, box.top + box.height
    # Points count from the corner of the first pixel here, pixel centres lie at whole coordinates.
    return np.array(
        [
            [scale, 0, foot[0] - scale * middle + scale / 2 - 0.5],
            [0, scale, foot[1] - scale * bottom + scale / 2 - 0.5],
        ],
        np.float64,
    )
