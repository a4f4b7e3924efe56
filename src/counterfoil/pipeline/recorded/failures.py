"""The failure modes of a study: a bounded choice of what the statistics find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import (
    FEWEST_PHOTOS,
    BrokenClass,
    Details,
    LenderConfusion,
    confusions,
    details_from_tables,
    error_consistency,
    lender_confusion,
    size_falls,
    worst_classes,
    worst_photos,
)
from counterfoil.analyse.prediction_tables import DETAIL_COLUMNS
from counterfoil.pipeline.recorded.confidence import PLACED
from counterfoil.pipeline.recorded.study import Study
from counterfoil.report.failure_modes import FailureModes, ModelClass, ModelConfusion
from counterfoil.report.finding import NO_ATTRIBUTE
from counterfoil.store.results import read_centres

_MOST_CONFUSIONS = 20
_MOST_CLASSES = 5  # per model
_FEWEST_IN_CLASS = 5  # photos; benchmarks of 1,000 classes rarely have more
_MOST_PHOTOS = 12
_MOST_MODELS = 12  # whose failures are compared in pairs
_SIGNIFICANCE = 0.05
_SEED = 0  # of the resampled intervals: the same answers give the same page


def failure_modes(study: Study, details: Details) -> FailureModes:
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
        falls=size_falls(details.answers, np.random.default_rng(_SEED)),
    )


def details_of(study: Study) -> Details:
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
                found = confusions(details, model, attribute)
                clear = [row for row in found if row.photos > 1 and row.p_bh < _SIGNIFICANCE]
                yield from (ModelConfusion(model, attribute, row) for row in clear)


def _lenders(details: Details, model: str) -> list[LenderConfusion]:
    found = lender_confusion(details, model, "background")
    return [found] if found.share.n >= FEWEST_PHOTOS else []


def _classes(details: Details, model: str) -> list[BrokenClass]:
    rows = [row for row in worst_classes(details, model) if row.drop.n >= _FEWEST_IN_CLASS and row.drop.ci_low > 0]
    return rows[:_MOST_CLASSES]
