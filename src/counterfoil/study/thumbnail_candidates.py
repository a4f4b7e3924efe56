"""Thumbnails of pictures that the report may show, kept while their pixels are there.

Which pictures the report shows is known when every answer is in, but it draws them by lot from a pool whose size is
known before: of each attribute the flips and the pictures that held with the lowest lots. So the lowest lots seen so
far are kept, a bounded number. This saves work and decides nothing: a picture that is not here, since another process
or an earlier session made it, is made once more and gives the same bytes.
"""

from __future__ import annotations

import heapq
import os
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.store.prediction_tables import RenderedVariant
from counterfoil.study.examples import (
    FEW_PHOTOS,
    NO_EXAMPLES,
    POOL,
    example_rank,
    flips_per_model,
    picture_key,
    thumbnail_jpeg,
)
from counterfoil.types import Prediction

Image: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB

_MOST_BYTES = 64 << 20  # of JPEGs; a thumbnail has about 6 KB
_ORIGINALS = 256  # photos whose original is remembered: those being worked on, and some before


class _Group(NamedTuple):
    """Pictures among which the report draws by lot."""

    kind: str
    attribute: str
    model: str = ""


class _Original(NamedTuple):
    right: frozenset[str]  # models that are right on it
    sha256: str
    jpeg: bytes


class _Kept(NamedTuple):
    order: int  # the lot, negated: of a heap the first goes first
    jpegs: tuple[tuple[str, bytes], ...]  # by hash of the pixels: the picture, and its original


class ThumbnailCandidates:
    """Takes every picture with its answers and keeps a bounded choice of thumbnails; threads may add at once."""

    def __init__(self, models: Sequence[str], photos: int) -> None:
        self._models = tuple(models)
        self._few = photos <= FEW_PHOTOS
        self._groups: defaultdict[_Group, list[_Kept]] = defaultdict(list)
        self._originals: OrderedDict[str, _Original] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def jpegs(self) -> dict[str, bytes]:
        """The thumbnails that were kept, by hash of the pixels."""
        return {name: jpeg for kept in self._groups.values() for row in kept for name, jpeg in row.jpegs}

    def add(
        self, made: Sequence[RenderedVariant], images: Sequence[Image], predictions: Mapping[str, Sequence[Prediction]]
    ) -> None:
        """Pictures with every model's answers, in one order; originals come before what was made of them."""
        if os.getpid() != self._process:
            return  # what a forked process keeps never comes back
        for place, (row, image) in enumerate(zip(made, images, strict=True)):
            self._consider(row, image, {model: answers[place] for model, answers in predictions.items()})

    def _consider(self, row: RenderedVariant, image: Image, answers: Mapping[str, Prediction]) -> None:
        variant = row.variant
        scored = {model for model, answer in answers.items() if answer.outcome == "scored"}
        right = frozenset(model for model in scored if answers[model].ranked[:1] == (variant.label,))
        jpeg = b""
        if variant.attribute == "original":
            jpeg = thumbnail_jpeg(image)
            self._remember(str(variant.sample_id), _Original(right, row.sha256, jpeg))
        original = self._originals.get(str(variant.sample_id))
        groups = list(self._groups_of(variant.attribute, scored, right, original))
        order = -int.from_bytes(example_rank(picture_key(variant)), "big")
        groups = [group for group in groups if self._has_room(group, order)]
        if groups:
            own = (row.sha256, jpeg or thumbnail_jpeg(image))
            jpegs = (own,) if original is None else (own, (original.sha256, original.jpeg))
            for group in groups:
                self._keep(group, _Kept(order, jpegs))

    def _groups_of(
        self, attribute: str, scored: set[str], right: frozenset[str], original: _Original | None
    ) -> Iterator[_Group]:
        """Where the report may look for a picture."""
        if original is None or attribute == "original":  # a collection may have none, or nothing else
            if scored:
                yield _Group("right" if right == scored else "wrong", attribute)
            return
        if attribute in NO_EXAMPLES:
            return
        flips = original.right & (scored - right)
        for model in flips:
            yield _Group("flipped", attribute, model)
        if not flips and original.right & right:
            yield _Group("held", attribute)
        if self._few and scored:
            yield _Group("other", attribute)

    def _limit(self, group: _Group) -> int:
        return flips_per_model(len(self._models)) if group.kind == "flipped" else POOL

    def _remember(self, sample_id: str, original: _Original) -> None:
        with self._lock:
            self._originals[sample_id] = original
            if len(self._originals) > _ORIGINALS:
                self._originals.popitem(last=False)

    def _has_room(self, group: _Group, order: int) -> bool:
        with self._lock:
            kept = self._groups[group]
            if len(kept) < self._limit(group):
                return self._bytes < _MOST_BYTES
            return order > kept[0].order

    def _keep(self, group: _Group, kept: _Kept) -> None:
        with self._lock:
            self._bytes += _size(kept)
            heapq.heappush(self._groups[group], kept)
            if len(self._groups[group]) > self._limit(group):
                self._bytes -= _size(heapq.heappop(self._groups[group]))


def _size(kept: _Kept) -> int:
    return sum(len(jpeg) for _, jpeg in kept.jpegs)
