"""The configuration of a run, checked before the work begins, and the plan that it becomes."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

from counterfoil import __version__
from counterfoil.edits.edit_protocol import Edit
from counterfoil.edits.registry import edit_named, name_of
from counterfoil.edits.variant_plan import Planned, Plans
from counterfoil.errors import UserError
from counterfoil.labels.label_space import LabelSpace, space_named, space_of, space_of_folders
from counterfoil.models.inference import Scoring, bind_labels, scored
from counterfoil.models.model_loaders import load_model
from counterfoil.models.model_options import ModelOptions
from counterfoil.recipes.edit_recipe import Recipe, Step, load_recipe
from counterfoil.rendering import Renderer
from counterfoil.segmentation import segmenter_for
from counterfoil.types import Model, Picture, Run, Sample, Skipped, Source, Variant
from counterfoil.worker_pool import cores


def classes_without_photos(source: Source, samples: Sequence[Sample], skipped: Sequence[Skipped]) -> tuple[str, ...]:
    """The class folders all of whose photos were left out, by name."""
    if not skipped:
        return ()
    return tuple(sorted(set(source.labels) - {sample.label for sample in samples}))


_SURROGATE = "surrogate"  # a need of a step: skipped by name where the surrogate does not know the photos' labels


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The whole configuration of a run."""

    source: Source
    models: tuple[str, ...]
    recipe: str = "attributes"
    limit: int | None = None
    workers: int | None = None
    batch_size: int = 16
    seed: int = 0
    options: ModelOptions = field(default_factory=ModelOptions)
    classes: str | None = (
        None  # a benchmark's classes by name, or a classes.json; the first model's labels if not given
    )
    scoring: Scoring = "all"  # whether columns of no photo's class compete
    command: str = ""

    def __post_init__(self) -> None:
        for name in ("limit", "workers", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"expected {name.replace('_', ' ')} of at least 1, got {value}")
        if len(set(self.models)) < len(self.models):
            raise UserError(f"expected each model once, got {', '.join(self.models)}")


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """A job whose parts were loaded and checked: nothing can be misspelt from here on."""

    job: RunConfig
    recipe: Recipe
    steps: tuple[Planned, ...]
    classifiers: tuple[Model, ...]
    space: LabelSpace
    samples: tuple[Sample, ...]
    skipped: tuple[Skipped, ...]
    surrogates: Mapping[str, Model] = field(default_factory=dict)  # by address: models that choose among edits
    lost: tuple[str, ...] = ()  # class folders all of whose photos were skipped

    @cached_property
    def plans(self) -> Plans:
        """Which variants each photo gets."""
        return Plans(self.steps, self.studio.donors)

    @cached_property
    def identities(self) -> dict[str, str]:
        """Of every model that has a say, the hash of all that makes its answers."""
        return {model.name: model.identity for model in (*self.classifiers, *self.surrogates.values())}

    @cached_property
    def studio(self) -> Renderer:
        """Where variants are resolved and made."""
        samples = {sample.id: sample for sample in self.samples}
        segmenter, surrogates = segmenter_for(self.samples), dict(self.surrogates)
        return Renderer(
            source=self.job.source,
            samples=samples,
            working_size=self.recipe.working_size,
            segmenter=segmenter,
            surrogates=surrogates,
        )

    def picture(self, variant: Variant) -> Picture:
        """A variant, made once more."""
        return self.studio.make(variant)

    @property
    def run(self) -> Run:
        """The record of this run."""
        source = self.job.source
        return Run(
            command=self.job.command,
            images=str(source.images),
            masks=str(source.masks) if source.masks else None,
            recipe=self.job.recipe,
            recipe_digest=self.recipe.digest,
            seed=self.job.seed,
            samples=len(self.samples),
            models=self.models,
            model_digests={classifier.name: classifier.digest for classifier in self.classifiers},
            preprocessing={classifier.name: classifier.preprocessing for classifier in self.classifiers},
            environment=environment(),
            scoring=self.job.scoring
            if self.job.classes is None
            else f"{self.job.scoring}, classes of {self.job.classes}",
        )

    @property
    def models(self) -> tuple[str, ...]:
        """The models by the names that stand in the tables: the address, and what was made of it."""
        return tuple(classifier.name for classifier in self.classifiers)


