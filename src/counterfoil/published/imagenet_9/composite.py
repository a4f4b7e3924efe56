"""Reader of the Backgrounds Challenge: foregrounds on some backgrounds, or on all of them until a model is wrong."""

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
from counterfoil.labels.benchmark_classes import imagenet9
from counterfoil.models.model_protocol import ModelWrapper
from counterfoil.published.archive import (
    ORIGINAL,
    Archive,
    ArchiveCondition,
    ArchivePicture,
    ArchivePictures,
    collect_pictures,
)
from counterfoil.published.file_tree import Tree
from counterfoil.published.imagenet_9.reader import SIDE
from counterfoil.published.layout_detection import MatchedFile, match_layout, note_partial, note_unresized
from counterfoil.sources.pixels import decode_archive_picture
from counterfoil.types import Model, Prediction, Skipped, StoredVariant, Variant

SEPARATOR = "|"  # between the foreground's mask and the background in a picture's file
EVERY = "every background"  # in place of one background
_ROUNDS = (8, 16, 32, 64)  # pictures asked together: few at first, since most foregrounds fail early


@dataclass(frozen=True)
class CompositeArchive(Archive):
    """Foregrounds on backgrounds; a picture's file names both."""

    files: Sequence[str] = field(default=(), repr=False)

    def size(self, at: int) -> int:
        """Size in bytes of a photo's file; composed pictures have none."""
        return self.tree.sizes.get(self.files[at], 0)

    def read(self, stored: StoredVariant) -> NDArray[np.uint8]:
        """The foreground's pixels where its mask is set, the background's elsewhere."""
        mask_file, laid, ground = stored.file.partition(SEPARATOR)
        if not laid:
            return super().read(stored)
        photo, inside = self._foreground(mask_file)
        behind = self._picture(ground)
        if behind.shape != photo.shape:
            raise Unusable(f"photo and background differ in size: {photo.shape[:2]} and {behind.shape[:2]} pixels")
        return np.where(inside, photo, behind)

    def _foreground(self, mask_file: str) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The photo, and the mask of its foreground in every channel."""
        photo, mask = self._picture(photo_file(mask_file)), _mask(self.tree.read(mask_file))
        if mask.shape != photo.shape[:2]:
            raise Unusable(f"photo and mask differ in size: {photo.shape[:2]} and {mask.shape} pixels")
        return photo, np.repeat(mask[:, :, None], 3, axis=2)  # same memory layout as the pixels: three times as fast

    def _picture(self, file: str) -> NDArray[np.uint8]:
        return decode_archive_picture(self.tree.read(file))


class Composite(NamedTuple):
    """A foreground on one of its backgrounds."""

    ground: str  # the background's file
    image: NDArray[np.uint8]


@dataclass(frozen=True)
class EveryBackgroundArchive(CompositeArchive):
    """Foregrounds each combined with every background; one picture stands for all combinations."""

    grounds: Sequence[str] = field(default=(), repr=False)

    @cached_property
    def digest(self) -> str:
        """Hash that also covers the backgrounds, since survival depends on which ones are used."""
        met = [(file, self.tree.sizes[file]) for file in self.grounds]
        return hashlib.sha256(json.dumps([super().digest, met]).encode()).hexdigest()

    def read(self, stored: StoredVariant) -> NDArray[np.uint8]:
        """Read a photo, or the foreground on the first of its backgrounds."""
        if not stored.file.endswith(SEPARATOR + EVERY):
            return super().read(stored)
        meeting = next(self.meetings(stored.variant), None)
        if meeting is None:
            raise Unusable("no background has the size of the photo")
        return meeting.image

    def meetings(self, variant: Variant) -> Iterator[Composite]:
        """Yield the foreground on each background of the photo's size, in a fixed pseudo-random order."""
        photo, inside = self._foreground(self._mask_of[variant.id])
        for file in sorted(self.backgrounds, key=lambda file: background_order(str(variant.sample_id), file)):
            ground = self.backgrounds[file]
            if ground.shape == photo.shape:
                yield Composite(file, np.where(inside, photo, ground))

    def adapt(self, model: Model) -> Model:
        """Return a model that is asked about one background after the other."""
        _ = self.backgrounds  # decoded now, so that forked processes share them
        return SurvivalModel(model, self)

    @cached_property
    def _mask_of(self) -> dict[str, str]:
        laid = (stored for stored in self.pictures if stored.file.endswith(SEPARATOR + EVERY))
        return {stored.variant.id: stored.file.partition(SEPARATOR)[0] for stored in laid}

    @cached_property
    def backgrounds(self) -> dict[str, NDArray[np.uint8]]:
        """The backgrounds, decoded once: each is shown thousands of times."""
        return {file: self._ground(file) for file in self.grounds}

    def _ground(self, file: str) -> NDArray[np.uint8]:
        try:
            return self._picture(file)
        except Unusable as error:  # leaving a background out would raise the survival rate
            raise UserError(f"expected every background to be readable, got {file}: {error}; fetch it again") from error


