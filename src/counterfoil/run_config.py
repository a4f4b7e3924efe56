"""The configuration of a run, checked before the work begins, and the plan that it becomes."""

from __future__ import annotations

import heapq
import json
import platform
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any, Literal, TypeAlias

from counterfoil import __version__
from counterfoil.assets.cache import cache_folder
from counterfoil.device_rendering.render_service import RenderService, check_device, open_render_service
from counterfoil.edits.edit_protocol import ComposedEdit, Edit
from counterfoil.edits.fill_choice import Fills, load_fills
from counterfoil.edits.registry import edit_named, name_of, own_ground_of, reference_of, settings_of
from counterfoil.edits.subject import Tools
from counterfoil.edits.variant_plan import PlannedEdit, ToolChecks, VariantPlans, choose_checked_photos
from counterfoil.errors import UserError, expect_choice, expect_kind
from counterfoil.execution import Execution
from counterfoil.labels.benchmark_classes import load_label_space
from counterfoil.labels.label_space import LabelSpace, infer_label_space, match_label_space
from counterfoil.mask_quality import make_mask_judge
from counterfoil.models.inference import Scoring, bind_labels, regroup_columns
from counterfoil.models.model_loaders import load_model, load_models, name_models
from counterfoil.models.model_options import ModelOptions
from counterfoil.models.reloadable_model import ReloadableModel, release_beyond_group
from counterfoil.progress import show_stage
from counterfoil.recipes.edit_recipe import Recipe, Step, load_recipe
from counterfoil.segmentation import DEFAULT_SEGMENTER, Segmenter, check_segmenter, keep_masks, make_segmenter
from counterfoil.store.piece_plan import group_models
from counterfoil.store.result_cache import ResultCache, open_result_cache
from counterfoil.store.sample_table import SampleTable
from counterfoil.types import EditLevel, Model, Picture, Run, Sample, SanityRecord, Skipped, Source, Variant
from counterfoil.variant_renderer import Renderer
from counterfoil.worker_pool import cores

_SURROGATE = "surrogate"  # a need of a step, which is skipped where the surrogate does not know the photos' labels


DoubtfulMasks: TypeAlias = Literal["leave-out", "keep"]


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The whole configuration of a run."""

    source: Source
    models: tuple[str | Model, ...]  # addresses, or models themselves
    recipe: str | Recipe = "attributes"  # by name, a YAML file, or itself
    limit: int | None = None
    workers: int | None = None
    batch_size: int = 16
    seed: int = 0
    options: ModelOptions = field(default_factory=ModelOptions)
    classes: str | None = None  # a benchmark's by name, or a classes.json; the first model's labels if not given
    scoring: Scoring = "all"  # whether columns of no photo's class compete
    segmenter: str = DEFAULT_SEGMENTER  # finds the object where a photo has no mask
    doubtful_masks: DoubtfulMasks = "leave-out"  # whether edits use masks that a network found and a test doubts
    command: str = ""
    execution: Execution = field(default_factory=Execution)  # who works on the pieces
    render_device: str = ""  # of torch, where it makes the pictures of edits; "": OpenCV, the exact way
    label_models: tuple[str | Model, ...] = ()  # models that must know the photos' labels, and are not asked

    def __post_init__(self) -> None:
        check_segmenter(self.segmenter)
        if self.doubtful_masks not in ("leave-out", "keep"):
            raise UserError(f"doubtful masks: expected 'leave-out' or 'keep', got {self.doubtful_masks!r}")
        _check_run(self)
        if self.render_device:
            check_render_device(self.render_device, self.execution)
        check_distinct(self.models)

    @property
    def recipe_name(self) -> str:
        """The recipe's name or file, as the record has it."""
        return self.recipe if isinstance(self.recipe, str) else self.recipe.name


def check_counts(**counts: int | None) -> None:
    """Raises `UserError` for a count below one; None means the default."""
    for name, count in counts.items():
        expect_kind(count, (int, type(None)), f"{name.replace('_', ' ')} as a whole number")
        if count is not None and count < 1:
            raise UserError(f"expected {name.replace('_', ' ')} of at least 1, got {count}")


def check_render_device(device: object, execution: Execution) -> None:
    """Raises `UserError` where a device cannot make pictures here."""
    expect_kind(device, str, "render device as a text")
    if execution.ray_address is not None:
        raise UserError("expected --render-device with an engine of this machine, got --engine ray; leave one out")
    check_device(str(device))


