"""A photo is planned once, and a very large set does not fill the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from counterfoil.edits import variant_plan
from counterfoil.edits.donors import Donors
from counterfoil.edits.registry import EDITS, edit_named
from counterfoil.edits.size import Size
from counterfoil.edits.variant_plan import PlannedEdit, VariantPlans
from counterfoil.types import Sample, Variant

SAMPLES = [
    Sample(id=f"{label}/{n}", label=label, image="", mask=None, digest=f"{label}{n}")
    for label in ("cup", "dog")
    for n in range(3)
]
STEPS = [PlannedEdit(edit_named(name, {}), 1, 256, 0) for name in ("control", "background-swap", "background-folder")]


def test_the_number_of_variants_is_known_without_planning_them() -> None:
    plans = VariantPlans(STEPS, Donors(SAMPLES))
    assert [plans.count(sample) for sample in SAMPLES] == [len(plans.plan(sample).variants) for sample in SAMPLES]


def test_an_edit_without_a_donor_is_skipped_by_name() -> None:
    alone = [sample for sample in SAMPLES if sample.label == "cup"]
    made = variant_plan.plan_variants(alone[0], STEPS, Donors(alone))
    assert [variant.edit for variant in made.variants] == ["original", "control", "background-folder"]
    assert [row.reason for row in made.skipped] == ["no photo of the 'other' class can be the donor"]


@dataclass(frozen=True)
class _NewerSize(Size):
    """The edit as a next release may have it: other pictures, and a further setting."""

    version: ClassVar[int] = Size.version + 1
    later: ClassVar[tuple[str, ...]] = (*Size.later, "shadow")
    shadow: bool = False


def test_a_newer_version_of_an_edit_gives_other_ids_and_the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    old = _plan_one(Size(0.05))
    monkeypatch.setattr(variant_plan, "name_of", lambda edit: "size")
    new, shaded = _plan_one(_NewerSize(0.05)), _plan_one(_NewerSize(0.05, shadow=True))
    assert new.version == old.version + 1
    assert new.id != old.id
    assert new.seed == old.seed, "a later setting at its default is no part of the seed"
    assert shaded.seed != new.seed


def test_a_combination_is_as_new_as_its_parts() -> None:
    parts = [{"edit": "background-blur"}, {"edit": "size", "settings": {"rate": 0.05}}]
    versions = [EDITS[name].version for name in ("background-blur", "size")]
    assert edit_named("combine", {"edits": parts}).picture_version == EDITS["combine"].version + sum(versions) - 2


def _plan_one(edit: Size) -> Variant:
    return variant_plan.plan_variants(SAMPLES[0], [PlannedEdit(edit, 1, 256, 0)], Donors(SAMPLES)).variants[1]


def test_replicates_have_different_donors_and_the_one_without_a_new_donor_is_skipped() -> None:
    swaps = [PlannedEdit(edit_named("background-swap", {}), 5, 256, 0)]
    made = variant_plan.plan_variants(SAMPLES[0], swaps, Donors(SAMPLES))
    lent = [variant.donor_id for variant in made.variants[1:]]
    assert sorted(map(str, lent)) == ["dog/0", "dog/1", "dog/2"]
    assert {row.reason for row in made.skipped} == {"no further photo than 3 of the 'other' class can be the donor"}
    assert len(made.skipped) == 2
    alone = variant_plan.plan_variants(SAMPLES[0], [PlannedEdit(swaps[0].edit, 1, 256, 0)], Donors(SAMPLES))
    assert alone.variants[1] == made.variants[1], "the first replicate is what it was"
