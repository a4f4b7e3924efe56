"""Whether an edit changed anything that can be seen: a picture like the one before would be counted as if edited.

Hue on a grey background, less complexity of a plain wall, or no shadow where there was none change nothing. Such
pictures are refused, and counted with what was refused.
"""

from __future__ import annotations

import cv2
import numpy as np

from counterfoil.edits.edit_protocol import Edit
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.object_mask import Bytes, hard_object
from counterfoil.types import Attribute, Picture

VISIBLE_STEP = 8  # levels of 255 in one channel by which a pixel has changed
VISIBLE_DISTANCE = 6  # in CIE Lab, by which it has visibly changed: eight levels of blue on black are not seen
_SQUARES = (np.arange(256, dtype=np.float32)[:, None] * np.array((100 / 255, 1, 1), np.float32)) ** 2  # of L*, a*, b*
_CLEARLY = 0.5  # of the background: a larger change is not that of cutting and pasting alone


def check_change(edit: Edit, subject: Subject, made: Picture) -> None:
    """Raises `Unusable` where an edit changed less than its `least_change`."""
    if not edit.least_change:
        return
    changed = measure_change(subject.picture, made.image, edit.attribute)
    if edit.attribute == "background" and edit.least_change <= changed < _CLEARLY:
        # Cutting out and pasting back changes pixels around the object, which are not the edit's doing.
        changed = min(changed, _change_since_control(edit, subject, made, changed))
    if changed < edit.least_change:
        raise Unusable(
            f"the edit hardly changes the picture: {changed:.1%} of {_name_region(edit.attribute)} by"
            f" {VISIBLE_STEP} levels or more{_name_distance(edit.attribute)}, {edit.least_change:.1%} is needed"
        )


def measure_change(before: Picture, after: Bytes, attribute: Attribute) -> float:
    """Visibly changed pixels as a share of the background, for a corruption of the picture, else of the object.

    It is above 1 where more than that changes. Corruptions are doses, of which a low one may be hardly seen: for them
    the change in levels is enough.
    """
    if before.image.shape != after.shape:
        return 1.0
    after = np.ascontiguousarray(after)
    same = np.asarray(cv2.inRange(cv2.absdiff(before.image, after), (0, 0, 0), (VISIBLE_STEP - 1,) * 3), np.uint8)
    if attribute != "corruption":
        same |= _find_alike(before.image, after)
    inside = np.count_nonzero(hard_object(before.alpha))
    region = {"background": before.alpha.size - inside, "corruption": before.alpha.size}.get(attribute, inside)
    return float((before.alpha.size - np.count_nonzero(same)) / max(1, region))


def _find_alike(first: Bytes, second: Bytes) -> Bytes:
    """255 where the colours of two pictures are nearer than what is seen, in CIE Lab to about one unit; else 0."""
    labs = [cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2LAB) for image in (first, second)]
    squares = cv2.transform(cv2.LUT(cv2.absdiff(*labs), _SQUARES[None]), np.ones((1, 3), np.float32))
    return np.asarray(np.where(np.asarray(squares) < VISIBLE_DISTANCE**2, 255, 0), np.uint8)


def _change_since_control(edit: Edit, subject: Subject, made: Picture, changed: float) -> float:
    """The change against the photo whose object was cut out and pasted back; as given where that cannot be made."""
    try:
        control = subject.once(_paste_back)
    except Unusable:
        return changed
    return measure_change(Picture(control, subject.picture.alpha), made.image, edit.attribute)


def _paste_back(subject: Subject) -> Bytes:
    return subject.on_background(subject.background).image


def _name_distance(attribute: Attribute) -> str:
    return "" if attribute == "corruption" else f" and {VISIBLE_DISTANCE} units of CIE Lab"


def _name_region(attribute: Attribute) -> str:
    return {"background": "the background", "corruption": "it"}.get(attribute, "the object's area")
