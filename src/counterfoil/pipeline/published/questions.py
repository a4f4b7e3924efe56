"""The questions that an archive ships, put to models that are asked."""

from __future__ import annotations

from dataclasses import replace

from counterfoil.evaluate import Collection
from counterfoil.models.vlm import VisionLanguageModel
from counterfoil.published import Archive
from counterfoil.types import Classifier


def with_questions(model: Classifier, collection: Collection) -> Classifier:
    """The model, offered the archive's own wrong answers; those that the user gave in a file come first."""
    if not isinstance(collection, Archive) or not isinstance(model, VisionLanguageModel):
        return model
    known = set(model.labels)
    offered = {sample: label for sample, label in collection.distractors.items() if label in known}
    return replace(model, given={**offered, **model.given})
