"""Any variant of any sample as pixels: read, mask, reduce, edit."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit import edit_named
from counterfoil.edit.painted import PaintedAdversarial
from counterfoil.errors import Unusable
from counterfoil.pipeline.attacking import painted_against
from counterfoil.types import AnyEdit, DonorEdit, Picture, Sample, Source, Variant

_BYTES_IN_MEMORY = 384 * 2**20  # of samples and donors held ready; bounds memory whatever the number of photos

Segmenter = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]


@dataclass(frozen=True)
class Ready:
    """A sample read and masked: the photo as it is, and the picture that edits work on."""

    photo: Picture
    picture: Picture

    @property
    def size(self) -> int:
        """Bytes of pixels; a photo that was not reduced is held once."""
        planes = {id(plane): plane.nbytes for plane in (*self.photo, *self.picture)}
        return sum(planes.values())


@dataclass(frozen=True)
class Studio:
    """Makes variants; several threads may use one studio."""

    source: Source
    samples: Mapping[str, Sample]
    working_size: int | None
    segmenter: Segmenter
    _ready: OrderedDict[str, Ready] = field(default_factory=OrderedDict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def ready(self, sample_id: str) -> Ready:
        """The sample's pixels, from memory where it was used lately; raises `Unusable` with the reason."""
        with self._lock:
            if sample_id in self._ready:
                self._ready.move_to_end(sample_id)
                return self._ready[sample_id]
        made = self._read(self.samples[sample_id])
        with self._lock:
            self._ready[sample_id] = made
            held = sum(ready.size for ready in self._ready.values())
            while held > _BYTES_IN_MEMORY and len(self._ready) > 1:
                held -= self._ready.popitem(last=False)[1].size
        return made

    def _read(self, sample: Sample) -> Ready:
        image, mask = self.source.read(sample)
        photo = Picture(image, self.segmenter(image) if mask is None else mask)
        if not (photo.alpha >= 128).any():
            raise Unusable("the mask is empty")
        return Ready(photo, reduced(photo, self.working_size))

    def make(self, variant: Variant) -> Picture:
        """The variant's pixels; raises `Unusable` where the edit cannot apply."""
        ready = self.ready(str(variant.sample_id))
        if variant.attribute == "original":
            return ready.photo
        edit = _edit(variant.edit, variant.settings)
        if isinstance(edit, PaintedAdversarial):
            return painted_against(edit, ready.picture, variant)
        rng = np.random.default_rng(variant.seed)
        if isinstance(edit, DonorEdit):
            return edit(ready.picture, rng, self._donor(str(variant.donor_id)))
        if getattr(edit, "from_photo", False):
            return reduced(edit(ready.photo, rng), self.working_size)
        return edit(ready.picture, rng)

    def _donor(self, sample_id: str) -> Picture:
        try:
            return self.ready(sample_id).picture
        except Unusable as error:
            raise Unusable(f"the donor {sample_id} cannot be used: {error}") from error


@lru_cache(maxsize=1024)
def _edit(name: str, settings: str) -> AnyEdit:
    return edit_named(name, json.loads(settings))


def reduced(picture: Picture, working_size: int | None) -> Picture:
    """The picture with its shorter side at the working size; smaller pictures stay as they are."""
    height, width = picture.alpha.shape
    if working_size is None or min(height, width) <= working_size:
        return picture
    scale = working_size / min(height, width)
    size = (round(width * scale), round(height * scale))
    trimap = set(np.unique(picture.alpha).tolist()) == {0, 128, 255}
    how = cv2.INTER_NEAREST if trimap else cv2.INTER_AREA  # "unknown" must not blend into a graded edge
    image = cv2.resize(picture.image, size, interpolation=cv2.INTER_AREA)
    return Picture(
        np.asarray(image, np.uint8), np.asarray(cv2.resize(picture.alpha, size, interpolation=how), np.uint8)
    )
