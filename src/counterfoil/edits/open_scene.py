"""Open ground, or a part of another photo that shows nothing of its object: an object can be shown there at any place.

What an object loses when it is small, moved or turned in such a scene is measured against the same object in the same
scene as it was in its photo: no hole has to be filled, neither the object's own nor that of the photo which lends the
scene.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import ObjectLayer
from counterfoil.edits.cutout import Cutout, copy_read_only, paste
from counterfoil.edits.donor_scene import (
    MOST_OTHER,
    OTHER_OBJECTS,
    SALIENT,
    OtherGround,
    SceneWindow,
    check_whole,
    classify_support,
    find_foot,
    find_frame,
    find_ground,
    find_rest,
    is_open_air,
)
from counterfoil.edits.geometry import object_box
from counterfoil.edits.grass import hide_in_grass, stands_in_grass
from counterfoil.edits.ground_view import draw_ground
from counterfoil.edits.scene import USUAL, change_light, darken_foot, find_ground_line, measure_contact_shadow
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.object_mask import object_trace
from counterfoil.types import Picture

ZOOMS = tuple(1.12**step for step in range(12))  # beyond what covers the picture
MOST_ENLARGED = 2.5  # pixels of the scene by those of the photo that lends it: softer ground does not look real
STEPS = 17  # places of a window along each side
FOOT_COST = 0.5  # of a foot that is a whole height of the photo away from where the donor's own object stood
ZOOM_COST = 0.3  # of a doubled size
GRASS = "grass"  # the ground on which an object that stood in grass stands
MOST_SALIENT = 0.1  # of a scene by itself: an egg or a leg that a small object would stand beside

Bytes = NDArray[np.uint8]


class _Place(NamedTuple):
    """A window of a photo in which nothing of its object is seen."""

    window: SceneWindow
    zoom: float


def check_open_scene(donor: Subject) -> None:
    """Raises `Unusable` where no part of a photo can be a scene: its object is everywhere."""
    if not donor.once(_has_room):
        raise Unusable("no part of the donor's photo is large enough and without its object")
    check_whole(donor)  # else the rest of its object is seen


def check_scene_for(subject: Subject, donor: Subject) -> None:
    """Raises `Unusable` where a photo has no scene for this object, or another object is seen there."""
    for measure, most in ((_measure_salience, MOST_SALIENT), (_measure_other_objects, OTHER_OBJECTS)):
        share = subject.once_with(donor, measure)
        if share > most:
            raise Unusable(f"the donor's photo shows another object, on {share:.1%} of the picture")


def find_open_scene(subject: Subject, donor: Subject) -> SceneWindow:
    """The part of a photo that suits an object best; raises `Unusable` where none does."""
    return subject.once_with(donor, _find_open_scene)


def stand_in_scene(subject: Subject, donor: Subject, window: SceneWindow) -> Subject:
    """The object as it was in its photo, in the light of a scene and with its shadow on the scene's ground."""
    return subject.once_with(donor, _Stand(window))


@dataclass(frozen=True)
class _Stand:
    """The work of `stand_in_scene`; a subject keeps its result by the window."""

    window: SceneWindow

    def __call__(self, subject: Subject, donor: Subject) -> Subject:
        return _stand_before(subject, _show(subject, donor, self.window), _find_line(subject, donor, self.window))


class GroundScene(NamedTuple):
    """A view of open ground."""

    material: str
    view: int  # its number


def stand_on_ground(subject: Subject, scene: GroundScene) -> Subject:
    """The object as it was in its photo, in the light of open ground and with its shadow on it."""
    return subject.once(_StandOnGround(scene))


@dataclass(frozen=True)
class _StandOnGround:
    """The work of `stand_on_ground`; a subject keeps its result by the scene."""

    scene: GroundScene

    def __call__(self, subject: Subject) -> Subject:
        height, width = subject.picture.alpha.shape
        line = None if classify_support(subject) == "air" else 0.0  # there is ground everywhere
        ground = draw_ground(self.scene.material, self.scene.view, (height, width))
        cut = subject.cutout
        if subject.tools.refine and self.scene.material == GRASS and stands_in_grass(subject):
            cut = cut._replace(alpha=copy_read_only(hide_in_grass(cut.alpha, self.scene.view)))
        return _stand_before(subject, ground, line, tinted=False, cut=cut)  # a red cloth before made no red light


def _stand_before(
    subject: Subject, scene: Bytes, line: float | None, tinted: bool = True, cut: Cutout | None = None
) -> Subject:
    """The object as it was before a scene, below whose `line` it stands; `tinted`: in part of its colour too."""
    subject.check_background()
    cut, support = subject.cutout if cut is None else cut, classify_support(subject)
    clear = (~object_trace(cut.alpha)).astype(np.uint8)
    old, new = (np.array(cv2.mean(image, clear)[:3], np.float32) for image in (subject.picture.image, scene))
    if not tinted:
        old, new = (np.full(3, light.mean(), np.float32) for light in (old, new))
    lit = change_light(ObjectLayer.of(cut), old, new).draw()
    shadow = subject.once(measure_contact_shadow)
    shadow = max(USUAL, shadow) if support == "ground" else shadow
    before = darken_foot(scene, cut.alpha, shadow).draw() if shadow > 0 else scene
    return subject.derive(
        Picture(paste(lit, before), cut.alpha.copy()),
        behind=scene,
        cut=lit,
        known={measure_contact_shadow: shadow, find_ground_line: line},
    )


