"""Confidence of a study's models, and accuracy by the object's position in the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from counterfoil.statistics.answers import NO_ATTRIBUTE, Details
from counterfoil.statistics.calibration import (
    ConfidenceChange,
    MarginChange,
    ReliabilityPoint,
    confidence_changes,
    margin_changes,
    reliability_curve,
)
from counterfoil.statistics.confusion import PositionMap, position_map
from counterfoil.types import Attribute


@dataclass(frozen=True)
class Reliability:
    """Accuracy of one model by confidence, on the unedited photos and after the edits."""

    model: str
    before: Sequence[ReliabilityPoint]  # empty where there are no originals
    after: Sequence[ReliabilityPoint]


@dataclass(frozen=True)
class Confidences:
    """Results from the confidences; empty where the models give none."""

    curves: Sequence[Reliability] = ()
    changes: Sequence[ConfidenceChange] = ()
    margins: Sequence[MarginChange] = ()

    def __bool__(self) -> bool:
        return bool(self.curves)


PictureKind: TypeAlias = Literal["moved", "unedited"]


class ModelPositionMap(NamedTuple):
    """Accuracy of one model by position: of objects moved there, or standing there in the unedited photos."""

    model: str
    kind: PictureKind
    positions: PositionMap


_MOST_MODELS = 12  # whose curves and maps are drawn
FEWEST_ANSWERS = 50  # for a curve: five bins of ten
_COARSE, _FINE, _PICTURES_FOR_FINE = 3, 5, 500  # cells of a map per axis
_MAPPED: tuple[tuple[PictureKind, Attribute], ...] = (("moved", "position"), ("unedited", "original"))


def measure_confidences(details: Details) -> Confidences:
    """Return curves, changes by attribute and margins; empty where the models give no confidence."""
    curves = [_reliability(details, model) for model in details.answers.models[:_MOST_MODELS]]
    curves = [curve for curve in curves if sum(point.n for point in curve.after) >= FEWEST_ANSWERS]
    if not curves or not details.answers.conditions_of({"original"}).any():
        return Confidences(curves)
    known = {curve.model for curve in curves}
    return Confidences(
        curves,
        [row for row in confidence_changes(details) if row.model in known],
        [row for row in margin_changes(details) if row.model in known],
    )


def _reliability(details: Details, model: str) -> Reliability:
    attributes = {condition.attribute for condition in details.answers.conditions}
    edited = attributes - NO_ATTRIBUTE
    if not edited:  # a collection of unedited pictures only
        return Reliability(model, [], reliability_curve(details, model, attributes))
    before = reliability_curve(details, model, {"original"})
    enough = sum(point.n for point in before) >= FEWEST_ANSWERS
    return Reliability(model, before if enough else [], reliability_curve(details, model, edited))


def position_maps(details: Details) -> list[ModelPositionMap]:
    """Return each model's accuracy by position: for objects moved by an edit, and for those of the unedited photos."""
    return [
        ModelPositionMap(model, kind, position_map(only, model, cells=_cells(only, model)))
        for kind, attribute in _MAPPED
        for only in [_only(details, attribute)]
        for model in details.answers.models[:_MOST_MODELS]
    ]


def _only(details: Details, attribute: str) -> Details:
    answers = details.answers
    inside = answers.conditions_of({attribute})[answers.condition]
    return replace(details, answers=replace(answers, scored=answers.scored & inside))


def _cells(details: Details, model: str) -> int:
    answers = details.answers
    own = answers.scored & (answers.model == answers.model_index(model)) & np.isfinite(details.centre).all(axis=1)
    return _FINE if int(own.sum()) >= _PICTURES_FOR_FINE else _COARSE
