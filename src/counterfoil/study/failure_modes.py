"""Systematic failures of a study: confusions, background donors, classes, photos, errors that models share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from counterfoil.statistics.answers import NO_ATTRIBUTE, Details
from counterfoil.statistics.confusion import (
    ClassDrop,
    Confusion,
    DonorConfusion,
    ErrorConsistency,
    PhotoErrorRate,
    donor_confusion,
    error_consistency,
    list_clear_confusions,
    worst_classes,
    worst_photos,
)
from counterfoil.statistics.dose import DropThreshold, size_thresholds
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.study.runs import Study
from counterfoil.types import Attribute


class ModelConfusion(NamedTuple):
    """A confusion that an attribute's edits cause in one model more often than chance."""

    model: str
    attribute: Attribute
    confusion: Confusion


class ModelClass(NamedTuple):
    """A class on which edits cause the most failures of one model."""

    model: str
    broken: ClassDrop


@dataclass(frozen=True)
class FailureModes:
    """Systematic failures; what was not found or has too little data is left out."""

    confusions: Sequence[ModelConfusion] = ()
    donors: Sequence[DonorConfusion] = ()
    classes: Sequence[ModelClass] = ()
    photos: Sequence[PhotoErrorRate] = ()
    consistency: Sequence[ErrorConsistency] = ()
    size_thresholds: Sequence[DropThreshold] = ()

    def __bool__(self) -> bool:
        return bool(self.confusions or self.donors or self.classes or self.photos or self.consistency)


_MOST_CONFUSIONS = 20
_MOST_CLASSES = 5  # per model
_FEWEST_IN_CLASS = 5  # photos; benchmarks of 1,000 classes rarely have more
_MOST_PHOTOS = 12
_SEED = 0  # of the resampled intervals: the same answers give the same page


def find_failure_modes(study: Study) -> FailureModes:
    """Find confusions, classes and photos that fail most, failures that models share, and object-size thresholds."""
    answers = study.answers
    if not len(answers.samples):
        return FailureModes()
    confusions: list[ModelConfusion] = []
    donors: list[DonorConfusion] = []
    classes: list[ModelClass] = []
    for details in study.detail_groups:
        confusions += _confusions(details)
        for model in details.answers.models:
            donors.append(donor_confusion(details, model, "background"))
            classes += [ModelClass(model, row) for row in _classes(details, model)]
    several = len(answers.models) > 1 and not study.has_many_models
    return FailureModes(
        confusions=sorted(confusions, key=lambda row: row.confusion.p_value)[:_MOST_CONFUSIONS],
        donors=[row for row in donors if row.share.n >= FEWEST_PHOTOS],
        classes=classes,
        photos=[row for row in worst_photos(answers, limit=_MOST_PHOTOS) if row.wrong > 0],
        consistency=error_consistency(answers, np.random.default_rng(_SEED)) if several else (),
        size_thresholds=size_thresholds(answers, np.random.default_rng(_SEED)),
    )


def _confusions(details: Details) -> Iterator[ModelConfusion]:
    attributes = dict.fromkeys(condition.attribute for condition in details.answers.conditions)
    for model in details.answers.models:
        for attribute, row in list_clear_confusions(details, model, [a for a in attributes if a not in NO_ATTRIBUTE]):
            yield ModelConfusion(model, attribute, row)


def _classes(details: Details, model: str) -> list[ClassDrop]:
    rows = [row for row in worst_classes(details, model) if row.drop.n >= _FEWEST_IN_CLASS and row.drop.ci_low > 0]
    return rows[:_MOST_CLASSES]
