"""How sure the models are: what the page tells of confidence, calibration and margins, and the small charts of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from counterfoil.analyse import FEWEST_PHOTOS, Estimate, MarginChange
from counterfoil.analyse.confidence import ConfidenceChange, ReliabilityPoint
from counterfoil.report.looks import Style
from counterfoil.report.wording import attribute_name, interval, number

SIDE = 180  # pixels of a reliability chart
_PARTS = ("confidence", "accuracy", "calibration_error")  # as `Confidence` has them


@dataclass(frozen=True)
class Reliability:
    """How right one model is where it is so sure, on the unedited photos and after the edits."""

    model: str
    before: Sequence[ReliabilityPoint]  # empty where no originals stand beside the pictures
    after: Sequence[ReliabilityPoint]


@dataclass(frozen=True)
class Confidences:
    """What the answers' confidences show; empty where the models give none."""

    curves: Sequence[Reliability] = ()
    changes: Sequence[ConfidenceChange] = ()
    margins: Sequence[MarginChange] = ()

    def __bool__(self) -> bool:
        return bool(self.curves)


class ReliabilityMark(NamedTuple):
    """Answers of like confidence, in pixels from the top left."""

    x: float
    y: float
    told: str


class ReliabilityPanel(NamedTuple):
    """The chart of one model with what it shows in words."""

    style: Style
    before: list[ReliabilityMark]
    after: list[ReliabilityMark]
    told: list[str]


class ConfidenceRow(NamedTuple):
    """One attribute of one model, as the table has it."""

    model: str
    attribute: str
    change: ConfidenceChange
    margin: Estimate | None


def reliability_panels(confidences: Confidences, looks: Mapping[str, Style], edited: str) -> list[ReliabilityPanel]:
    """One small chart per model; `edited` is what the pictures are called that are no unedited photos."""
    return [
        ReliabilityPanel(
            looks[curve.model],
            [_mark(point, "unedited") for point in curve.before],
            [_mark(point, edited) for point in curve.after],
            [_told(name, points) for name, points in (("unedited", curve.before), (edited, curve.after)) if points],
        )
        for curve in confidences.curves
    ]


def confidence_rows(confidences: Confidences) -> list[ConfidenceRow]:
    """The attributes that rest on enough photos, with their margins."""
    margins = {(row.model, row.condition.attribute): row.loss for row in confidences.margins}
    return [
        ConfidenceRow(row.model, attribute_name(row.attribute), row, margins.get((row.model, row.attribute)))
        for row in confidences.changes
        if row.excess_rise.n >= FEWEST_PHOTOS
    ]


def confidence_record(row: ConfidenceRow) -> dict[str, object]:
    """One row as plain values, not rounded."""
    before, after = row.change.before, row.change.after
    estimates = {"excess_rise": row.change.excess_rise, "error_rise": row.change.error_rise, "margin_loss": row.margin}
    return {
        "model": row.model,
        "attribute": row.change.attribute,
        "n": row.change.excess_rise.n,
        **{f"{name}_before": value for name, value in zip(_PARTS, before, strict=True)},
        **{f"{name}_after": value for name, value in zip(_PARTS, after, strict=True)},
        **{f"{name}{part}": value for name, found in estimates.items() for part, value in _flat(found)},
    }


def _flat(row: Estimate | None) -> Iterator[tuple[str, float | None]]:
    yield "", row.value if row else None
    yield "_low", row.ci_low if row else None
    yield "_high", row.ci_high if row else None


def bounded(row: Estimate) -> str:
    """A number with its interval."""
    return f"{number(row.value)} {interval(row)}"


def clear(row: Estimate) -> bool:
    """Whether an interval leaves out zero."""
    return row.ci_low > 0 or row.ci_high < 0


def _mark(point: ReliabilityPoint, name: str) -> ReliabilityMark:
    told = f"{name}: says {number(point.said)} %, right on {number(point.right)} % of {point.n} answers"
    return ReliabilityMark(round(SIDE * point.said / 100, 1), round(SIDE * (1 - point.right / 100), 1), told)


def _told(name: str, points: Sequence[ReliabilityPoint]) -> str:
    n = sum(point.n for point in points)
    said, right = (sum(getattr(point, part) * point.n for point in points) / n for part in ("said", "right"))
    excess = said - right
    way = f"{number(abs(excess))} points too {'sure' if excess >= 0 else 'modest'}"
    return f"{name.capitalize()}: says {number(said)} %, right on {number(right)} %: {way}."