def check_distinct(models: Sequence[str | Model]) -> None:
    """Refuse a model that is named twice, since its rows could not be told apart."""
    names = name_models(models)
    if len(set(names)) < len(names):
        raise UserError(f"expected each model once, got {', '.join(names)}; give names: NAME=ADDRESS, in Python a dict")


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """A configuration whose parts were loaded and checked."""

    config: RunConfig
    recipe: Recipe
    steps: tuple[PlannedEdit, ...]
    models: tuple[Model, ...]
    space: LabelSpace
    samples: Sequence[Sample]
    skipped: tuple[Skipped, ...]
    listed: int = 0  # entries of the source: photos, whether or not they are taken, and what it left out
    surrogates: Mapping[str, Model] = field(default_factory=dict)  # by address: models that choose for edits
    empty_classes: tuple[str, ...] = ()  # class folders all of whose photos were skipped
    sanity: Mapping[str, SanityRecord] = field(default_factory=dict)  # by model: other set-ups that were tried
    notes: tuple[str, ...] = ()  # what every report must say

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: vars(self)[item.name] for item in fields(self)}  # what was loaded on demand does not travel

    @cached_property
    def variant_plans(self) -> VariantPlans:
        """The variants of each photo."""
        return VariantPlans(self.steps, self.renderer.donors, self.tool_checks)

    @cached_property
    def tool_checks(self) -> ToolChecks:
        """The pictures that are made again with another fill or mask; none where no model is asked."""
        count = self.recipe.tool_checks if self.models else 0
        photos = choose_checked_photos(self.samples, count)
        main = set(find_main_edits(self.recipe).values())
        there = [EditLevel(name_of(step.edit), step.edit.level) for step in self.steps]
        main |= {place for place in there if own_ground_of(*place) in main}
        main |= {ground for place in main if own_ground_of(*place) and (ground := reference_of(*place))}
        return ToolChecks(photos=photos, main=frozenset(main))

    @cached_property
    def identities(self) -> dict[str, str]:
        """For each model and surrogate, the hash of all that its answers depend on."""
        return {model.name: model.identity for model in (*self.models, *self.surrogates.values())}

    @cached_property
    def renderer(self) -> Renderer:
        """Resolves and renders variants."""
        samples = SampleTable.of(self.samples).by_id()
        return Renderer(
            source=self.config.source, samples=samples, working_size=self.recipe.working_size,
            segmenter=self._make_segmenter(), surrogates=dict(self.surrogates),
            judge=make_mask_judge(self.samples, self.config.segmenter),
            keeps_doubtful=self.config.doubtful_masks == "keep", tools=self.tools,
        )  # fmt: skip

    def _make_segmenter(self) -> Segmenter:
        name = self.config.segmenter
        return keep_masks(make_segmenter(self.samples, name), name, self.tools.cache)

    @cached_property
    def tools(self) -> Tools:
        """How holes are filled and what is refused; networks are loaded only where an edit shows a fill."""
        shown = self.recipe.judge_fills and any(step.edit.shows_fill or step.edit.needs.scene for step in self.steps)
        fills = load_fills() if shown else Fills()
        return Tools(
            fills=fills, allow_cut=self.recipe.allow_cut, refine=self.recipe.refine_cutouts,
            cache=open_result_cache(cache_folder()),
        )  # fmt: skip

    @property
    def results(self) -> ResultCache:
        """The results of earlier runs."""
        return self.tools.cache

    @cached_property
    def render_service(self) -> RenderService | None:
        """The device that makes the pictures of edits; None where OpenCV does."""
        return open_render_service(self.config.render_device) if self.config.render_device else None

    @property
    def rendering(self) -> str:
        """What makes the pictures of edits, where that is not OpenCV: "torch on cuda"."""
        kind = self.config.render_device.partition(":")[0]
        return f"torch on {kind}" if kind else ""

    @property
    def paints_on_gpu(self) -> bool:
        """Whether an edit makes its pictures on a GPU."""
        return any(step.edit.needs.gpu for step in self.steps)

    @cached_property
    def takes_donors(self) -> bool:
        """Whether an edit takes something from another photo."""
        return any(step.edit.needs.donor is not None for step in self.steps)

    def picture(self, variant: Variant) -> Picture:
        """A variant, rendered again."""
        return self.renderer.render(variant)

    @property
    def run(self) -> Run:
        """The record of this run."""
        config, source = self.config, self.config.source
        return Run(
            command=config.command, images=str(source.images), masks=str(source.masks) if source.masks else None,
            recipe=config.recipe_name, recipe_digest=self.recipe.digest, seed=config.seed, samples=len(self.samples),
            models=self.model_names, model_digests={model.name: model.digest for model in self.models},
            preprocessing={model.name: model.preprocessing for model in self.models}, environment=environment(),
            scoring=config.scoring if config.classes is None else f"{config.scoring}, classes of {config.classes}",
            main_edits=find_main_edits(self.recipe), segmenter=self._segmenter, doubtful_masks=config.doubtful_masks,
            tool_checks=len(self.tool_checks.photos), sanity=self.sanity,
            fills=self.tools.fills.record, allow_cut=self.recipe.allow_cut,
            refine_cutouts=self.recipe.refine_cutouts, notes=self.notes,
            rendering=self.rendering, rendered_edits=self._rendered_edits,
        )  # fmt: skip

    @property
    def _rendered_edits(self) -> tuple[str, ...]:
        """The edits whose pictures a device makes."""
        composed = [name_of(step.edit) for step in self.steps if isinstance(step.edit, ComposedEdit)]
        return tuple(dict.fromkeys(composed)) if self.rendering else ()

    @property
    def _segmenter(self) -> str:
        """The network that finds objects; empty where every photo has a mask."""
        return self.config.segmenter if any(sample.mask is None for sample in self.samples) else ""

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models' names as in the tables."""
        return tuple(model.name for model in self.models)


