"""The choice of donors: the photo whose background each sample takes."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from counterfoil.types import DonorRule, Sample


class Donors:
    """Chooses the donor of a sample; the choice is stable as long as both samples exist.

    The donor is the candidate whose hash with the seed is highest, class first, then sample: a new sample changes
    only the pairs in which its hash is highest.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples
        self._of_label: dict[str, array[int]] = defaultdict(lambda: array("I"))  # places in `samples`
        self._encoded_of_label: dict[str, list[bytes]] = {}  # filled on demand
        for place, sample in enumerate(samples):
            self._of_label[sample.label].append(place)

    @cached_property
    def _label_of(self) -> dict[str, str]:
        return {sample.id: sample.label for sample in self._samples}

    @cached_property
    def _labels(self) -> list[str]:
        return sorted(self._of_label)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self._labels)}

    @cached_property
    def _encoded(self) -> dict[str, bytes]:
        """Each label as it ends the JSON that is hashed."""
        return {label: _encode(label) for label in self._labels}

    def choose(
        self, sample: Sample, rule: DonorRule, seed: int, excluded: Collection[str] = frozenset()
    ) -> Sample | None:
        """The donor for this sample, none of the excluded ids, or None where no candidate exists."""
        left_out = {sample.id, *excluded}
        exhausted = self._find_exhausted(left_out) if excluded or rule == "any" else set()
        label = self._choose_label(sample.label, rule, seed, exhausted)
        if label is None:
            return None
        begun = _begin_hash(seed)
        best, chosen = b"", None
        for place, ending in self._candidates(label):
            value = _end_hash(begun, ending)
            if value > best and (other := self._samples[place]).id not in left_out:
                best, chosen = value, other
        return chosen

    def _candidates(self, label: str) -> Iterator[tuple[int, bytes]]:
        """The places of a label's samples, each with its digest as it ends the JSON that is hashed."""
        places = self._of_label[label]
        if label not in self._encoded_of_label:
            self._encoded_of_label[label] = [_encode(self._samples[place].digest) for place in places]
        return zip(places, self._encoded_of_label[label], strict=True)

    def _find_exhausted(self, left_out: set[str]) -> set[str]:
        """The labels all of whose samples are left out."""
        touched = {self._label_of[name] for name in left_out if name in self._label_of}
        return {
            label for label in touched if all(self._samples[place].id in left_out for place in self._of_label[label])
        }

    def _choose_label(self, label: str, rule: DonorRule, seed: int, exhausted: set[str]) -> str | None:
        """The candidate label whose hash with the seed is highest, none of the exhausted; None where there is none."""
        if rule == "same":
            return None if label in exhausted else label
        if rule == "next":
            following = self._labels[(self._places[label] + 1) % len(self._labels)]
            return None if following == label or following in exhausted else following
        excluded = exhausted if rule == "any" else {label, *exhausted}
        begun = _begin_hash(seed)
        best, chosen = b"", None
        for other, ending in self._encoded.items():
            value = _end_hash(begun, ending)
            if value > best and other not in excluded:
                best, chosen = value, other
        return chosen


def _begin_hash(seed: int) -> hashlib._Hash:
    """The hash of `content_hash(seed, value)`, begun once for all values."""
    return hashlib.sha256(f"[{seed}, ".encode())


def _encode(value: str) -> bytes:
    return f"{json.dumps(value)}]".encode()


def _end_hash(begun: hashlib._Hash, ending: bytes) -> bytes:
    digest = begun.copy()
    digest.update(ending)
    return digest.digest()
