"""What a notebook shows of an edit: demo photos before and after it."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import is_cached
from counterfoil.edits.edit_protocol import Edit, Supplied, to_kebab
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.picture_strip import render_strip
from counterfoil.sources.demo_photos import BUNDLES, DemoSource
from counterfoil.types import Picture

_PHOTOS = ("n01608432/fffffff381c98080_0021.png", "n02027492/ffc0f7ff000043ff_0140.png")  # small, whole objects
_DONOR = "n02422699/ffffff7f34180000_0352.png"
_SIDE = 256  # pixels of the longer side: the edit takes a fraction of a second


def render_edit(edit: Edit) -> str:
    """The edit's settings, and demo photos before and after it; none where they would have to be fetched."""
    title = f"{to_kebab(type(edit).__name__)}: {edit.attribute}, level {edit.level}"
    if edit.needs.surrogate or edit.needs.gpu:
        return render_strip(title, [], [str(edit), "It asks a model for its pictures: cf.variants shows them."])
    if not all(map(is_cached, BUNDLES)):
        return render_strip(title, [], [str(edit), "Pictures are shown here once the demo photos are fetched."])
    return render_strip(title, list(_make_pictures(edit)), [str(edit)])


def _make_pictures(edit: Edit) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    donor = Subject(_read(_DONOR))
    supplied = Supplied(donors=(donor,) * edit.needs.candidates, donor_labels=(_DONOR,) * edit.needs.candidates)
    for name in _PHOTOS:
        picture = _read(name)
        yield "photo", picture.image
        subject = Subject(picture)
        try:
            chosen = edit.choose(0).resolve(subject, supplied).edit
            yield f"level {edit.level}", chosen.apply(subject, np.random.default_rng(0), supplied).image
        except Unusable as error:
            yield f"refused: {error}", np.full((_SIDE, _SIDE, 3), 235, np.uint8)


def _read(name: str) -> Picture:
    """A demo photo with its mask, small."""
    source = DemoSource()
    image, mask = source.read(next(sample for sample in source.samples()[0] if sample.id == name))
    assert mask is not None  # every demo photo has one
    scale = _SIDE / max(image.shape[:2])
    small, outline = (
        np.asarray(cv2.resize(array, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), np.uint8)
        for array in (image, mask)
    )
    return Picture(small, outline)