def prepare(job: RunConfig) -> RunPlan:
    """Load recipe, models and samples; everything that can be wrong is said here."""
    recipe = load_recipe(job.recipe)
    steps = tuple(
        Planned(edit_named(step.edit, settings), step.replicates, recipe.working_size, job.seed)
        for step in recipe.edits
        if step.needs in (None, _SURROGATE)
        for settings in step.all_settings
    )
    _refuse_doubles(steps)
    samples, skipped = job.source.samples()
    lost = classes_without_photos(job.source, samples, skipped)
    given = space_named(job.classes) if job.classes else None
    options = replace(job.options, classes=given)
    classifiers = tuple(load_model(address, options=options) for address in job.models)
    space = given or (space_of(classifiers[0].labels) if classifiers else space_of_folders(samples, lost))
    for label in lost:
        space.resolve(label)  # a misspelt class is told at the door, whether or not its masks are there
    chosen = limit_per_class(samples, job.limit)
    label_of = {label: space.resolve(label) for label in {sample.label for sample in chosen}}
    labelled = tuple(replace(sample, label=label_of[sample.label]) for sample in chosen)
    labels = sorted(set(label_of.values()))
    ready = ready_models(classifiers, space, labels, job.scoring)
    lacking = _lacking(recipe, labels)
    steps = tuple(step for step in steps if step.edit not in [edit for edit, _ in lacking])
    waiting = (*_waiting(recipe), *(row for _, row in lacking))
    rows = (*skipped, *waiting)
    return RunPlan(
        job=job,
        recipe=recipe,
        steps=steps,
        classifiers=ready,
        space=space,
        samples=labelled,
        skipped=rows,
        surrogates=_surrogates(steps, labels),
        lost=lost,
    )


def _refuse_doubles(steps: Sequence[Planned]) -> None:
    """Two steps in one row of the table could not be told apart in the statistics."""
    seen: set[tuple[str, str]] = set()
    for step in steps:
        row = (name_of(step.edit), step.edit.level)
        if row in seen:
            raise UserError(f"expected each edit and level once in a recipe, got {row[0]} at {row[1]} twice")
        seen.add(row)


def _need(step: Step, settings: dict[str, Any]) -> str:
    told = ", ".join(f"{name} {value}" for name, value in settings.items())
    return f"{step.edit}{f' ({told})' if told else ''} needs a {step.needs}, and none was given"


def _surrogates(steps: Sequence[Planned], labels: Sequence[str]) -> dict[str, Model]:
    """The models that edits ask for a choice."""
    asking = [(step.edit, address) for step in steps if (address := step.edit.needs.surrogate) is not None]
    addresses = sorted({address for _, address in asking})
    surrogates = {address: bind_labels(load_model(address), labels) for address in addresses}
    for edit, address in asking:
        edit.check_surrogate(surrogates[address])
    return surrogates


def ready_models(
    classifiers: Sequence[Model], space: LabelSpace, labels: Sequence[str], scoring: Scoring
) -> tuple[Model, ...]:
    """The models over these labels, checked to know them all."""
    return tuple(bind_labels(_scored(classifier, space, labels, scoring), labels) for classifier in classifiers)


def _scored(classifier: Model, space: LabelSpace, labels: Sequence[str], scoring: Scoring) -> Model:
    """The model over the photos' classes; where each class is one column and all compete, the model as it is."""
    plain = scoring == "all" and all(space.ids_of(label) == (label,) for label in labels)
    return classifier if plain else scored(classifier, space, labels, scoring)


def _waiting(recipe: Recipe) -> list[Skipped]:
    """The steps that need what is not there, skipped by name."""
    return [
        Skipped("every photo", "edit", step.edit, _need(step, settings))
        for step in recipe.edits
        if step.needs not in (None, _SURROGATE)
        for settings in step.all_settings
    ]


def _lacking(recipe: Recipe, labels: Sequence[str]) -> list[tuple[Edit, Skipped]]:
    """The edits that go without where their surrogate does not know the photos' labels, and why."""
    found = []
    wanting = [step for step in recipe.edits if step.needs == _SURROGATE]
    for edit in (edit_named(step.edit, settings) for step in wanting for settings in step.all_settings):
        try:
            bind_labels(load_model(edit.needs.surrogate or ""), labels)
        except UserError as error:
            found.append((edit, Skipped("every photo", "edit", name_of(edit), str(error))))
    return found


def limit_per_class(samples: Sequence[Sample], limit: int | None) -> list[Sample]:
    """The first photos of every class in turn, so that a limit does not cut whole classes away."""
    turn: dict[str, int] = {}
    rank = {}
    for sample in samples:
        rank[sample.id] = turn[sample.label] = turn.get(sample.label, -1) + 1
    ordered = sorted(samples, key=lambda sample: (rank[sample.id], sample.id))
    return sorted(ordered[:limit], key=lambda sample: sample.id)


def environment() -> dict[str, str]:
    """What the numbers were made with."""
    packages = ("numpy", "opencv-python-headless", "onnxruntime", "pillow")
    return {
        "counterfoil": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": str(cores()),
        **{package: version(package) for package in packages},
    }
