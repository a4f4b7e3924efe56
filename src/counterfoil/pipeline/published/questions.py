"""The questions that an archive ships or asks in a way of its own, put to the models."""

from __future__ import annotations

from dataclasses import replace

from counterfoil.evaluate import Collection
from counterfoil.models.vlm import VisionLanguageModel
from counterfoil.pipeline.published.survival import Surviving
from counterfoil.published import Archive
from counterfoil.published.laid import EveryBackground
from counterfoil.types import Classifier


def with_questions(model: Classifier, collection: Collection) -> Classifier:
    """The model, asked as the archive wants it: with its wrong answers, or on background after background."""
    if isinstance(collection, EveryBackground):
        _ = collection.backgrounds  # decoded now, so that forked processes share them
        return Surviving(model, collection)
    if not isinstance(collection, Archive) or not isinstance(model, VisionLanguageModel):
        return model
    known = set(model.labels)
    offered = {sample: label for sample, label in collection.distractors.items() if label in known}
    return replace(model, given={**offered, **model.given})
