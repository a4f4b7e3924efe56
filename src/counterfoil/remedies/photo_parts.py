"""The photos in three parts, for fitting, choosing and judging; no photo and no near-duplicate is in two of them.

The parts take turns: each is judged once, by a model that was fitted and chosen on the other two. Donors come from the
same part as the photo, so a background that a model was fitted on is never judged.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.seeds import content_hash
from counterfoil.errors import Unusable, UserError
from counterfoil.generation.near_duplicates import count_differing_bits, hash_perceptually
from counterfoil.generation.quality_control import QualityBounds
from counterfoil.progress import Extent, show_progress
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.types import Sample, Skipped, Source
from counterfoil.worker_pool import LocalEngine, cores

PARTS = 3
MOST_BITS = QualityBounds().most_bits  # of 64 that two near-duplicates differ in, as in quality control
FEWEST = PARTS * FEWEST_PHOTOS


class Fold(NamedTuple):
    """Which part is used for what."""

    judging: int
    choosing: int
    fitting: int


FOLDS = tuple(Fold(part, (part + 1) % PARTS, (part + 2) % PARTS) for part in range(PARTS))


@dataclass(frozen=True, kw_only=True)
class PhotoParts:
    """The photos of each part, in the order of their ids."""

    parts: tuple[tuple[Sample, ...], ...]
    skipped: tuple[Skipped, ...] = ()  # photos that cannot be read
    alike: int = 0  # photos that were kept with a near-duplicate

    @property
    def samples(self) -> list[Sample]:
        """All photos."""
        return [sample for part in self.parts for sample in part]

    @property
    def labels(self) -> list[str]:
        """The classes of the photos."""
        return sorted({sample.label for sample in self.samples})

    def record(self) -> list[dict[str, str]]:
        """For each part the digest of every photo by its id."""
        return [{sample.id: sample.digest for sample in part} for part in self.parts]


class HashedPhoto(NamedTuple):
    """A photo with its perceptual hash; the reason instead, where it cannot be read."""

    sample: Sample
    bits: NDArray[np.uint8] | None
    reason: str = ""


def hash_photos(source: Source, samples: Sequence[Sample], workers: int | None) -> dict[str, HashedPhoto]:
    """The perceptual hash of every photo."""

    def hash_one(sample: Sample) -> HashedPhoto:
        try:
            return HashedPhoto(sample, hash_perceptually(source.read(sample)[0]))
        except Unusable as error:
            return HashedPhoto(sample, None, str(error))

    extent = Extent(stage="looking for near-duplicates", unit="photos", total=len(samples))
    engine = LocalEngine(workers or cores())
    return {row.sample.id: row for row in show_progress(engine.map(hash_one, samples), extent)}


def split_photos(hashed: Mapping[str, HashedPhoto], seed: int) -> PhotoParts:
    """Split the photos by content; near-duplicates stay together, and every class is spread over the parts.

    Raises:
        UserError: There are too few photos to judge.
    """
    readable = [row.sample for _, row in sorted(hashed.items()) if row.bits is not None]
    skipped = tuple(Skipped(row.sample.id, "source", "", row.reason) for row in hashed.values() if row.bits is None)
    if len(readable) < FEWEST:
        raise UserError(
            f"expected at least {FEWEST} photos that can be read, {FEWEST_PHOTOS} in each of {PARTS} parts, got"
            f" {len(readable)}; too few to judge a repair"
        )
    groups = _group_alike(readable, hashed)
    groups.sort(key=lambda group: (-len(group), content_hash("parts", seed, min(sample.digest for sample in group))))
    parts: list[list[Sample]] = [[] for _ in range(PARTS)]
    counts: list[dict[str, int]] = [defaultdict(int) for _ in range(PARTS)]
    for group in groups:
        labels = {sample.label for sample in group}
        turn = min(range(PARTS), key=lambda part: (max(counts[part][label] for label in labels), len(parts[part])))
        parts[turn] += group
        for sample in group:
            counts[turn][sample.label] += 1
    ordered = tuple(tuple(sorted(part, key=lambda sample: sample.id)) for part in parts)
    return PhotoParts(parts=ordered, skipped=skipped, alike=sum(len(group) for group in groups if len(group) > 1))


def _group_alike(samples: Sequence[Sample], hashed: Mapping[str, HashedPhoto]) -> list[list[Sample]]:
    """Photos with their near-duplicates, and the near-duplicates of these."""
    hashes = np.stack([_bits(hashed[sample.id]) for sample in samples])
    leader = list(range(len(samples)))

    def find(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    for place in range(len(samples)):
        near = np.flatnonzero(count_differing_bits(hashes[:place], hashes[place]) <= MOST_BITS)
        for other in near.tolist():
            leader[find(place)] = find(other)
    groups: dict[int, list[Sample]] = defaultdict(list)
    for place, sample in enumerate(samples):
        groups[find(place)].append(sample)
    return list(groups.values())


def _bits(row: HashedPhoto) -> NDArray[np.uint8]:
    assert row.bits is not None
    return row.bits


def read_parts(path: Path, hashed: Mapping[str, HashedPhoto]) -> PhotoParts:
    """Read three lists of photo ids (`parts` of a JSON file, such as repair.json); refuses what would leak."""
    lists = _read_lists(path)
    if len(lists) != PARTS:
        raise UserError(f"expected {PARTS} parts in {path}, got {len(lists)}")
    known = {name for name, row in hashed.items() if row.bits is not None}
    twice = [name for part in lists for name, count in Counter(part).items() if count > 1]
    if twice:
        raise UserError(f"expected every photo once in {path}, but '{twice[0]}' is twice in one part")
    parts = tuple(tuple(hashed[name].sample for name in part if name in known) for part in lists)
    missing = sorted(known - {sample.id for part in parts for sample in part})
    if missing:
        raise UserError(f"expected every photo in one of the parts of {path}, but '{missing[0]}' is in none")
    check_parts(parts, hashed)
    return PhotoParts(parts=parts)


def _read_lists(path: Path) -> list[list[str]]:
    """The lists of photo ids that a file holds."""
    expected = f"expected a JSON file with `parts`, three lists of photo ids such as repair.json has, got '{path}'"
    if not path.is_file():
        raise UserError(f"{expected}, which is no file")
    try:
        lists = [list(part) for part in json.loads(path.read_text(encoding="utf-8"))["parts"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{expected}, which holds something else") from error
    if any(not isinstance(name, str) for part in lists for name in part):
        raise UserError(f"{expected}, which holds something else")
    return lists


def check_parts(parts: Sequence[Sequence[Sample]], hashed: Mapping[str, HashedPhoto]) -> None:
    """Raises `UserError` where a photo, its copy or a near-duplicate is in two parts, or a part is too small."""
    for number, part in enumerate(parts):
        if len(part) < FEWEST_PHOTOS:
            raise UserError(f"expected at least {FEWEST_PHOTOS} photos in part {number + 1}, got {len(part)}")
        for other in parts[number + 1 :]:
            _check_pair(part, other, hashed)


def _check_pair(part: Sequence[Sample], other: Sequence[Sample], hashed: Mapping[str, HashedPhoto]) -> None:
    hashes = np.stack([_bits(hashed[sample.id]) for sample in other])
    digests = {sample.digest: sample.id for sample in other}
    for sample in part:
        near = count_differing_bits(hashes, _bits(hashed[sample.id]))
        closest = int(near.argmin())
        like = digests.get(sample.digest) or (other[closest].id if near[closest] <= MOST_BITS else None)
        if like is not None:
            same = "itself" if like == sample.id else f"'{like}', which looks the same"
            raise UserError(
                f"expected every photo in one part, but '{sample.id}' is in one and {same} in another: a model would be"
                " judged on what it was fitted on"
            )
