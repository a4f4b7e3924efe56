"""The Backgrounds challenge: every foreground of ImageNet-9 laid on other photos' backgrounds, made as it is read.

The published rule lays each foreground on all backgrounds and stops at the first error. Here each foreground
meets a fixed number of backgrounds, drawn by their names; where there are no more than that, it meets all of them.
"""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.labels import imagenet9
from counterfoil.published.archive import ORIGINAL, Archive, Found, Kind, exhibits_of
from counterfoil.published.finding import PICTURE, Place, find
from counterfoil.published.tree import Tree
from counterfoil.types import Exhibit, Skipped

NAME = "imagenet-9-challenge"
CALLED = "imagenet-9 challenge"  # in reports: what was published of it stands with ImageNet-9
EXPECTED = "fg_mask/val/<class>/<name>.npy, original/val/<class>/<name>.JPEG and only_bg_t/val/<class>/<name>.JPEG"
BACKGROUNDS = 40  # that each foreground meets
KIND = Kind("background", "challenge", "other backgrounds")
_CLASS = r"0(?P<number>[0-8])_[^/]+"
_MASKS = rf"fg_mask/val/{_CLASS}/(?P<name>[^/]+\.npy)"
_LAID_ON = "|"  # between the foreground's mask and the background in an exhibit's file


class Challenge(Archive):
    """Foregrounds on backgrounds; an exhibit's file names both."""

    def read(self, exhibit: Exhibit) -> NDArray[np.uint8]:
        """The foreground's pixels where its mask is set, the background's elsewhere."""
        mask_file, laid, background_file = exhibit.file.partition(_LAID_ON)
        if not laid:
            return super().read(exhibit)
        photo = super().read(Exhibit(exhibit.variant, _photo_of(mask_file)))
        ground = super().read(Exhibit(exhibit.variant, background_file))
        mask = _mask(self.tree.read(mask_file))
        if not photo.shape == ground.shape == (*mask.shape, 3):
            raise Unusable(f"photo, mask and background differ in size: {photo.shape}, {mask.shape}, {ground.shape}")
        return np.where(mask[:, :, None], photo, ground)


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return bool(find(tree, _MASKS).places)


def read(tree: Tree) -> Archive:
    """Every foreground that has a mask, on its backgrounds, beside its original."""
    masks = find(tree, _MASKS).places
    grounds = find(tree, rf"only_bg_t/val/{_CLASS}/(?P<name>{PICTURE})").places
    if not masks or not grounds:
        raise UserError(
            f"expected {NAME} with {EXPECTED} at '{tree.where}', found {len(masks)} masks, {len(grounds)} backgrounds"
        )
    there = [place for place in masks if _photo_of(place.file) in tree.sizes]
    lost = [
        Skipped(place.file, "source", "", "the mask's photo is not in original")
        for place in masks
        if _photo_of(place.file) not in tree.sizes
    ]
    found = [item for place in there for item in _found(place, grounds)]
    met = min(BACKGROUNDS, len(grounds))
    note = f"Each of {len(there):,} foregrounds met {met:,} of {len(grounds):,} backgrounds"
    bound = ": the published challenge accuracy, over all of them, is at most this." if met < len(grounds) else "."
    return Challenge(CALLED, tree, exhibits_of(NAME, found), imagenet9(), skipped=tuple(lost), notes=(note + bound,))


def _found(place: Place, grounds: Sequence[Place]) -> Iterator[Found]:
    label = imagenet9().labels[int(place.parts["number"])]
    sample = f"{label}/{place.parts['name'].removesuffix('.npy')}"
    yield Found(_photo_of(place.file), sample, label, ORIGINAL)
    for replicate, ground in enumerate(sorted(grounds, key=lambda other: _lot(sample, other.file))[:BACKGROUNDS]):
        yield Found(f"{place.file}{_LAID_ON}{ground.file}", sample, label, KIND, replicate)


def _lot(sample: str, file: str) -> bytes:
    return hashlib.sha256(f"{sample}\n{file.rpartition('/')[2]}".encode()).digest()


def _photo_of(mask_file: str) -> str:
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
