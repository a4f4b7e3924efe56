"""Whether an edit changed anything that can be seen: a picture like the one before would be counted as if edited.

Hue on a grey background, less complexity of a plain wall, or no shadow where there was none change nothing. Such
pictures are refused, and counted with what was refused.
"""

from __future__ import annotations

from collections.abc import Sequence

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
_ROWS = 4  # a fourth of the rows at a time: few may show enough change by themselves


def check_change(edit: Edit, subject: Subject, made: Picture) -> None:
    """Raises `Unusable` where an edit changed less than its `least_change`."""
    if not edit.least_change:
        return
    enough = max(edit.least_change, _CLEARLY * (edit.attribute == "background"))
    changed = _measure_until(subject.picture, made.image, edit.attribute, enough)
    if _may_be_of_pasting(edit, changed):
        changed = min(changed, _change_since_control(edit, subject, made, changed))
    _refuse_little(edit, changed)


def list_compared(edit: Edit, subject: Subject) -> tuple[Bytes, ...]:
    """The pictures that one of the edit is compared with elsewhere: the photo and, where it matters, the control."""
    if not edit.least_change:
        return ()
    photo = subject.picture.image
    if edit.attribute != "background":
        return (photo,)
    try:
        return photo, subject.once(_paste_back)
    except Unusable:
        return (photo,)


def check_counts(edit: Edit, subject: Subject, changed: Sequence[int]) -> None:
    """As `check_change`, from the pixels that differ visibly from each of the pictures that `list_compared` gives."""
    if not changed:
        return
    since_photo, *since_control = (share_of_region(subject.picture, count, edit.attribute) for count in changed)
    if _may_be_of_pasting(edit, since_photo):
        since_photo = min(since_photo, *since_control) if since_control else since_photo
    _refuse_little(edit, since_photo)


def _may_be_of_pasting(edit: Edit, changed: float) -> bool:
    """Whether a change may be one around the object, by cutting out and pasting back, which is not the edit's doing."""
    return edit.attribute == "background" and edit.least_change <= changed < _CLEARLY


def _refuse_little(edit: Edit, changed: float) -> None:
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
    return _measure_until(before, after, attribute, np.inf)


def _measure_until(before: Picture, after: Bytes, attribute: Attribute, enough: float) -> float:
    """The change, or that of so many rows that it is enough: of every fourth row first, then of those below them."""
    if before.image.shape != after.shape:
        return 1.0
    region, changed = _measure_region(before, attribute), 0
    for first in range(_ROWS):
        changed += _count_changed(before.image[first::_ROWS], after[first::_ROWS], attribute)
        if changed / region >= enough:
            break
    return float(changed / region)


def share_of_region(before: Picture, changed: int, attribute: Attribute) -> float:
    """Changed pixels as a share of the background, for a corruption of the picture, else of the object."""
    return float(changed / _measure_region(before, attribute))


def _measure_region(before: Picture, attribute: Attribute) -> int:
    inside = np.count_nonzero(hard_object(before.alpha))
    region = {"background": before.alpha.size - inside, "corruption": before.alpha.size}.get(attribute, inside)
    return max(1, int(region))


def _count_changed(before: Bytes, after: Bytes, attribute: Attribute) -> int:
    if not before.size:  # fewer rows than are taken at a time
        return 0
    before, after = np.ascontiguousarray(before), np.ascontiguousarray(after)
    same = np.asarray(cv2.inRange(cv2.absdiff(before, after), (0, 0, 0), (VISIBLE_STEP - 1,) * 3), np.uint8)
    if attribute != "corruption":
        same |= _find_alike(before, after)
    return int(same.size - np.count_nonzero(same))


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
