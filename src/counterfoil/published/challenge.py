"""The Backgrounds challenge: every foreground of ImageNet-9 laid on other photos' backgrounds, made as it is read.

The authors' script (challenge_eval.py) lays each foreground on every picture of only_bg_t, those of its own class too,
and calls it vulnerable at the first error. `read_every` does that; `read` is the quick form, in which each foreground
meets a fixed number of backgrounds, drawn by their names, all of them where there are no more than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from counterfoil.errors import UserError
from counterfoil.labels import imagenet9
from counterfoil.published.archive import Archive
from counterfoil.published.exhibits import ORIGINAL, Exhibits, Found, Kind, exhibits_of
from counterfoil.published.finding import Place, find, partial_note, shown_as_they_are
from counterfoil.published.imagenet_9 import SIDE
from counterfoil.published.laid import EVERY, LAID_ON, Challenge, EveryBackground, lot, photo_of
from counterfoil.published.tree import Tree
from counterfoil.types import Skipped

NAME = "imagenet-9-challenge"
NAME_EVERY = "imagenet-9-challenge-all"
CALLED = "imagenet-9 challenge"  # in reports: what was published of it stands with ImageNet-9
CALLED_EVERY = "imagenet-9 challenge on every background"
EXPECTED = "fg_mask/val/<class>/<name>.npy, original/val/<class>/<name>.JPEG and only_bg_t/val/<class>/<name>.JPEG"
BACKGROUNDS = 40  # that each foreground meets in the quick form
PICTURES = 4_050  # foregrounds of the release, and backgrounds
KIND = Kind("background", "challenge", "other backgrounds")
KIND_EVERY = Kind("background", "challenge", EVERY)
UPPER_BOUND = "the published challenge accuracy, over all of them, is at most this"
_CLASS = r"0(?P<number>[0-8])_[^/]+/"
_MASK = r"[^/.][^/]*\.npy"  # hidden files such as ._x.npy are none


class Parts(NamedTuple):
    """What pictures of the challenge are laid together from."""

    masks: Sequence[Place]  # of foregrounds whose photos are there
    grounds: Sequence[Place]
    lost: Sequence[Skipped]


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return bool(find(tree, f"fg_mask/val/{_CLASS}", _MASK).places)


def read(tree: Tree) -> Archive:
    """The quick form: every foreground that has a mask, on some backgrounds, beside its original."""
    parts = _parts(tree)
    met = min(BACKGROUNDS, len(parts.grounds))
    note = f"Each of {len(parts.masks):,} foregrounds met {met:,} of {len(parts.grounds):,} backgrounds"
    bound = f": {UPPER_BOUND}; {NAME_EVERY} lays each on all." if met < len(parts.grounds) else "."
    files, exhibits = _exhibits(NAME, [(place, list(_drawn(place, parts.grounds))) for place in parts.masks])
    return Challenge(
        CALLED,
        tree,
        exhibits,
        imagenet9(),
        skipped=tuple(parts.lost),
        notes=(note + bound, *_partial(parts), shown_as_they_are(SIDE)),
        files=files,
    )


def read_every(tree: Tree) -> Archive:
    """The published rule: every foreground on every background, until the first that a model is wrong on."""
    parts = _parts(tree)
    most = len(parts.masks) * len(parts.grounds)
    note = (
        f"Each of {len(parts.masks):,} foregrounds meets all {len(parts.grounds):,} backgrounds until the first that a"
        f" model is wrong on: at most {most:,} pictures a model, and the backgrounds are kept in memory (150 KB each)."
        f" {NAME} is the quick form, with {BACKGROUNDS} drawn backgrounds."
    )
    files, exhibits = _exhibits(NAME_EVERY, [(place, [EVERY]) for place in parts.masks])
    return EveryBackground(
        CALLED_EVERY, tree, exhibits, imagenet9(), skipped=tuple(parts.lost),
        notes=(note, *_partial(parts), shown_as_they_are(SIDE)), files=files,
        grounds=tuple(place.file for place in parts.grounds),
    )  # fmt: skip


def _parts(tree: Tree) -> Parts:
    masks = list(find(tree, f"fg_mask/val/{_CLASS}", _MASK).places)
    grounds = list(find(tree, f"only_bg_t/val/{_CLASS}").places)
    if not masks or not grounds:
        raise UserError(
            f"expected {NAME} with {EXPECTED} at '{tree.where}', found {len(masks)} masks, {len(grounds)} backgrounds"
        )
    there = [place for place in masks if photo_of(place.file) in tree.sizes]
    gone = [place for place in masks if photo_of(place.file) not in tree.sizes]
    lost = [Skipped(place.file, "source", "", "the mask's photo is not in original") for place in gone]
    return Parts(there, grounds, lost)


def _partial(parts: Parts) -> list[str]:
    """With fewer backgrounds more foregrounds survive, so that the figure is not the published one."""
    there = {"foregrounds": len(parts.masks), "backgrounds": len(parts.grounds)}
    return [note for what, many in there.items() for note in partial_note(what, many, PICTURES)]


def _exhibits(name: str, laid: Sequence[tuple[Place, Sequence[str]]]) -> tuple[Sequence[str], Exhibits]:
    """The files that the challenge is made of by name, and its pictures."""
    pairs = {place.file: [f"{place.file}{LAID_ON}{ground}" for ground in grounds] for place, grounds in laid}
    files = sorted([*(file for made in pairs.values() for file in made), *map(photo_of, pairs)])
    at = {file: number for number, file in enumerate(files)}
    kind = KIND_EVERY if name == NAME_EVERY else KIND

    def found() -> Iterator[Found]:
        for place, _ in laid:
            label = imagenet9().labels[int(place.parts["number"])]
            sample = _sample(place)
            yield Found(at[photo_of(place.file)], sample, label, ORIGINAL)
            for replicate, file in enumerate(pairs[place.file]):
                yield Found(at[file], sample, label, kind, replicate)

    return files, exhibits_of(name, files.__getitem__, found())


def _sample(place: Place) -> str:
    return f"{imagenet9().labels[int(place.parts['number'])]}/{place.name.removesuffix('.npy')}"


def _drawn(place: Place, grounds: Sequence[Place]) -> Iterator[str]:
    drawn = sorted(grounds, key=lambda other: lot(_sample(place), other.file))[:BACKGROUNDS]
    return (ground.file for ground in drawn)