def prepare(config: RunConfig, planned: tuple[Sequence[Sample], Sequence[Skipped]] | None = None) -> RunPlan:
    """Load recipe, models and samples; raises `UserError` for wrong input.

    Samples that were `planned` before, with what was skipped, are neither listed nor hashed again.
    """
    recipe = load_recipe(config.recipe) if isinstance(config.recipe, str) else config.recipe
    steps, notes = _steps(recipe, config.seed)
    with show_stage("listing the photos"):
        samples, skipped = config.source.samples() if planned is None else planned
    empty = find_empty_classes(config.source, samples, skipped) if planned is None else ()
    given = load_label_space(config.classes) if config.classes else None
    options = replace(config.options, classes=given)
    addresses = (*config.models, *config.label_models)
    with show_stage(f"loading {join_addresses(addresses)}"):
        first = load_models(addresses[:1], options)
    space = given or (match_label_space(first[0].labels) if first else infer_label_space(samples, empty))
    chosen = limit_per_class(samples, config.limit)
    # a misspelt class is reported before the work begins, whether or not its masks are there
    known = space.resolve_all([*empty, *(sample.label for sample in chosen)])
    label_of = {sample.label: known[sample.label] for sample in chosen}
    labels = sorted(set(label_of.values()))
    binding = Binding(space=space, labels=tuple(labels), scoring=config.scoring)
    with show_stage(f"loading {join_addresses(addresses)}"):
        models = load_bound_models(addresses, first, options, binding)[: len(config.models)]
    without_surrogate = _without_surrogate(recipe, labels)
    steps = tuple(step for step in steps if step.edit not in [edit for edit, _ in without_surrogate])
    if config.models:  # pictures that are only built need no table of drops
        check_references(config.recipe_name, [step.edit for step in steps])
    return RunPlan(
        config=config, recipe=recipe, steps=steps, models=models, space=space,
        samples=chosen.with_labels(label_of),
        listed=len(samples) + len(skipped),
        skipped=(*skipped, *_without_need(recipe), *(row for _, row in without_surrogate)),
        surrogates=_surrogates(steps, labels), empty_classes=empty, notes=notes,
    )  # fmt: skip


def join_addresses(models: Sequence[str | Model]) -> str:
    """Models by their addresses or names, as far as a line holds them."""
    addresses = [model if isinstance(model, str) else model.name for model in models]
    return ", ".join(addresses) if len(addresses) <= 3 else f"{addresses[0]} and {len(addresses) - 1} more models"


