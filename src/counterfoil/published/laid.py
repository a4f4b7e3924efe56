"""Foregrounds of ImageNet-9 laid on backgrounds: pictures of the Backgrounds challenge, made as they are read."""

from __future__ import annotations

import hashlib
import io
import json
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.evaluate import ModelWrapper
from counterfoil.published.archive import Archive
from counterfoil.published.pixels import pixels
from counterfoil.types import Exhibit, Model, Prediction, Variant

LAID_ON = "|"  # between the foreground's mask and the background in an exhibit's file
EVERY = "every background"  # in the place of one
_ROUNDS = (8, 16, 32, 64)  # pictures asked together: few at first, since most foregrounds fall early; the last goes on


@dataclass(frozen=True)
class Challenge(Archive):
    """Foregrounds on backgrounds; an exhibit's file names both."""

    files: Sequence[str] = field(default=(), repr=False)

    def size(self, at: int) -> int:
        """Bytes of a photo's file; pictures that are laid together have none."""
        return self.tree.sizes.get(self.files[at], 0)

    def read(self, exhibit: Exhibit) -> NDArray[np.uint8]:
        """The foreground's pixels where its mask is set, the background's elsewhere."""
        mask_file, laid, ground = exhibit.file.partition(LAID_ON)
        if not laid:
            return super().read(exhibit)
        photo, inside = self._foreground(mask_file)
        behind = self._picture(ground)
        if behind.shape != photo.shape:
            raise Unusable(f"photo and background differ in size: {photo.shape[:2]} and {behind.shape[:2]} pixels")
        return np.where(inside, photo, behind)

    def _foreground(self, mask_file: str) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The photo, and where in it the foreground is, in every channel."""
        photo, mask = self._picture(photo_of(mask_file)), _mask(self.tree.read(mask_file))
        if mask.shape != photo.shape[:2]:
            raise Unusable(f"photo and mask differ in size: {photo.shape[:2]} and {mask.shape} pixels")
        return photo, np.repeat(mask[:, :, None], 3, axis=2)  # laid out as the pixels are: three times as fast

    def _picture(self, file: str) -> NDArray[np.uint8]:
        return pixels(self.tree.read(file))


class Meeting(NamedTuple):
    """A foreground on one of its backgrounds."""

    ground: str  # the background's file
    image: NDArray[np.uint8]


@dataclass(frozen=True)
class EveryBackground(Challenge):
    """Foregrounds that each meet every background: one exhibit stands for all of its meetings."""

    grounds: Sequence[str] = field(default=(), repr=False)

    @cached_property
    def digest(self) -> str:
        """Hash over the backgrounds too: who survives some of them may fall on others."""
        met = [(file, self.tree.sizes[file]) for file in self.grounds]
        return hashlib.sha256(json.dumps([super().digest, met]).encode()).hexdigest()

    def read(self, exhibit: Exhibit) -> NDArray[np.uint8]:
        """A photo as it is, or the foreground on the first of the backgrounds that it meets."""
        if not exhibit.file.endswith(LAID_ON + EVERY):
            return super().read(exhibit)
        meeting = next(self.meetings(exhibit.variant), None)
        if meeting is None:
            raise Unusable("no background has the size of the photo")
        return meeting.image

    def meetings(self, variant: Variant) -> Iterator[Meeting]:
        """The foreground on one background after the other, in an order drawn by names; others' sizes are left out."""
        photo, inside = self._foreground(self._mask_of[variant.id])
        for file in sorted(self.backgrounds, key=lambda file: lot(str(variant.sample_id), file)):
            ground = self.backgrounds[file]
            if ground.shape == photo.shape:
                yield Meeting(file, np.where(inside, photo, ground))

    def adapt(self, model: Model) -> Model:
        """The model, asked about one background after the other."""
        _ = self.backgrounds  # decoded now, so that forked processes share them
        return Surviving(model, self)

    @cached_property
    def _mask_of(self) -> dict[str, str]:
        laid = (exhibit for exhibit in self.exhibits if exhibit.file.endswith(LAID_ON + EVERY))
        return {exhibit.variant.id: exhibit.file.partition(LAID_ON)[0] for exhibit in laid}

    @cached_property
    def backgrounds(self) -> dict[str, NDArray[np.uint8]]:
        """The backgrounds, decoded once: each is shown thousands of times."""
        return {file: self._ground(file) for file in self.grounds}

    def _ground(self, file: str) -> NDArray[np.uint8]:
        try:
            return self._picture(file)
        except Unusable as error:  # without it every foreground would survive more easily
            raise UserError(f"expected every background to be readable, got {file}: {error}; fetch it again") from error


@dataclass(frozen=True)
class Surviving(ModelWrapper):
    """A model whose answer to a foreground is its first wrong one on any background, or its last where all are right.

    The answer's text says which background it was and how many were met. No picture is shown twice, and none is kept.
    """

    model: Model
    challenge: EveryBackground

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """One prediction per variant; originals are asked as they are."""
        plain = [place for place, variant in enumerate(variants) if variant.level != EVERY]
        asked = [variants[place] for place in plain]
        predictions = self.model.predict(asked, [images[place] for place in plain]) if plain else []
        known = dict(zip(plain, predictions, strict=True))
        return [known[place] if place in known else self._survival(variant) for place, variant in enumerate(variants)]

    def _survival(self, variant: Variant) -> Prediction:
        met, last = 0, Prediction(variant.id, (), (), float("nan"), "error", "no background was met")
        for meetings in _in_rounds(self.challenge.meetings(variant)):
            images = [meeting.image for meeting in meetings]
            predictions = self.model.predict([variant] * len(images), images)
            for meeting, last in zip(meetings, predictions, strict=True):
                met += 1
                if last.outcome != "scored":
                    return last
                if last.ranked[0] != variant.label:
                    return replace(last, text=f"wrong on {meeting.ground}, number {met:,} of the backgrounds met")
        return replace(last, text=f"right on all {met:,} backgrounds that could be met")


def _in_rounds(meetings: Iterator[Meeting]) -> Iterator[list[Meeting]]:
    sizes = iter(_ROUNDS)
    while together := list(islice(meetings, next(sizes, _ROUNDS[-1]))):
        yield together


def lot(sample: str, file: str) -> bytes:
    """What backgrounds are drawn by: the order in which a foreground meets them."""
    return hashlib.sha256(f"{sample}\n{file.rpartition('/')[2]}".encode()).digest()


def photo_of(mask_file: str) -> str:
    """The photo that a foreground's mask is of."""
    head, _, tail = mask_file.rpartition("fg_mask/")
    return f"{head}original/{tail.removesuffix('.npy')}.JPEG"


def _mask(data: bytes) -> NDArray[np.bool_]:
    try:
        values = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError, tokenize.TokenError) as error:
        raise Unusable(f"the mask cannot be read: {error}") from error
    if values.ndim != 2:
        raise Unusable(f"the mask has {values.ndim} axes, not two")
    return np.asarray(values != 0)
