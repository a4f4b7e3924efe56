"""The pieces of a run: how its photos and edits are cut into parts, and what the name of a part depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from counterfoil import __version__
from counterfoil.edits.registry import name_of, settings_of
from counterfoil.run_config import RunPlan, group_bound_models
from counterfoil.segmentation import name_masks
from counterfoil.store.parts import part_name
from counterfoil.store.piece_plan import Layer, PiecePlan, choose_size, hash_samples


def plan_pieces(plan: RunPlan) -> PiecePlan:
    """The pieces of a run and the names of their parts."""
    config, recipe = plan.config, plan.recipe
    masked = all(sample.mask is not None for sample in plan.samples)
    rendering = [plan.rendering] if plan.rendering else []
    refined = ["refined"] if plan.tools.refine else []
    digest = part_name(
        __version__, hash_samples(plan.samples), config.seed, recipe.working_size, recipe.judge_fills,
        plan.tools.fills.record, plan.tools.allow_cut,
        [] if masked else [name_masks(config.segmenter), config.doubtful_masks], *rendering, *refined,
    )  # fmt: skip
    names = tuple(dict.fromkeys(name_of(step.edit) for step in plan.steps))
    return PiecePlan(
        command="run" if plan.models else "build", digest=digest, items=len(plan.samples),
        size=choose_size(len(plan.samples), any(model.usage is not None for model in plan.models)),
        models={model.name: model.identity for model in plan.models},
        groups=group_bound_models(plan.models),
        layers=(_plan_layer(plan, ("original", *names)),),
        steps=tuple((name_of(step.edit), step.edit.level) for step in plan.steps),
        working_size=recipe.working_size, skipped=plan.skipped,
    )  # fmt: skip


def _plan_layer(plan: RunPlan, edits: Sequence[str]) -> Layer:
    """A layer of these edits, with the hash of all that their pictures depend on."""
    steps = [step for step in plan.steps if name_of(step.edit) in edits]
    settings = [
        [name_of(step.edit), settings_of(step.edit), step.replicates, step.edit.picture_version] for step in steps
    ]
    chosen_by = sorted({step.edit.needs.surrogate for step in steps if step.edit.needs.surrogate is not None})
    checked = sorted(place for place in plan.tool_checks.main if place.edit in edits)
    about = [settings, [plan.surrogates[address].identity for address in chosen_by], checked]
    return Layer(edits=tuple(edits), digest=part_name(*about, sorted(plan.tool_checks.photos)))


def continue_plan(plan: RunPlan, pieces: PiecePlan, earlier: PiecePlan | None) -> PiecePlan:
    """The pieces in the layers of an earlier plan, with the edits that it lacks as a further layer.

    A plan without the earlier one's edits, or with other settings of them, stays as it is.
    """
    if earlier is None:
        return pieces
    (whole,) = pieces.layers
    there = [edit for layer in earlier.layers for edit in layer.edits]
    kept = tuple(_plan_layer(plan, layer.edits) for layer in earlier.layers)
    if not set(there) <= set(whole.edits) or kept != earlier.layers:
        return pieces
    added = [edit for edit in whole.edits if edit not in there]
    return replace(pieces, layers=(*kept, _plan_layer(plan, added)) if added else kept)
