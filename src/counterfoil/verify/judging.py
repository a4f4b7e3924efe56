"""What the page asks of the statistics, which live in another room: they are handed in when the page is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from counterfoil.types import Decision, Verdict


class Quality(Protocol):
    """What the controls say of one annotator."""

    @property
    def annotator(self) -> str:
        """By name."""

    @property
    def controls(self) -> int:
        """How many pictures known to be good or bad were judged."""

    @property
    def repeats(self) -> int:
        """How many repeated questions were answered."""

    @property
    def median_seconds(self) -> float:
        """Per answer."""

    @property
    def control_accuracy(self) -> float:
        """The share of known pictures judged rightly; NaN where there were none."""

    @property
    def repeat_consistency(self) -> float:
        """The share of repeated questions answered as before; NaN where there were none."""


class Judge(Protocol):
    """Statistics over verdicts."""

    def agreement(self, verdicts: Sequence[Verdict]) -> Mapping[str, Mapping[str, float]]:
        """Question to measure to value, with the ends of the intervals."""

    def qualities(self, verdicts: Sequence[Verdict]) -> Sequence[Quality]:
        """Every annotator's record."""

    def excluded(self, verdicts: Sequence[Verdict]) -> Mapping[str, str]:
        """Who is to be left out by the questionnaire's rule, and why."""

    def decisions(self, verdicts: Sequence[Verdict]) -> Sequence[Decision]:
        """What the answers come to by majority, one per picture."""