def _find_line(subject: Subject, donor: Subject, window: SceneWindow) -> float | None:
    """The row of the picture below which an object of this kind stands on the scene's ground; None: anywhere."""
    support, height = classify_support(subject), float(subject.picture.alpha.shape[0])
    if support == "air":
        return None
    ground = find_ground(donor)
    if ground is not None:
        return (ground - window.top) / window.height * height
    box = object_box(subject.cutout.alpha)
    return float(box.top + box.height - 1)  # nothing tells: where it stands already


def _measure_salience(subject: Subject, donor: Subject) -> float:
    """The share of a scene by itself that a network finds salient; 0 where fills are not judged."""
    find_salience = donor.tools.fills.find_salience
    if find_salience is None:
        return 0.0
    scene = _show(subject, donor, find_open_scene(subject, donor))
    return donor.once_stored(("salience of a scene", scene), lambda: float((find_salience(scene) > SALIENT).mean()))


def _show(subject: Subject, donor: Subject, window: SceneWindow) -> Bytes:
    """The scene at the size of the object's picture, taken from the lending photo at its own size."""
    return np.asarray(window.crop(donor.photo.image, subject.picture.alpha.shape), np.uint8)


def _measure_other_objects(subject: Subject, donor: Subject) -> float:
    """The share of a scene, beside the object in it, that a network finds salient; 0 where fills are not judged."""
    find_salience = donor.tools.fills.find_salience
    if find_salience is None:
        return 0.0
    shown, hard = stand_in_scene(subject, donor, find_open_scene(subject, donor)).picture.image, subject.hard_object

    def measure() -> float:
        salience = find_salience(shown)
        clear = 1 - cv2.resize(hard.astype(np.float32), salience.shape[::-1], interpolation=cv2.INTER_AREA)
        return float(((salience > SALIENT) * clear).mean())

    return donor.once_stored(("other objects in a scene", shown, hard), measure)


def _has_room(donor: Subject) -> bool:
    """Whether some square window without the object has enough pixels for a picture at the donor's working size."""
    height, width = donor.picture.alpha.shape
    side = min(height, width)
    return any(True for _ in _list_places(donor, (side, side)))


def _find_open_scene(subject: Subject, donor: Subject) -> SceneWindow:
    support, ground = classify_support(subject), find_ground(donor)
    if support == "ground" and ground is None:
        raise Unusable("the donor's photo shows no ground that the object could stand on")
    if support == "air" and not donor.once(is_open_air):
        raise Unusable("the object is in the air, the donor's photo shows more than that")
    others = OtherGround.of(donor, support)
    rest, foot, stood = find_rest(subject), find_foot(subject), min(1.0, find_foot(donor))
    best, least = None, np.inf
    for window, zoom in _list_places(donor, subject.picture.alpha.shape):
        if support == "ground" and ground is not None and window.top + window.height * rest < ground:
            continue
        away = abs(window.top + window.height * foot - stood) if support == "ground" else 0.0
        cost = ZOOM_COST * float(np.log2(zoom)) + FOOT_COST * away
        if cost < least and others.measure(window) <= MOST_OTHER[support]:
            best, least = window, cost
    if best is None:
        raise Unusable("no part of the donor's photo without its object has ground alone where the object stands")
    return best


def _list_places(donor: Subject, shape: tuple[int, ...]) -> Iterator[_Place]:
    """The windows of a photo, in the aspect of a picture, that show nothing of its object and are large enough."""
    height, width = donor.hole.shape
    sums = donor.once(_sum_hole)
    inside = donor.once(find_frame)
    cover = max(shape[0] / (inside.height * height), shape[1] / (inside.width * width))
    for zoom in ZOOMS:
        wide, high = shape[1] / (cover * zoom * width), shape[0] / (cover * zoom * height)
        if shape[0] > MOST_ENLARGED * high * donor.photo.alpha.shape[0]:
            return
        across, down = _Starts.spread(inside.left, inside.width, wide), _Starts.spread(inside.top, inside.height, high)
        for row, column in np.argwhere(_count_hole(sums, across, down) == 0).tolist():
            yield _Place(SceneWindow(across.starts[column], down.starts[row], across.extent, down.extent), zoom)


class _Starts(NamedTuple):
    """Where windows of one extent begin along a side, as shares of it."""

    starts: list[float]
    extent: float

    @classmethod
    def spread(cls, first: float, free: float, extent: float) -> _Starts:
        """Windows spread evenly over what is free."""
        starts = np.linspace(first, first + free - extent, STEPS).tolist()
        return cls([round(start, 4) for start in starts], round(extent, 4))

    def locate(self, length: int) -> tuple[list[int], list[int]]:
        """The pixels at which the windows begin and end along a side of this length."""
        ends = [math.ceil((start + self.extent) * length) for start in self.starts]
        return [max(0, int(start * length)) for start in self.starts], [min(length, end) for end in ends]


def _sum_hole(donor: Subject) -> NDArray[np.int32]:
    return np.asarray(cv2.integral(donor.hole.astype(np.uint8)), np.int32)


def _count_hole(sums: NDArray[np.int32], across: _Starts, down: _Starts) -> NDArray[np.int32]:
    """The pixels of the hole that each window shows, (windows down, windows across)."""
    height, width = (length - 1 for length in sums.shape)
    (tops, bottoms), (lefts, rights) = down.locate(height), across.locate(width)
    upper, lower = sums[tops], sums[bottoms]
    return np.asarray(lower[:, rights] - upper[:, rights] - lower[:, lefts] + upper[:, lefts], np.int32)
