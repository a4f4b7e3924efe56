"""How sure the models of a study are, and where in the picture they are right: a bounded choice for the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterfoil.analyse import Details, margin_changes, position_map
from counterfoil.analyse.answers import place_of
from counterfoil.analyse.confidence import confidence_changes, reliability_curve
from counterfoil.pipeline.recorded.together import by_attribute
from counterfoil.report.confidence import Confidences, Reliability
from counterfoil.report.finding import NO_ATTRIBUTE
from counterfoil.report.places import Kind, PlaceMap
from counterfoil.types import Attribute

_MOST_MODELS = 12  # whose curves and maps are drawn
_FEWEST_ANSWERS = 50  # behind a curve: five parts of ten
_SEED = 0  # of the resampled intervals: the same answers give the same page
_COARSE, _FINE, _PICTURES_FOR_FINE = 3, 5, 500  # parts of a map each way
PLACED: tuple[tuple[Kind, Attribute], ...] = (
    ("moved", "position"),
    ("unedited", "original"),
)  # maps, of which pictures


def confidences_of(details: Details) -> Confidences:
    """Curves, changes by attribute and margins; nothing where the models say no confidence."""
    curves = [_reliability(details, model) for model in details.answers.models[:_MOST_MODELS]]
    told = [curve for curve in curves if sum(point.n for point in curve.after) >= _FEWEST_ANSWERS]
    if not told:
        return Confidences()
    known = {curve.model for curve in told}
    if all(condition.attribute != "original" for condition in details.answers.conditions):
        return Confidences(told)
    merged = replace(details, answers=by_attribute(details.answers))
    return Confidences(
        told,
        [row for row in confidence_changes(details, np.random.default_rng(_SEED)) if row.model in known],
        [row for row in margin_changes(merged, np.random.default_rng(_SEED)) if row.model in known],
    )


def _reliability(details: Details, model: str) -> Reliability:
    attributes = {condition.attribute for condition in details.answers.conditions}
    edited = attributes - NO_ATTRIBUTE
    if not edited:  # a collection of nothing but unedited pictures
        return Reliability(model, [], reliability_curve(details, model, attributes))
    before = reliability_curve(details, model, {"original"})
    enough = sum(point.n for point in before) >= _FEWEST_ANSWERS
    return Reliability(model, before if enough else [], reliability_curve(details, model, edited))


def place_maps(details: Details) -> list[PlaceMap]:
    """Where each model is right: for objects moved by an edit, and for those of the unedited photos."""
    return [
        PlaceMap(model, kind, position_map(only, model, cells=_cells(only, model)))
        for kind, attribute in PLACED
        for only in [_only(details, attribute)]
        for model in details.answers.models[:_MOST_MODELS]
    ]


def _only(details: Details, attribute: str) -> Details:
    answers = details.answers
    wanted = np.array([condition.attribute == attribute for condition in answers.conditions], bool)
    return replace(details, answers=replace(answers, scored=answers.scored & wanted[answers.condition]))


def _cells(details: Details, model: str) -> int:
    answers = details.answers
    own = answers.scored & (answers.model == place_of(answers, model)) & np.isfinite(details.centre).all(axis=1)
    return _FINE if int(own.sum()) >= _PICTURES_FOR_FINE else _COARSE