def _steps(recipe: Recipe, seed: int) -> tuple[tuple[PlannedEdit, ...], tuple[str, ...]]:
    """The edits of a recipe as they can be made here, and notes on those that cannot be made as they were asked for.

    Two of one name and level are refused, since their rows could not be told apart.
    """
    asked = [
        PlannedEdit(edit_named(step.edit, settings), step.replicates, recipe.working_size, seed)
        for step in recipe.edits
        if step.needs in (None, _SURROGATE)
        for settings in step.all_settings
    ]
    counts = Counter((name_of(step.edit), step.edit.level) for step in asked)
    for (name, level), count in counts.items():
        if count > 1:
            raise UserError(f"expected each edit and level once in a recipe, got {name} at {level} twice")
    steps = tuple(replace(step, edit=step.edit.settle()) for step in asked)
    return steps, _note_changes([step.edit for step in asked], [step.edit for step in steps])


def _note_changes(asked: Sequence[Edit], settled: Sequence[Edit]) -> tuple[str, ...]:
    """What every report must say of edits that are made with other settings than those that were asked for."""
    names: dict[str, list[str]] = {}  # of the edits, by the settings that they were given
    for before, after in zip(asked, settled, strict=True):
        given = [f"{name}: {value}" for name, value in settings_of(after).items() if settings_of(before)[name] != value]
        if given:
            names.setdefault(", ".join(given), []).append(name_of(after))
    return tuple(
        f"made with {given}, since files that they use otherwise cannot be had here: {', '.join(dict.fromkeys(edits))}"
        for given, edits in names.items()
    )


def check_references(recipe: str, planned: Sequence[Edit]) -> None:
    """Raise `UserError` where a recipe lacks an edit that another is compared with, and say the line to add."""
    there = {(name_of(edit), edit.level) for edit in planned}
    for edit in planned:
        for required in edit.required_edits:
            level = edit_named(required.edit, required.settings).level
            if (required.edit, level) not in there:
                values = ", ".join(f"{name}: {json.dumps(value)}" for name, value in required.settings.items())
                settings = f", settings: {{{values}}}" if values else ""
                raise UserError(
                    f"recipe {recipe}: expected {EditLevel(required.edit, level)}, which {name_of(edit)} {edit.level} "
                    f"is compared with; add the line '- {{edit: {required.edit}{settings}}}'"
                )


def find_main_edits(recipe: Recipe) -> dict[str, EditLevel]:
    """The edit that each attribute is judged by first: the one marked `main`, else the first; at its last level."""
    chosen: dict[str, tuple[bool, EditLevel]] = {}
    for step in recipe.edits:
        if step.needs not in (None, _SURROGATE):  # not made, and perhaps no edit that is known here
            continue
        edit = edit_named(step.edit, step.all_settings[-1])
        marked, _ = chosen.get(edit.attribute, (False, None))
        if edit.attribute not in chosen or (step.main and not marked):
            chosen[edit.attribute] = step.main, EditLevel(step.edit, edit.level)
    return {attribute: place for attribute, (_, place) in chosen.items()}


def _describe_need(step: Step, settings: dict[str, Any]) -> str:
    values = ", ".join(f"{name} {value}" for name, value in settings.items())
    return f"{step.edit}{f' ({values})' if values else ''} needs a {step.needs}, and none was given"


def _surrogates(steps: Sequence[PlannedEdit], labels: Sequence[str]) -> dict[str, Model]:
    """The models that choose for edits."""
    asking = [(step.edit, address) for step in steps if (address := step.edit.needs.surrogate) is not None]
    addresses = sorted({address for _, address in asking})
    binding = Binding(space=None, labels=tuple(labels), scoring="all")
    load = {address: partial(load_bound, address, ModelOptions(), binding) for address in addresses}
    surrogates = {address: ReloadableModel(load[address], load[address]()) for address in addresses}
    for edit, address in asking:
        edit.check_surrogate(surrogates[address])
    return dict(surrogates)


@dataclass(frozen=True, kw_only=True)
class Binding:
    """What a loaded model becomes in a run: over which labels, and how its columns compete."""

    space: LabelSpace | None
    labels: tuple[str, ...]
    scoring: Scoring
    adapt: Callable[[Model], Model] | None = None  # to a collection

    def bind(self, model: Model) -> Model:
        """The model over these labels; raises `UserError` where it lacks one.

        Where each class is one column and all columns compete, a model is unchanged.
        """
        space = self.space
        plain = space is None or (
            self.scoring == "all" and all(space.ids_of(label) == (label,) for label in self.labels)
        )
        if not plain and space is not None:
            model = regroup_columns(model, space, self.labels, self.scoring)
        bound = bind_labels(model, self.labels)
        return bound if self.adapt is None else self.adapt(bound)


