"""The configuration of a repair, checked before the work begins, and what it becomes."""

from __future__ import annotations

import json
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.errors import UserError, did_you_mean, expect_kind
from counterfoil.models.model_loaders import load_model
from counterfoil.models.model_options import ModelOptions
from counterfoil.published.catalogue import open_collection
from counterfoil.recipes.edit_recipe import Recipe, load_recipe
from counterfoil.remedies.fixed_views import PREPROCESSING, CropSettings
from counterfoil.remedies.last_layer import LastLayerSettings
from counterfoil.remedies.network_file import NetworkFile, read_network
from counterfoil.remedies.photo_parts import HashedPhoto, PhotoParts, hash_photos, read_parts, split_photos
from counterfoil.remedies.picture_answers import ClassColumns, plan_parts
from counterfoil.remedies.train_settings import TrainSettings
from counterfoil.remedies.zoom import ZoomSettings
from counterfoil.run_config import RunConfig, RunPlan, check_counts, prepare
from counterfoil.segmentation import DEFAULT_SEGMENTER
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.prediction_tables import read_run
from counterfoil.types import Model, Sample, Source

LAST_LAYER, TRAIN = "last-layer", "train"
METHODS = ("zoom", "crops", LAST_LAYER, TRAIN, *PREPROCESSING)
TRIED = ("zoom", "crops", LAST_LAYER, TRAIN, "squeeze", "full-crop", "mirror")  # where no method is given
FITTED = (LAST_LAYER, TRAIN)
RECIPE, FITTING_RECIPE = "repair", "repair-fitting"
FITTING_SEED = 1_000_003  # added to the seed of the edits that a remedy is fitted on


