"""Reliability charts: confidence against accuracy, a small chart per model; and the table of confidences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from counterfoil.report.chart_parts import Style
from counterfoil.report.words import format_number, name_attribute
from counterfoil.statistics.calibration import ConfidenceChange, ReliabilityPoint
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.confidence import Confidences

SIDE = 180  # pixels of a reliability chart


class ReliabilityMark(NamedTuple):
    """Answers of similar confidence, in pixels from the top left."""

    x: float
    y: float
    label: str


class ReliabilityPanel(NamedTuple):
    """The chart of one model with its description."""

    style: Style
    before: list[ReliabilityMark]
    after: list[ReliabilityMark]
    sentences: list[str]


class ConfidenceRow(NamedTuple):
    """One attribute of one model in the table."""

    model: str
    attribute: str
    change: ConfidenceChange
    margin: Estimate | None


def build_reliability_panels(
    confidences: Confidences, styles: Mapping[str, Style], edited: str
) -> list[ReliabilityPanel]:
    """Build one small chart per model; `edited` names the pictures that are not unedited photos."""
    return [
        ReliabilityPanel(
            styles[curve.model],
            [_mark(point, "unedited") for point in curve.before],
            [_mark(point, edited) for point in curve.after],
            [_describe(name, points) for name, points in (("unedited", curve.before), (edited, curve.after)) if points],
        )
        for curve in confidences.curves
    ]


def list_confidence_rows(confidences: Confidences) -> list[ConfidenceRow]:
    """Return the attributes with enough photos, with their margins."""
    margins = {(row.model, row.attribute): row.loss for row in confidences.margins}
    return [
        ConfidenceRow(row.model, name_attribute(row.attribute), row, margins.get((row.model, row.attribute)))
        for row in confidences.changes
        if row.excess_rise.n >= FEWEST_PHOTOS
    ]


def _mark(point: ReliabilityPoint, name: str) -> ReliabilityMark:
    confidence, accuracy = format_number(point.confidence), format_number(point.accuracy)
    label = f"{name}: says {confidence} %, right on {accuracy} % of {point.n} answers"
    return ReliabilityMark(round(SIDE * point.confidence / 100, 1), round(SIDE * (1 - point.accuracy / 100), 1), label)


def _describe(name: str, points: Sequence[ReliabilityPoint]) -> str:
    n = sum(point.n for point in points)
    confidence = sum(point.confidence * point.n for point in points) / n
    accuracy = sum(point.accuracy * point.n for point in points) / n
    excess = f"{format_number(abs(confidence - accuracy))} points too {'sure' if confidence >= accuracy else 'modest'}"
    return f"{name.capitalize()}: says {format_number(confidence)} %, right on {format_number(accuracy)} %: {excess}."