@dataclass(frozen=True)
class SurvivalModel(ModelWrapper):
    """A model whose answer to a foreground is its first wrong one on any background, or its last where all are right.

    The answer's text names that background and how many were shown. No picture is shown twice, and none is stored.
    """

    model: Model
    challenge: EveryBackgroundArchive

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """Return one prediction per variant; originals are asked unchanged."""
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


def _in_rounds(meetings: Iterator[Composite]) -> Iterator[list[Composite]]:
    sizes = iter(_ROUNDS)
    while together := list(islice(meetings, next(sizes, _ROUNDS[-1]))):
        yield together


def background_order(sample: str, file: str) -> bytes:
    """Sort key for the order in which a foreground is shown on backgrounds."""
    return hashlib.sha256(f"{sample}\n{file.rpartition('/')[2]}".encode()).digest()


def photo_file(mask_file: str) -> str:
    """The photo that a foreground's mask belongs to."""
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


NAME = "imagenet-9-challenge"
NAME_EVERY = "imagenet-9-challenge-all"
CALLED = "imagenet-9 challenge"  # name in reports; its published numbers are listed with ImageNet-9
CALLED_EVERY = "imagenet-9 challenge on every background"
EXPECTED = "fg_mask/val/<class>/<name>.npy, original/val/<class>/<name>.JPEG and only_bg_t/val/<class>/<name>.JPEG"
BACKGROUNDS = 40  # per foreground in the quick form
PICTURES = 4_050  # foregrounds in the release, and backgrounds
KIND = ArchiveCondition("background", "challenge", "other backgrounds")
KIND_EVERY = ArchiveCondition("background", "challenge", EVERY)
UPPER_BOUND = "the published challenge accuracy, over all of them, is at most this"
_CLASS = r"0(?P<number>[0-8])_[^/]+/"
_MASK = r"[^/.][^/]*\.npy"  # excludes hidden files such as ._x.npy


class CompositeParts(NamedTuple):
    """The files that pictures of the challenge are composed of."""

    masks: Sequence[MatchedFile]  # of foregrounds whose photos are there
    grounds: Sequence[MatchedFile]
    lost: Sequence[Skipped]


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return bool(match_layout(tree, f"fg_mask/val/{_CLASS}", _MASK).places)


def read(tree: Tree) -> Archive:
    """Read the quick form: every foreground that has a mask, on some backgrounds, and its original."""
    parts = _parts(tree)
    met = min(BACKGROUNDS, len(parts.grounds))
    note = f"Each of {len(parts.masks):,} foregrounds met {met:,} of {len(parts.grounds):,} backgrounds"
    bound = f": {UPPER_BOUND}; {NAME_EVERY} lays each on all." if met < len(parts.grounds) else "."
    files, pictures = _collect_pictures(
        NAME, [(place, list(_draw_backgrounds(place, parts.grounds))) for place in parts.masks]
    )
    return CompositeArchive(
        name=CALLED,
        tree=tree,
        pictures=pictures,
        space=imagenet9(),
        skipped=tuple(parts.lost),
        notes=(note + bound, *_note_partial(parts), note_unresized(SIDE)),
        files=files,
    )


