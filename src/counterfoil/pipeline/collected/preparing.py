"""What an evaluation was asked to do, checked at the door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from counterfoil.errors import Unusable, UserError
from counterfoil.evaluate import Collection
from counterfoil.labels import LabelSpace, imagenet1k, space_named, space_of
from counterfoil.models import ModelOptions, Scoring, load_model
from counterfoil.pipeline.collected.labelled import Labelled, with_sample
from counterfoil.pipeline.job import environment, in_turn, ready_models
from counterfoil.types import Exhibit, Model, Picture, Provenance, Run, Sample, Skipped, Variant


@dataclass(frozen=True)
class Evaluation:
    """The whole configuration of an evaluation."""

    collection: Collection
    models: tuple[str, ...]
    limit: int | None = None  # samples; each brings all of its pictures
    workers: int | None = None
    batch_size: int = 16
    scoring: Scoring | None = None  # the collection's own where none is given
    classes: str | None = None  # other classes than the collection's: a benchmark's by name, or a classes.json
    options: ModelOptions = field(default_factory=ModelOptions)
    address: str = ""  # where the collection was found
    command: str = ""

    def __post_init__(self) -> None:
        for name in ("limit", "workers", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"expected {name.replace('_', ' ')} of at least 1, got {value}")
        if not self.models:
            raise UserError("expected at least one model, got none; try --model embedded:efficientnet-lite0")
        if len(set(self.models)) < len(self.models):
            raise UserError(f"expected each model once, got {', '.join(self.models)}")

    @property
    def chosen_scoring(self) -> Scoring:
        """Whether columns of no class compete."""
        return self.scoring or self.collection.scoring


@dataclass(frozen=True)
class PreparedEvaluation:
    """An evaluation whose models were loaded and whose labels were checked."""

    asked: Evaluation
    classifiers: tuple[Model, ...]
    exhibits: Labelled  # labels as the models know them, every picture of some sample
    skipped: tuple[Skipped, ...]
    lost: tuple[str, ...] = ()  # a collection names no classes besides those of its pictures

    @property
    def models(self) -> tuple[str, ...]:
        """The models by the names that stand in the tables."""
        return tuple(classifier.name for classifier in self.classifiers)

    @cached_property
    def identities(self) -> dict[str, str]:
        """Of every model the hash of all that makes its answers."""
        return {model.name: model.identity for model in self.classifiers}

    @cached_property
    def run(self) -> Run:
        """The record of this evaluation."""
        collection = self.asked.collection
        scoring = self.asked.chosen_scoring
        return Run(
            self.asked.command, self.asked.address, None, recipe="", recipe_digest="", seed=0,
            samples=len({exhibit.variant.sample_id for exhibit in self.exhibits}),
            models=self.models,
            model_digests={model.name: model.digest for model in self.classifiers},
            preprocessing={model.name: model.preprocessing for model in self.classifiers},
            environment=environment(),
            scoring=scoring if self.asked.classes is None else f"{scoring}, classes of {self.asked.classes}",
            collection=collection.name, collection_digest=collection.digest,
            surrogates=dict(collection.surrogates), notes=tuple(collection.notes),
        )  # fmt: skip

    def picture(self, variant: Variant) -> Picture | None:
        """A picture of the collection once more; None where it cannot be read any longer."""
        try:
            image = self.asked.collection.read(self.exhibits.by_id[variant.id])
        except Unusable:
            return None
        return Picture(image, np.full(image.shape[:2], 255, np.uint8))


def prepare_evaluation(asked: Evaluation) -> PreparedEvaluation:
    """Load the models and look through the collection; everything that can be wrong is said here."""
    collection = asked.collection
    exhibits = collection.exhibits
    if not exhibits:
        raise UserError(f"expected pictures in {collection.name}, got none; {len(collection.skipped)} were left out")
    given = space_named(asked.classes) if asked.classes else collection.space
    options = replace(asked.options, classes=given)
    classifiers = tuple(load_model(address, options=options) for address in asked.models)
    space = given or space_of(classifiers[0].labels)
    label_of = {label: space.resolve(label) for label in {exhibit.variant.label for exhibit in exhibits}}
    labels = _competing(given, sorted(set(label_of.values())))
    ready = ready_models(classifiers, space, labels, asked.chosen_scoring)
    ready = tuple(collection.adapt(model) for model in ready)
    labelled = Labelled(exhibits, _chosen(exhibits, asked.limit), label_of)
    return PreparedEvaluation(asked, ready, labelled, tuple(collection.skipped))


def _competing(space: LabelSpace | None, present: Sequence[str]) -> Sequence[str]:
    """A benchmark's own classes all compete, with pictures here or not; of ImageNet's thousand those that occur."""
    if space is None or space.name == imagenet1k().name:
        return present
    return space.labels


def _chosen(exhibits: Sequence[Exhibit], limit: int | None) -> Sequence[int]:
    """The places of all pictures of the first samples of every class in turn, in the order of the collection."""
    if limit is None:
        return range(len(exhibits))
    samples = {sample.id: sample for sample in map(sample_of, map(with_sample, exhibits))}
    wanted = {sample.id for sample in in_turn(list(samples.values()), limit)}
    return [place for place, exhibit in enumerate(exhibits) if with_sample(exhibit).variant.sample_id in wanted]


def sample_of(exhibit: Exhibit) -> Sample:
    """What the manifest says of the photo behind a picture."""
    variant = exhibit.variant
    about = exhibit.photos[0] if exhibit.photos else Provenance()
    return Sample(str(variant.sample_id), variant.label, exhibit.file, None, exhibit.sample_digest, *about)
