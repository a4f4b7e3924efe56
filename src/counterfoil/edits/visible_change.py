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

VISIBLE_STEP = 8  # levels of 255 in one channel by which a pixel has visibly changed
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
            f" {VISIBLE_STEP} levels or more, {edit.least_change:.0%} is needed"
        )


def measure_change(before: Picture, after: Bytes, attribute: Attribute) -> float:
    """Visibly changed pixels as a share of the background, for a corruption of the picture, else of the object.

    It is above 1 where more than that changes.
    """
    if before.image.shape != after.shape:
        return 1.0
    same = cv2.inRange(cv2.absdiff(before.image, np.ascontiguousarray(after)), (0, 0, 0), (VISIBLE_STEP - 1,) * 3)
    inside = np.count_nonzero(hard_object(before.alpha))
    region = {"background": before.alpha.size - inside, "corruption": before.alpha.size}.get(attribute, inside)
    return float((before.alpha.size - np.count_nonzero(same)) / max(1, region))


def _change_since_control(edit: Edit, subject: Subject, made: Picture, changed: float) -> float:
    """The change against the photo whose object was cut out and pasted back; as given where that cannot be made."""
    try:
        control = subject.once(_paste_back)
    except Unusable:
        return changed
    return measure_change(Picture(control, subject.picture.alpha), made.image, edit.attribute)


def _paste_back(subject: Subject) -> Bytes:
    return subject.on_background(subject.background).image


def _name_region(attribute: Attribute) -> str:
    return {"background": "the background", "corruption": "it"}.get(attribute, "the object's area")
