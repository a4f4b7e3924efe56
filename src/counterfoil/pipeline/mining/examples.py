"""Which kept pictures the page shows: some of every attribute, drawn by lot, beside their originals."""

from __future__ import annotations

import hashlib
from collections import defaultdict

import numpy as np

from counterfoil.errors import Unusable
from counterfoil.pipeline.mining.picked import Picked
from counterfoil.pipeline.recorded.pictures import Album, Maker
from counterfoil.report import Example, Reply
from counterfoil.types import Exhibit, Picture, Variant

_MOST = 6  # of an attribute


def examples_of(picked: Picked) -> list[Example]:
    """Small pictures with what every model said before and after."""
    shown = _drawn(picked)
    originals = picked.asked.originals
    pairs = [(originals.get(str(exhibit.variant.sample_id)), exhibit) for exhibit in shown]
    wanted = {exhibit.variant.id for pair in pairs for exhibit in pair if exhibit is not None}
    said = {model.name: model.table.first_answers(wanted) for model in picked.asked.models}
    album = Album((), _maker(picked))
    return [_example(before, after, said, album) for before, after in pairs]


def _drawn(picked: Picked) -> list[Exhibit]:
    groups: defaultdict[str, list[Exhibit]] = defaultdict(list)
    for place in np.flatnonzero(picked.choice.kept):
        exhibit = picked.asked.candidates[place]
        groups[exhibit.variant.attribute].append(exhibit)
    return [exhibit for members in groups.values() for exhibit in sorted(members, key=_lot)[:_MOST]]


def _example(
    before: Exhibit | None, after: Exhibit, said: dict[str, dict[str, tuple[str, float]]], album: Album
) -> Example:
    variant = after.variant
    first = variant if before is None else before.variant
    replies = tuple(
        Reply(model, *answers[first.id], *answers[variant.id])
        for model, answers in said.items()
        if first.id in answers and variant.id in answers
    )
    original = None if before is None else album.picture(before.variant, before.sha256)
    return Example(
        variant.attribute, variant.edit, variant.level, str(variant.sample_id), variant.label, original,
        album.picture(variant, after.sha256), replies,
    )  # fmt: skip


def _maker(picked: Picked) -> Maker:
    by_id = {exhibit.variant.id: exhibit for exhibit in picked.asked.workspace.exhibits}

    def make(variant: Variant) -> Picture | None:
        try:
            image = picked.asked.workspace.read(by_id[variant.id])
        except Unusable:  # it was removed since: the page does without
            return None
        return Picture(image, np.full(image.shape[:2], 255, np.uint8))

    return make


def _lot(exhibit: Exhibit) -> str:
    return hashlib.sha256(f"shown {exhibit.variant.id}".encode()).hexdigest()
