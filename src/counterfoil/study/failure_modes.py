"""Failure modes of a study; records of failure modes, two sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Details
from counterfoil.statistics.confusion import (
    ClassDrop,
    Confusion,
    DonorConfusion,
    ErrorConsistency,
    PhotoErrorRate,
    donor_confusion,
    error_consistency,
    find_confusions,
    worst_classes,
    worst_photos,
)
from counterfoil.statistics.dose import DropThreshold, size_thresholds
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.store.prediction_tables import read_centres
from counterfoil.study.confidence import PLACED
from counterfoil.study.predictions import DETAIL_COLUMNS, details_from_tables
from counterfoil.study.runs import NO_ATTRIBUTE, Study
from counterfoil.types import Attribute


class ModelConfusion(NamedTuple):
    """A confusion that an attribute's edits create in one model more often than chance would."""

    model: str
    attribute: Attribute
    confusion: Confusion


class ModelClass(NamedTuple):
    """A class that edits break most in one model."""

    model: str
    broken: ClassDrop


@dataclass(frozen=True)
class FailureModes:
    """The systematic part of the failures; what was not found or rests on too little is left out."""

    confusions: Sequence[ModelConfusion] = ()
    lenders: Sequence[DonorConfusion] = ()
    classes: Sequence[ModelClass] = ()
    photos: Sequence[PhotoErrorRate] = ()
    consistency: Sequence[ErrorConsistency] = ()
    falls: Sequence[DropThreshold] = ()

    def __bool__(self) -> bool:
        return bool(self.confusions or self.lenders or self.classes or self.photos or self.consistency)


_MOST_CONFUSIONS = 20
_MOST_CLASSES = 5  # per model
_FEWEST_IN_CLASS = 5  # photos; benchmarks of 1,000 classes rarely have more
_MOST_PHOTOS = 12
_MOST_MODELS = 12  # whose failures are compared in pairs
_SIGNIFICANCE = 0.05
_SEED = 0  # of the resampled intervals: the same answers give the same page


def find_failure_modes(study: Study, details: Details) -> FailureModes:
    """Confusions, broken classes and photos, failures that models share, and how small an object may be."""
    if not len(details.answers.samples):
        return FailureModes()
    several = 1 < len(study.files) <= _MOST_MODELS
    return FailureModes(
        confusions=sorted(_confusions(details), key=lambda row: row.confusion.p_value)[:_MOST_CONFUSIONS],
        lenders=[row for model in study.files for row in _lenders(details, model)],
        classes=[ModelClass(model, row) for model in study.files for row in _classes(details, model)],
        photos=[row for row in worst_photos(details.answers, limit=_MOST_PHOTOS) if row.wrong > 0],
        consistency=error_consistency(details.answers, np.random.default_rng(_SEED)) if several else (),
        falls=size_thresholds(details.answers, np.random.default_rng(_SEED)),
    )


def read_details(study: Study) -> Details:
    """All that the models said of the study's pictures, with what lent a background and where objects stand."""
    tables = {model: table.columns(DETAIL_COLUMNS) for model, table in study.predictions.items()}
    placed = {attribute for _, attribute in PLACED}
    centres = read_centres(study.manifest, placed)
    return details_from_tables(tables, lenders=_lending_classes(study.manifest), centres=centres)


def _lending_classes(table: Mapping[str, NDArray[Any]]) -> Mapping[str, str]:
    """The class of the photo that lent its background, by variant."""
    label_of = dict(zip(table["sample_id"], table["label"], strict=True))
    lent = zip(table["id"], table["donor_id"], strict=True)
    return {variant: label_of[donor] for variant, donor in lent if donor in label_of}


def _confusions(details: Details) -> Iterator[ModelConfusion]:
    attributes = dict.fromkeys(condition.attribute for condition in details.answers.conditions)
    for model in details.answers.models:
        for attribute in attributes:
            if attribute not in NO_ATTRIBUTE:
                found = find_confusions(details, model, attribute)
                clear = [row for row in found if row.photos > 1 and row.p_bh < _SIGNIFICANCE]
                yield from (ModelConfusion(model, attribute, row) for row in clear)


def _lenders(details: Details, model: str) -> list[DonorConfusion]:
    found = donor_confusion(details, model, "background")
    return [found] if found.share.n >= FEWEST_PHOTOS else []


def _classes(details: Details, model: str) -> list[ClassDrop]:
    rows = [row for row in worst_classes(details, model) if row.drop.n >= _FEWEST_IN_CLASS and row.drop.ci_low > 0]
    return rows[:_MOST_CLASSES]
