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
from typing import NamedTuple

from counterfoil.edit.base import Edit
from counterfoil.edit.catalogue import name_of, settings_of
from counterfoil.types import DonorRule, Sample, Skipped, Variant

MOST_HELD = 200_000  # variants of photos that wait for their turn, about 0.4 kB each


@dataclass(frozen=True)
class Planned:
    """An edit in a recipe: how often, at which size of the photo, with which seed of the run."""

    edit: Edit
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


class Plan(NamedTuple):
    """What is to be made of one sample."""

    variants: list[Variant]  # the original first
    skipped: list[Skipped]  # edits that cannot be planned


class Plans:
    """The plan of each sample of a run, made once: it is asked for the id of the work first, then for the work.

    A large set is planned again when its turn comes, so that memory does not grow with the photos.
    """

    def __init__(self, steps: Sequence[Planned], donors: Donors) -> None:
        self._steps, self._donors = steps, donors
        self._plans: dict[str, Plan] = {}
        self._held = 0  # variants

    def of(self, sample: Sample) -> Plan:
        """The sample's plan, kept for `take`."""
        if sample.id in self._plans:
            return self._plans[sample.id]
        made = plan(sample, self._steps, self._donors)
        if self._held + len(made.variants) <= MOST_HELD:
            self._plans[sample.id] = made
            self._held += len(made.variants)
        return made

    def take(self, sample: Sample) -> Plan:
        """The sample's plan, which is no longer held."""
        held = self._plans.pop(sample.id, None)
        if held is None:
            return plan(sample, self._steps, self._donors)
        self._held -= len(held.variants)
        return held


def plan(sample: Sample, steps: Sequence[Planned], donors: Donors) -> Plan:
    """The variants of one sample, the original first, and the edits that cannot be planned."""
    variants, skipped = [original_of(sample)], []
    for step in steps:
        for replicate in range(step.replicates):
            variant = _variant(sample, step, replicate, donors)
            if variant is None:
                reason = f"no photo of the '{step.edit.needs.donor}' class lends a background"
                skipped.append(Skipped(sample.id, "edit", name_of(step.edit), reason))
            else:
                variants.append(variant)
    return Plan(variants, skipped)


def _what(edit: Edit) -> dict[str, object]:
    """The settings that say what is done; where a folder lies is no part of it."""
    return {name: value for name, value in settings_of(edit).items() if name not in edit.places}


def _variant(sample: Sample, step: Planned, replicate: int, donors: Donors) -> Variant | None:
    name = name_of(step.edit)
    about = [sample.digest, name, _what(step.edit), replicate, step.run_seed]
    seed = int.from_bytes(_digest(*about)[:8], "big")
    edit = step.edit.choose(seed)
    about += [_what(edit)] if edit != step.edit else []
    donor, rule = None, step.edit.needs.donor
    if rule is not None:
        donor = donors.choose(sample, rule, seed)
        if donor is None:
            return None
    identity = _digest(*about, sample.label, step.working_size, donor.digest if donor else None).hex()[:20]
    return Variant(
        identity, sample.id, sample.label, step.edit.attribute, name, step.edit.level,
        json.dumps(settings_of(edit), sort_keys=True), seed, donor.id if donor else None, replicate,
    )  # fmt: skip