def load_bound(address: str, options: ModelOptions, binding: Binding) -> Model:
    """The model at an address as a run uses it."""
    return binding.bind(load_model(address, options=options))


def load_bound_models(
    models: Sequence[str | Model], first: Sequence[Model], options: ModelOptions, binding: Binding
) -> tuple[Model, ...]:
    """The models as a run uses them, one loaded after the other; the `first` are loaded already.

    Of more models than one group holds, only the facts are kept until a piece needs them.
    """
    bound: list[Model] = []
    for place, model in enumerate(models):
        if not isinstance(model, str):  # an object, which cannot be loaded again
            bound.append(binding.bind(model))
            continue
        loaded = first[place] if place < len(first) else load_model(model, options=options)
        bound.append(ReloadableModel(partial(load_bound, model, options, binding), binding.bind(loaded)))
        release_beyond_group(bound)
    return tuple(bound)


def group_bound_models(models: Sequence[Model]) -> tuple[tuple[str, ...], ...]:
    """The names of the models that a worker holds at once, group by group."""
    kinds = {model.name: model.preprocessing for model in models}
    return group_models(kinds, {model.name: model.parameters for model in models})


def _without_need(recipe: Recipe) -> list[Skipped]:
    """The skipped steps, whose needs are not met."""
    return [
        Skipped("every photo", "edit", step.edit, _describe_need(step, settings))
        for step in recipe.edits
        if step.needs not in (None, _SURROGATE)
        for settings in step.all_settings
    ]


def _without_surrogate(recipe: Recipe, labels: Sequence[str]) -> list[tuple[Edit, Skipped]]:
    """The optional edits whose surrogate does not know the photos' labels, with the reason."""
    refused = []
    steps = [step for step in recipe.edits if step.needs == _SURROGATE]
    for edit in (edit_named(step.edit, settings) for step in steps for settings in step.all_settings):
        try:
            bind_labels(load_model(edit.needs.surrogate or ""), labels)
        except UserError as error:
            refused.append((edit, Skipped("every photo", "edit", name_of(edit), str(error))))
    return refused


def find_empty_classes(source: Source, samples: Sequence[Sample], skipped: Sequence[Skipped]) -> tuple[str, ...]:
    """The classes of a source all of whose photos were skipped."""
    return tuple(sorted(set(source.labels) - {sample.label for sample in samples})) if skipped else ()


def limit_per_class(samples: Sequence[Sample], limit: int | None) -> SampleTable:
    """The first photos, taken from the classes in turn, so that a limit does not drop whole classes; by their ids."""
    chosen = samples if limit is None else take_classes_in_turn(samples, limit)
    return SampleTable.of(chosen).in_order()


def take_classes_in_turn(samples: Sequence[Sample], most: int) -> list[Sample]:
    """The first photo of every class, then the second of each, and so on."""
    turn: dict[str, int] = {}
    rank = array("L")
    for sample in samples:
        turn[sample.label] = turn.get(sample.label, -1) + 1
        rank.append(turn[sample.label])
    keys = zip(rank, (sample.id for sample in samples), range(len(samples)), strict=True)
    return [samples[place] for *_, place in heapq.nsmallest(most, keys)]


def environment() -> dict[str, str]:
    """The versions and the platform that the results were made with."""
    packages = ("numpy", "opencv-python-headless", "onnxruntime", "pillow")
    return {
        "counterfoil": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": str(cores()),
        **{package: version(package) for package in packages},
    }


def _check_run(config: RunConfig) -> None:
    check_counts(limit=config.limit, workers=config.workers)
    check_settings(batch_size=config.batch_size, seed=config.seed, options=config.options, classes=config.classes)
    expect_choice(config.scoring, ("all", "subset"), "scoring")


def check_settings(*, batch_size: object, seed: object, options: object, classes: object) -> None:
    """Raises `UserError` where Python was given a setting of another kind."""
    expect_kind(batch_size, int, "batch size as a whole number")
    check_counts(batch_size=batch_size)  # type: ignore[arg-type]  # a whole number
    expect_kind(seed, int, "seed as a whole number")
    expect_kind(options, ModelOptions, "options= as ModelOptions")
    expect_kind(classes, (str, type(None)), "classes as a benchmark's name or a JSON file")
    if classes == "":
        raise UserError("expected classes as a benchmark's name or a JSON file, got an empty text")
