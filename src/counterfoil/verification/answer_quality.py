"""Agreement of annotators, the quality of each, and warnings about careless answers.

Warnings block nothing: the user decides, but should see them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from counterfoil.report.words import format_number
from counterfoil.statistics.agreement import collect_ratings, measure_agreement
from counterfoil.statistics.annotators import (
    AnnotatorQuality,
    DecisionRule,
    ExclusionRule,
    decide_pictures,
    exclude_annotators,
    rate_annotators,
)
from counterfoil.types import AnnotatorRecord, Decision, Verdict
from counterfoil.verification.questionnaire import Questionnaire

_LEAST_CONTROL_ACCURACY = 0.7
_LEAST_SECONDS = 0.5  # to see a picture and answer
_LEAST_AGREEMENT = 0.2  # of Krippendorff's alpha; 0 is chance
_FEWEST = 5  # controls or answers below which an annotator is not judged
_MOST_LISTED = 5  # figures in a sentence


@dataclass(frozen=True)
class AnswerStatistics:
    """The statistics over the answers to one questionnaire."""

    questionnaire: Questionnaire

    def agreement(self, verdicts: Sequence[Verdict]) -> Mapping[str, Mapping[str, float]]:
        """The measures of agreement on each question, with their intervals."""
        rng = np.random.default_rng(self.questionnaire.seed)
        tables = {
            row.id: collect_ratings(verdicts, row.id, answers=row.answers) for row in self.questionnaire.questions
        }
        return {name: measure_agreement(table, rng).summary for name, table in tables.items()}

    def qualities(self, verdicts: Sequence[Verdict]) -> Sequence[AnnotatorQuality]:
        """Answers, controls, repeats and times of every annotator."""
        return rate_annotators(verdicts, self.questionnaire.keep_if)

    def excluded(self, verdicts: Sequence[Verdict]) -> Mapping[str, str]:
        """Annotators excluded by the questionnaire's rule, with the reasons."""
        rule = self.questionnaire.exclude
        return {} if rule is None else exclude_annotators(self.qualities(verdicts), ExclusionRule(**rule.model_dump()))

    def decisions(self, verdicts: Sequence[Verdict]) -> Sequence[Decision]:
        """Decisions by majority."""
        rule = DecisionRule("majority", self.questionnaire.annotators)
        return decide_pictures(verdicts, self.questionnaire.keep_if, rule)


def anonymize_qualities(qualities: Sequence[AnnotatorQuality], counted: set[str]) -> tuple[AnnotatorRecord, ...]:
    """Return every annotator's record without the name, in an order that does not reveal it."""
    records = [
        AnnotatorRecord(
            answers=row.answers,
            controls=row.controls,
            controls_right=row.controls_right,
            repeats=row.repeats,
            repeats_same=row.repeats_same,
            median_seconds=row.median_seconds,
            counted=row.annotator in counted,
        )
        for row in qualities
    ]
    records.sort(key=lambda row: (not row.counted, -row.answers, -row.controls_right, row.median_seconds))
    return tuple(records)


def find_quality_warnings(
    records: Sequence[AnnotatorRecord], agreement: Mapping[str, Mapping[str, float]]
) -> tuple[str, ...]:
    """Return warnings about the quality of the counted answers."""
    counted = [row for row in records if row.counted]
    return (*_check_controls(counted), *_check_agreement(agreement), *_check_times(counted))


def _check_controls(counted: Sequence[AnnotatorRecord]) -> Iterator[str]:
    below = [row for row in counted if row.controls_right < _LEAST_CONTROL_ACCURACY * row.controls]
    poor = [row for row in below if row.controls >= _FEWEST]
    shown, right = sum(row.controls for row in counted), sum(row.controls_right for row in counted)
    if not poor and shown >= _FEWEST and right < _LEAST_CONTROL_ACCURACY * shown:
        poor = below  # each had too few controls to be judged, but all together had enough
    if poor:
        figures = _list_first([f"{row.controls_right} of {row.controls}" for row in poor])
        yield (
            f"{len(poor)} of {len(counted)} annotators got less than {100 * _LEAST_CONTROL_ACCURACY:.0f} % of the"
            f" hidden controls right ({figures}): `verify decide --least-control-accuracy"
            f" {_LEAST_CONTROL_ACCURACY:g}` leaves them out"
        )


def _check_agreement(agreement: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    for question, values in agreement.items():
        alpha, low, high = (values.get(f"krippendorff_alpha{end}", math.nan) for end in ("", "_low", "_high"))
        if low <= _LEAST_AGREEMENT:  # False for NaN: all answers agree, or too few pictures
            yield (
                f"agreement on '{question}' may be no better than chance (Krippendorff's alpha"
                f" {format_number(alpha, 2)} [{format_number(low, 2)}, {format_number(high, 2)}], where 0 is chance):"
                " see `verify status` for who to leave out,"
                " by `verify decide --least-control-accuracy` or on the administrator's page"
            )


def _check_times(counted: Sequence[AnnotatorRecord]) -> Iterator[str]:
    # a median of 0 belongs to imported answers without times
    hasty = [row for row in counted if row.answers >= _FEWEST and 0 < row.median_seconds < _LEAST_SECONDS]
    if hasty:
        figures = _list_first([f"{row.median_seconds:.2f} s" for row in hasty])
        yield (
            f"{len(hasty)} of {len(counted)} annotators answered faster than anybody can look (median {figures} per"
            f" picture): `verify decide --least-seconds {_LEAST_SECONDS:g}` leaves them out"
        )


def _list_first(figures: Sequence[str]) -> str:
    return ", ".join([*figures[:_MOST_LISTED], *(["..."] if len(figures) > _MOST_LISTED else [])])
