"""Which variants a sample gets, known before any pixel is read.

The seed and the id come from the content, so adding, removing or reordering edits, samples or workers
changes no other picture.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from counterfoil.edit.catalogue import name_of, settings_of
from counterfoil.types import AnyEdit, ChoosingEdit, DonorEdit, DonorRule, Sample, Skipped, Variant


@dataclass(frozen=True)
class Planned:
    """An edit in a recipe: how often, at which size of the photo, with which seed of the run."""

    edit: AnyEdit
    replicates: int
    working_size: int | None
    run_seed: int


def _digest(*parts: object) -> bytes:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


class Donors:
    """Who lends a background to whom: the same pair as long as both samples are there.

    The donor is the candidate with the highest hash together with the seed, class first, then sample: a new
    sample takes a pair over only where it wins, all other pairs stay.
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._of_label: dict[str, list[Sample]] = defaultdict(list)
        for sample in samples:
            self._of_label[sample.label].append(sample)

    @cached_property
    def _labels(self) -> list[str]:
        return sorted(self._of_label)

    def choose(self, sample: Sample, rule: DonorRule, seed: int) -> Sample | None:
        """The donor for this sample, or None where no candidate exists."""
        labels = self._candidates(sample.label, rule)
        if not labels:
            return None
        label = max(labels, key=lambda label: _digest(seed, label))
        others = [other for other in self._of_label[label] if other.id != sample.id]
        return max(others, key=lambda other: _digest(seed, other.digest), default=None)

    def _candidates(self, label: str, rule: DonorRule) -> list[str]:
        if rule == "same":
            return [label]
        if rule == "next":
            following = self._labels[(self._labels.index(label) + 1) % len(self._labels)]
            return [following] if following != label else []
        return [other for other in self._labels if other != label]


def original_of(sample: Sample) -> Variant:
    """The photo as it is."""
    name = _digest(sample.digest, sample.label, "original").hex()[:20]
    return Variant(name, sample.id, sample.label, "original", "original", "none", "{}", 0)


def plan(sample: Sample, steps: Sequence[Planned], donors: Donors) -> tuple[list[Variant], list[Skipped]]:
    """The variants of one sample, the original first, and the edits that cannot be planned."""
    variants, skipped = [original_of(sample)], []
    for step in steps:
        for replicate in range(step.replicates):
            found = _variant(sample, step, replicate, donors)
            if found is None:
                reason = f"no photo of the '{getattr(step.edit, 'donors', '')}' class lends a background"
                skipped.append(Skipped(sample.id, "edit", name_of(step.edit), reason))
            else:
                variants.append(found)
    return variants, skipped


def _what(edit: AnyEdit) -> dict[str, object]:
    """The settings that say what is done; where a folder lies is no part of it."""
    places = getattr(edit, "places", ())
    return {name: value for name, value in settings_of(edit).items() if name not in places}


def _variant(sample: Sample, step: Planned, replicate: int, donors: Donors) -> Variant | None:
    name = name_of(step.edit)
    about = [sample.digest, name, _what(step.edit), replicate, step.run_seed]
    seed = int.from_bytes(_digest(*about)[:8], "big")
    edit = step.edit.chosen(seed) if isinstance(step.edit, ChoosingEdit) else step.edit
    about += [_what(edit)] if edit != step.edit else []
    donor = None
    if isinstance(step.edit, DonorEdit):
        donor = donors.choose(sample, step.edit.donors, seed)
        if donor is None:
            return None
    identity = _digest(*about, sample.label, step.working_size, donor.digest if donor else None).hex()[:20]
    return Variant(
        identity, sample.id, sample.label, step.edit.attribute, name, step.edit.level,
        json.dumps(settings_of(edit), sort_keys=True), seed, donor.id if donor else None, replicate,
    )  # fmt: skip
