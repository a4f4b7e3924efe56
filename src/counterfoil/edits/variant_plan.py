"""The variants of a sample, planned before its pixels are read: edit, level, donor, seed and id."""

from __future__ import annotations

import dataclasses
import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from counterfoil.edits.donors import Donors
from counterfoil.edits.edit_protocol import Edit
from counterfoil.edits.registry import name_of, settings_of
from counterfoil.edits.seeds import content_hash, id_from, id_of_choice, seed_from
from counterfoil.types import GROWN_MASK, SECOND_FILL, SHRUNK_MASK, Attribute, EditLevel, Sample, Skipped, Variant


@dataclass(frozen=True)
class PlannedEdit:
    """An edit in a recipe, with its replicates, the working size and the seed of the run."""

    edit: Edit
    replicates: int
    working_size: int | None
    run_seed: int


def plan_original(sample: Sample) -> Variant:
    """The variant that is the unedited photo."""
    return Variant(
        id=id_from(sample.digest, sample.label, "original"), sample_id=sample.id, label=sample.label,
        attribute="original", edit="original", level="none", settings="{}", seed=0,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ToolChecks:
    """Which pictures are made again with another fill or another mask, to see how much of a drop is the tool's."""

    photos: frozenset[str] = frozenset()  # ids of the samples
    main: frozenset[EditLevel] = frozenset()  # the edits whose mask is changed: one of each attribute


def choose_checked_photos(samples: Sequence[Sample], count: int) -> frozenset[str]:
    """The photos whose pictures are doubled, by the hash of their content; the order of photos does not matter."""
    first = heapq.nsmallest(count, samples, key=lambda one: content_hash("tool checks", one.digest, one.id))
    return frozenset(sample.id for sample in first)


class VariantPlan(NamedTuple):
    """The variants to make of one sample."""

    variants: list[Variant]  # the original first
    skipped: list[Skipped]  # edits that cannot be planned


@dataclass(frozen=True)
class VariantPlans:
    """Plans the variants of each sample of a run."""

    steps: Sequence[PlannedEdit]
    donors: Donors
    checks: ToolChecks = field(default_factory=ToolChecks)

    def plan(self, sample: Sample) -> VariantPlan:
        """The sample's variants, and the edits that cannot be planned."""
        plan = plan_variants(sample, self.steps, self.donors)
        doubles = plan_tool_checks(plan.variants, self.steps, self.checks) if sample.id in self.checks.photos else ()
        return plan._replace(variants=[*plan.variants, *doubles])

    def count(self, sample: Sample) -> int:
        """How many variants a sample has where every edit can be planned."""
        return self._most + (self._doubles if sample.id in self.checks.photos else 0)

    @cached_property
    def _most(self) -> int:
        return 1 + sum(step.replicates for step in self.steps)

    @cached_property
    def _doubles(self) -> int:
        return sum(
            step.replicates * (step.edit.shows_fill + 2 * (step.edit.uses_mask and _place(step) in self.checks.main))
            for step in self.steps
        )


def _place(step: PlannedEdit) -> EditLevel:
    return EditLevel(name_of(step.edit), step.edit.level)


def plan_variants(sample: Sample, steps: Sequence[PlannedEdit], donors: Donors) -> VariantPlan:
    """The variants of one sample, the original first, and the edits that cannot be planned."""
    variants, skipped = [plan_original(sample)], []
    for step in steps:
        lent: list[str] = []  # ids of the donors of earlier replicates: the same pixels must not count twice
        for replicate in range(step.replicates):
            variant = _plan_variant(sample, step, replicate, (donors, lent))
            if variant is None:
                further = f"further photo than {len(lent)}" if lent else "photo"
                reason = f"no {further} of the '{step.edit.needs.donor}' class can be the donor"
                skipped.append(Skipped(sample.id, "edit", name_of(step.edit), reason))
            else:
                variants.append(variant)
                lent += [variant.donor_id] if variant.donor_id else []
    return VariantPlan(variants, skipped)


def plan_tool_checks(
    variants: Sequence[Variant], steps: Sequence[PlannedEdit], checks: ToolChecks
) -> Iterator[Variant]:
    """The doubles of one sample's variants: edit, level, settings, seed and donor stay, the attribute is the check."""
    edit_of = {(name_of(step.edit), step.edit.level): step.edit for step in steps}
    for variant in variants:
        edit = edit_of.get((variant.edit, variant.level))
        if edit is None:
            continue
        if edit.shows_fill:
            yield _double(variant, SECOND_FILL)
        if edit.uses_mask and EditLevel(variant.edit, variant.level) in checks.main:
            yield from (_double(variant, check) for check in (GROWN_MASK, SHRUNK_MASK))


def _double(variant: Variant, check: Attribute) -> Variant:
    return replace(variant, id=id_of_choice(variant.id, check), attribute=check)


def _identifying_settings(edit: Edit) -> dict[str, object]:
    """The settings that identify the edit, without file locations and without later settings at their defaults."""
    defaults = {field.name: field.default for field in dataclasses.fields(edit)}  # type: ignore[arg-type]
    return {
        name: value
        for name, value in settings_of(edit).items()
        if name not in edit.places and not (name in edit.later and value == defaults[name])
    }


def _plan_variant(
    sample: Sample, step: PlannedEdit, replicate: int, lenders: tuple[Donors, Sequence[str]]
) -> Variant | None:
    """The variant of one replicate; None where every donor is among those that have lent already."""
    donors, lent = lenders
    name = name_of(step.edit)
    about = [sample.digest, name, _identifying_settings(step.edit), replicate, step.run_seed]
    seed = seed_from(*about)
    needs = step.edit.needs
    # All edits in a scene have one scene, so that an edit and what it is compared with differ in nothing else.
    shared = seed_from(sample.digest, "scene", replicate, step.run_seed) if needs.scene else seed
    edit = step.edit.choose(shared)
    about += [_identifying_settings(edit)] if edit != step.edit else []
    donor, rule = None, edit.needs.donor
    if rule is not None:
        donor = donors.choose(sample, rule, shared, lent)
        if donor is None:
            return None
    version = step.edit.picture_version
    about += [sample.label, step.working_size, donor.digest if donor else None]
    identity = id_from(*about, *([{"version": version}] if version > 1 else []))
    return Variant(
        id=identity, sample_id=sample.id, label=sample.label, attribute=step.edit.attribute, edit=name,
        level=step.edit.level, settings=json.dumps(settings_of(edit), sort_keys=True), seed=seed,
        donor_id=donor.id if donor else None, replicate=replicate, version=version,
    )  # fmt: skip
