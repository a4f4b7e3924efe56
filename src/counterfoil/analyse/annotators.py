"""How well each annotator works: hidden controls, repeats, speed; and who is left out by rule."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from counterfoil.analyse.verdict_table import latest
from counterfoil.errors import UserError
from counterfoil.types import Verdict


class AnnotatorQuality(NamedTuple):
    """What the controls say of one annotator; shares are NaN where there was nothing to judge by."""

    annotator: str
    answers: int  # to questions about the work itself
    controls: int  # pictures known to be good or bad
    controls_right: int
    repeats: int  # questions about a picture shown again
    repeats_same: int
    median_seconds: float

    @property
    def control_accuracy(self) -> float:
        """The share of known pictures judged rightly."""
        return self.controls_right / self.controls if self.controls else math.nan

    @property
    def repeat_consistency(self) -> float:
        """The share of repeated questions answered as before."""
        return self.repeats_same / self.repeats if self.repeats else math.nan


@dataclass(frozen=True)
class Exclusion:
    """Whose answers do not count; a bound that is None is not looked at."""

    control_accuracy: float | None = None  # least share of controls judged rightly
    repeat_consistency: float | None = None  # least share of repeats answered as before
    seconds: float | None = None  # least median time per answer
    fewest: int = 3  # controls, repeats or answers below which nobody is judged

    def __post_init__(self) -> None:
        for name in ("control_accuracy", "repeat_consistency"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise UserError(f"expected {name.replace('_', ' ')} between 0 and 1, got {share}")


def annotator_qualities(verdicts: Iterable[Verdict], keep_if: Mapping[str, str]) -> list[AnnotatorQuality]:
    """Every annotator's record, by name; `keep_if` holds the answer to each question that keeps a picture."""
    counted = latest(verdicts)
    by_name: dict[str, list[Verdict]] = {}
    for verdict in counted:
        by_name.setdefault(verdict.annotator, []).append(verdict)
    return [_quality(name, by_name[name], keep_if) for name in sorted(by_name)]


def excluded_annotators(qualities: Sequence[AnnotatorQuality], rule: Exclusion) -> dict[str, str]:
    """Who is left out, and why."""
    reasons = {quality.annotator: _reason(quality, rule) for quality in qualities}
    return {name: reason for name, reason in reasons.items() if reason}


def _quality(name: str, verdicts: Sequence[Verdict], keep_if: Mapping[str, str]) -> AnnotatorQuality:
    work = [verdict for verdict in verdicts if not verdict.control]
    judged = _judged(verdicts, keep_if)
    first = {(verdict.variant_id, verdict.question): verdict.answer for verdict in work}
    again = [verdict for verdict in verdicts if verdict.control == "repeat"]
    pairs = [
        (first[key], verdict.answer) for verdict in again if (key := (verdict.variant_id, verdict.question)) in first
    ]
    seconds = [verdict.seconds for verdict in verdicts]
    return AnnotatorQuality(
        name, len(work), len(judged), sum(judged), len(pairs), sum(a == b for a, b in pairs), statistics.median(seconds)
    )


def _judged(verdicts: Sequence[Verdict], keep_if: Mapping[str, str]) -> list[bool]:
    """Per known picture whether it was judged rightly: a good one kept by every answer, a bad one by not all."""
    keeps: dict[tuple[str, str], bool] = {}
    for verdict in verdicts:
        if verdict.control in ("good", "bad") and verdict.question in keep_if:
            key = (verdict.variant_id, verdict.control)
            keeps[key] = keeps.get(key, True) and verdict.answer == keep_if[verdict.question]
    return [kept == (control == "good") for (_, control), kept in keeps.items()]


def _reason(quality: AnnotatorQuality, rule: Exclusion) -> str:
    if _below(quality.control_accuracy, rule.control_accuracy, quality.controls, rule):
        return f"{quality.controls_right} of {quality.controls} control pictures judged rightly"
    if _below(quality.repeat_consistency, rule.repeat_consistency, quality.repeats, rule):
        return f"{quality.repeats_same} of {quality.repeats} repeated questions answered as before"
    if _below(quality.median_seconds, rule.seconds, quality.answers, rule):
        return f"median of {quality.median_seconds:g} seconds per answer"
    return ""


def _below(value: float, least: float | None, behind: int, rule: Exclusion) -> bool:
    return least is not None and behind >= rule.fewest and value < least