@dataclass(frozen=True, kw_only=True)
class RepairConfig:
    """Everything about a repair that a user may choose."""

    source: Source
    model: str | Model  # by its address, or itself
    method: str | None = None  # None: all of `tried` that apply are tried on the choosing part, the best is judged
    tried: tuple[str, ...] = TRIED
    recipe: str | Recipe = RECIPE  # edits that are judged
    fitting_recipe: str | Recipe = FITTING_RECIPE
    elsewhere: Source = field(default_factory=DemoSource)  # photos of other classes
    parts: Path | None = None  # a split of one's own
    pictures: str | None = None  # a workspace or a benchmark whose pictures are fitted on too
    allow_loss: float = 1.0  # points of accuracy on unedited and other photos
    seed: int = 0
    limit: int | None = None
    workers: int | None = None
    options: ModelOptions = field(default_factory=ModelOptions)
    segmenter: str = DEFAULT_SEGMENTER
    zoom: ZoomSettings = field(default_factory=ZoomSettings)
    crops: CropSettings = field(default_factory=CropSettings)
    last_layer: LastLayerSettings = field(default_factory=LastLayerSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    command: str = ""

    def __post_init__(self) -> None:
        expect_kind(self.method, (str, type(None)), "the method as a text")
        for name in ("recipe", "fitting_recipe"):
            expect_kind(getattr(self, name), (str, Recipe), f"{name}= as the name of a recipe, a YAML file or a Recipe")
        expect_kind(self.allow_loss, numbers.Real, "the allowed loss as a number of points")
        if self.method is not None and self.method not in METHODS:
            offer = did_you_mean(self.method, METHODS)
            raise UserError(f"expected a method of {', '.join(METHODS)}, got '{self.method}'{offer}")
        if not 0 < self.allow_loss < 100:
            raise UserError(f"expected an allowed loss above 0 and below 100 points, got {self.allow_loss:g}")
        check_counts(limit=self.limit, workers=self.workers)
        if self.pictures is not None and self.method is not None and self.method not in FITTED:
            raise UserError(
                f"expected {' or '.join(FITTED)} with --pictures, got '{self.method}', which learns nothing"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the methods that have some."""
        return {"zoom": self.zoom, "crops": self.crops, LAST_LAYER: self.last_layer, TRAIN: self.train}

    def with_settings(self, given: Mapping[str, Any]) -> RepairConfig:
        """The same with other settings of the method; raises `UserError` for a setting that it does not have."""
        expect_kind(given, Mapping, "settings as a dict such as {'epochs': 10}")
        if not given:
            return self
        if self.method is None or self.method not in self.settings:
            offered, names = ", ".join(self.settings), ", ".join(map(str, given))
            raise UserError(f"expected --method with settings, one of {offered}, got {names} without one")
        known = {item.name: item for item in fields(self.settings[self.method])}
        values = {}
        for name, value in given.items():
            if name not in known:
                offer = did_you_mean(name, tuple(known))
                raise UserError(f"expected a setting of {self.method}: {', '.join(known)}; got '{name}'{offer}")
            values[name] = _convert_setting(name, value, getattr(self.settings[self.method], name))
        field_name = self.method.replace("-", "_")
        return replace(self, **{field_name: replace(self.settings[self.method], **values)})

    @property
    def address(self) -> str:
        """The model's address, or its name where it was given as an object."""
        return self.model if isinstance(self.model, str) else self.model.name

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that are tried."""
        if self.method is not None:
            return (self.method,)
        return self.tried if self.pictures is None else tuple(name for name in self.tried if name in FITTED)


def _convert_setting(name: str, value: Any, example: Any) -> Any:
    """A value as text or of its own type, in the type of the default; raises `UserError` where it is none."""
    if isinstance(example, tuple):
        parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
        return tuple(_convert_setting(name, part, example[0]) for part in parts)
    if isinstance(example, str):
        return str(value).strip()
    if isinstance(example, bool):
        return _convert_switch(name, value)
    try:
        number = float(value)
        if not isinstance(example, int):
            return number
        if number != int(number):
            raise ValueError(f"{value} is no whole number")
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"expected a number for the setting {name}, such as {example}, got '{value}'") from error
    return int(number)


def _convert_switch(name: str, value: Any) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    text = str(value).strip().lower()
    if text not in known:
        raise UserError(f"expected 1 or 0 for the setting {name}, got '{value}'")
    return known[text]


def open_run_photos(folder: Path, *, wanted: bool = True) -> tuple[Source | None, tuple[str, ...]]:
    """The photos of a finished run, and its models; raises `UserError` where the photos are wanted and gone."""
    run = read_run(folder)
    if not wanted:
        return None, run.models
    if run.collection:
        raise UserError(f"expected a run over photos, got '{folder}', an evaluation of {run.collection}; give --images")
    if not str(run.images).partition(":")[2] and not Path(run.images).is_dir():
        raise UserError(f"the photos of the run '{folder}' are gone: '{run.images}' is not there; give --images")
    return open_source(run.images, run.masks), run.models


@dataclass(frozen=True, kw_only=True)
class RepairPlan:
    """A configuration whose parts were loaded and checked."""

    config: RepairConfig
    model: Model
    network: NetworkFile
    judged: RunPlan
    hashed: Mapping[str, HashedPhoto]
    parts: PhotoParts
    others: tuple[Sample, ...]  # photos of other classes
    others_skipped: int  # photos there whose class the model does not know

    @cached_property
    def columns(self) -> ClassColumns:
        """The model's columns, and those of the photos' classes."""
        place = {label: column for column, label in enumerate(self.model.labels)}
        photos = np.array(sorted(place[label] for label in self.parts.labels), np.int64)
        return ClassColumns(labels=tuple(self.model.labels), photos=photos)

    @cached_property
    def judged_plans(self) -> list[RunPlan]:
        """What is judged, part by part."""
        return plan_parts(self.judged, self.parts)

    @cached_property
    def fitting_plans(self) -> list[RunPlan]:
        """What a remedy is fitted on, part by part: other edits, or other levels, and another seed."""
        config = replace(self.judged.config, recipe=self.config.fitting_recipe, seed=self.config.seed + FITTING_SEED)
        return plan_parts(prepare(config), self.parts)

    @cached_property
    def elsewhere_plans(self) -> list[RunPlan]:
        """The photos of other classes, unedited."""
        config = replace(self.judged.config, source=self.config.elsewhere)
        return [replace(self.judged, config=config, steps=(), samples=self.others)]

    @property
    def has_other_classes(self) -> bool:
        """Whether the model knows classes that the photos do not show."""
        return len(self.columns.labels) > len(self.columns.photos)

    def record(self) -> dict[str, Any]:
        """What identifies the repair: a folder that holds another is refused."""
        config = self.config
        return {
            "model": self.model.identity, "methods": list(config.methods), "seed": config.seed,
            "recipe": self.judged.recipe.digest, "fitting_recipe": _digest_of(config.fitting_recipe),
            "parts": self.parts.record(), "others": [sample.digest for sample in self.others],
            "pictures": "" if config.pictures is None else open_collection(config.pictures).digest,
            "settings": json.loads(json.dumps([vars(row) for row in config.settings.values()])),
        }  # fmt: skip


def _digest_of(recipe: str | Recipe) -> str:
    return (load_recipe(recipe) if isinstance(recipe, str) else recipe).digest


def prepare_repair(config: RepairConfig) -> RepairPlan:
    """Load the model and the photos and split them; raises `UserError` for all that can be wrong with the input."""
    model = load_model(config.model, options=config.options) if isinstance(config.model, str) else config.model
    network = read_network(model)
    wanted = RunConfig(
        source=config.source, models=(), label_models=(config.model,), recipe=config.recipe, limit=config.limit,
        seed=config.seed, options=config.options, segmenter=config.segmenter, workers=config.workers,
    )  # fmt: skip
    judged = prepare(wanted)
    hashed = hash_photos(config.source, judged.samples, config.workers)
    parts = split_photos(hashed, config.seed) if config.parts is None else read_parts(config.parts, hashed)
    others, unknown = _find_others(config, judged, set(parts.labels))
    return RepairPlan(
        config=config, model=model, network=network, judged=judged, hashed=hashed, parts=parts, others=others,
        others_skipped=unknown,
    )  # fmt: skip


def _find_others(config: RepairConfig, judged: RunPlan, classes: set[str]) -> tuple[tuple[Sample, ...], int]:
    """Photos of other classes that the model knows, and how many it does not know."""
    samples, _ = config.elsewhere.samples()
    label_of: dict[str, str | None] = {}
    for label in {sample.label for sample in samples}:
        try:
            label_of[label] = judged.space.resolve(label)
        except UserError:
            label_of[label] = None
    known = [
        replace(sample, label=name) for sample in samples
        if (name := label_of[sample.label]) is not None and name not in classes
    ]  # fmt: skip
    return tuple(known), sum(label_of[sample.label] is None for sample in samples)