def read_every(tree: Tree) -> Archive:
    """Read for the published rule: every foreground on every background, until a model is first wrong."""
    parts = _parts(tree)
    most = len(parts.masks) * len(parts.grounds)
    note = (
        f"Each of {len(parts.masks):,} foregrounds meets all {len(parts.grounds):,} backgrounds until the first that a"
        f" model is wrong on: at most {most:,} pictures a model, and the backgrounds are kept in memory (150 KB each)."
        f" {NAME} is the quick form, with {BACKGROUNDS} drawn backgrounds."
    )
    files, pictures = _collect_pictures(NAME_EVERY, [(place, [EVERY]) for place in parts.masks])
    return EveryBackgroundArchive(
        name=CALLED_EVERY, tree=tree, pictures=pictures, space=imagenet9(), skipped=tuple(parts.lost),
        notes=(note, *_note_partial(parts), note_unresized(SIDE)), files=files,
        grounds=tuple(place.file for place in parts.grounds),
    )  # fmt: skip


def _parts(tree: Tree) -> CompositeParts:
    masks = list(match_layout(tree, f"fg_mask/val/{_CLASS}", _MASK).places)
    grounds = list(match_layout(tree, f"only_bg_t/val/{_CLASS}").places)
    if not masks or not grounds:
        raise UserError(
            f"expected {NAME} with {EXPECTED} at '{tree.where}', found {len(masks)} masks, {len(grounds)} backgrounds"
        )
    there = [place for place in masks if photo_file(place.file) in tree.sizes]
    gone = [place for place in masks if photo_file(place.file) not in tree.sizes]
    lost = [Skipped(place.file, "source", "", "the mask's photo is not in original") for place in gone]
    return CompositeParts(there, grounds, lost)


def _note_partial(parts: CompositeParts) -> list[str]:
    """Note that with fewer backgrounds more foregrounds survive, so the figure differs from the published one."""
    there = {"foregrounds": len(parts.masks), "backgrounds": len(parts.grounds)}
    return [note for what, many in there.items() for note in note_partial(what, many, PICTURES)]


def _collect_pictures(
    name: str, laid: Sequence[tuple[MatchedFile, Sequence[str]]]
) -> tuple[Sequence[str], ArchivePictures]:
    """The files of the challenge by name, and its pictures."""
    pairs = {place.file: [f"{place.file}{SEPARATOR}{ground}" for ground in grounds] for place, grounds in laid}
    files = sorted([*(file for made in pairs.values() for file in made), *map(photo_file, pairs)])
    at = {file: number for number, file in enumerate(files)}
    kind = KIND_EVERY if name == NAME_EVERY else KIND

    def found() -> Iterator[ArchivePicture]:
        for place, _ in laid:
            label = imagenet9().labels[int(place.parts["number"])]
            sample = _sample(place)
            yield ArchivePicture(at[photo_file(place.file)], sample, label, ORIGINAL)
            for replicate, file in enumerate(pairs[place.file]):
                yield ArchivePicture(at[file], sample, label, kind, replicate)

    return files, collect_pictures(name, files.__getitem__, found())


def _sample(place: MatchedFile) -> str:
    return f"{imagenet9().labels[int(place.parts['number'])]}/{place.name.removesuffix('.npy')}"


def _draw_backgrounds(place: MatchedFile, grounds: Sequence[MatchedFile]) -> Iterator[str]:
    drawn = sorted(grounds, key=lambda other: background_order(_sample(place), other.file))[:BACKGROUNDS]
    return (ground.file for ground in drawn)
