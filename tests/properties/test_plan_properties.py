"""Seeds, ids and donors of variants depend on their own content alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.edits.donors import Donors
from counterfoil.edits.registry import edit_named
from counterfoil.edits.seeds import id_from, id_of_choice, seed_from, seed_of_attempt
from counterfoil.edits.variant_plan import PlannedEdit, VariantPlans, plan_variants
from counterfoil.types import DonorRule, Sample, Variant

EDITS = [edit_named(name, {}) for name in ("background-blur", "control", "direction", "position", "size")]
EDITS += [edit_named("background-swap", {"donors": rule}) for rule in ("other", "same")]
RULES: tuple[DonorRule, ...] = ("same", "other", "next")


@st.composite
def sample_lists(draw: st.DrawFn, least: int = 1) -> list[Sample]:
    """Photos of a few classes, each with an id and a digest of its own."""
    places = st.tuples(st.sampled_from(["cup", "dog", "elk", "fox"]), st.integers(0, 9))
    chosen = draw(st.lists(places, unique=True, min_size=least, max_size=12))
    return [Sample(id=f"{label}/{n}", label=label, image="", mask=None, digest=f"{label}-{n}") for label, n in chosen]


@st.composite
def step_lists(draw: st.DrawFn) -> list[PlannedEdit]:
    """Steps of a recipe, each edit at most once."""
    edits = draw(st.lists(st.sampled_from(EDITS), unique=True, min_size=1, max_size=4))
    size, seed = draw(st.sampled_from([None, 224, 384])), draw(st.integers(0, 3))
    return [PlannedEdit(edit, draw(st.integers(1, 3)), size, seed) for edit in edits]


def variants_of(samples: Sequence[Sample], steps: Sequence[PlannedEdit]) -> set[Variant]:
    donors = Donors(samples)
    return {variant for sample in samples for variant in plan_variants(sample, steps, donors).variants}


@given(sample_lists(), step_lists(), st.data())
def test_removing_or_reordering_edits_leaves_the_variants_of_the_others(
    samples: list[Sample], steps: list[PlannedEdit], data: st.DataObject
) -> None:
    kept = data.draw(st.permutations(steps))[: data.draw(st.integers(0, len(steps)))]
    one_by_one = [variants_of(samples, [step]) for step in kept]
    assert variants_of(samples, kept) == variants_of(samples, []).union(*one_by_one)
    assert variants_of(samples, kept) <= variants_of(samples, steps)


@given(sample_lists(), step_lists(), st.integers(1, 3))
def test_more_replicates_leave_the_first_ones(samples: list[Sample], steps: list[PlannedEdit], more: int) -> None:
    first = {variant for step in steps for variant in variants_of(samples, [step])}
    longer = [replace(step, replicates=step.replicates + more) for step in steps]
    added = variants_of(samples, longer) - first
    assert first <= variants_of(samples, longer)
    assert all(variant.replicate >= min(step.replicates for step in steps) for variant in added)


@given(sample_lists(least=2), step_lists(), st.data())
def test_the_order_of_the_photos_changes_nothing(
    samples: list[Sample], steps: list[PlannedEdit], data: st.DataObject
) -> None:
    assert variants_of(data.draw(st.permutations(samples)), steps) == variants_of(samples, steps)


@given(sample_lists(least=2), step_lists(), st.data())
def test_removing_photos_leaves_every_variant_whose_photo_and_donor_remain(
    samples: list[Sample], steps: list[PlannedEdit], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(samples), unique=True, min_size=1))
    there = {None, *(sample.id for sample in kept)}
    before = variants_of(samples, steps)

    def stays(variant: Variant) -> bool:
        """A replicate takes none of the donors of the replicates before it, so that they must be there too."""
        mine = (variant.sample_id, variant.edit, variant.settings)
        earlier = [v for v in before if (v.sample_id, v.edit, v.settings) == mine and v.replicate < variant.replicate]
        return {variant.sample_id, variant.donor_id, *(v.donor_id for v in earlier)} <= there

    assert {variant for variant in before if stays(variant)} <= variants_of(kept, steps)


@given(sample_lists(least=2), st.sampled_from(RULES), st.integers(0, 2**64 - 1), st.data())
def test_a_pair_of_photo_and_donor_stays_while_both_are_there(
    samples: list[Sample], rule: DonorRule, seed: int, data: st.DataObject
) -> None:
    sample = data.draw(st.sampled_from(samples))
    donor = Donors(samples).choose(sample, rule, seed)
    if donor is not None:
        assert donor != sample
        assert (donor.label == sample.label) == (rule == "same")
        rest = data.draw(st.lists(st.sampled_from(samples), unique=True))
        kept = [one for one in data.draw(st.permutations(samples)) if one in rest or one in (sample, donor)]
        assert Donors(kept).choose(sample, rule, seed) == donor


@given(sample_lists(), step_lists(), st.integers(0, 3))
def test_no_two_variants_share_an_id_and_a_new_seed_of_the_run_changes_every_one(
    samples: list[Sample], steps: list[PlannedEdit], seed: int
) -> None:
    donors = Donors(samples)
    variants = [variant for sample in samples for variant in plan_variants(sample, steps, donors).variants]
    assert len({variant.id for variant in variants}) == len(variants)
    other = variants_of(samples, [replace(step, run_seed=step.run_seed + 1 + seed) for step in steps])
    shared = {variant.id for variant in variants} & {variant.id for variant in other}
    assert shared == {variant.id for variant in variants if variant.edit == "original"}


@given(sample_lists(), step_lists(), st.data())
def test_plans_are_the_same_in_whatever_order_workers_take_them(
    samples: list[Sample], steps: list[PlannedEdit], data: st.DataObject
) -> None:
    donors = Donors(samples)
    plans = VariantPlans(steps, donors)
    for sample in data.draw(st.permutations(samples)):
        assert plans.plan(sample) == plan_variants(sample, steps, donors)


PARTS = st.lists(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)


@given(PARTS, PARTS)
def test_seeds_and_ids_are_equal_where_the_content_is(first: list[Any], second: list[Any]) -> None:
    again = [dict(reversed(part.items())) if isinstance(part, dict) else part for part in first]
    assert (seed_from(*again), id_from(*again)) == (seed_from(*first), id_from(*first))
    assert (repr(first) == repr(second)) == (id_from(*first) == id_from(*second)) or first == second
    assert 0 <= seed_from(*first) < 2**64
    assert len(id_from(*first)) == 20


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 10**6), unique=True, min_size=2, max_size=20))
def test_attempts_and_choices_have_seeds_and_ids_of_their_own(seed: int, numbers: list[int]) -> None:
    assert len({seed_of_attempt(seed, number) for number in numbers} | {seed}) == len(numbers) + 1
    assert len({id_of_choice(id_from(seed), str(number)) for number in numbers}) == len(numbers)
