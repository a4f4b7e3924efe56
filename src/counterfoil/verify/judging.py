"""The statistics over verdicts, as the page asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from counterfoil.analyse.agreement import agreement
from counterfoil.analyse.annotators import AnnotatorQuality, Exclusion, annotator_qualities, excluded_annotators
from counterfoil.analyse.deciding import DecisionRule, decisions
from counterfoil.analyse.verdict_table import ratings_of
from counterfoil.types import Decision, Verdict
from counterfoil.verify.questions import Questionnaire


@dataclass(frozen=True)
class Statistics:
    """The statistics over verdicts, as the page asks for them."""

    questionnaire: Questionnaire

    def agreement(self, verdicts: Sequence[Verdict]) -> Mapping[str, Mapping[str, float]]:
        """Question to measure to value, with the ends of the intervals."""
        rng = np.random.default_rng(self.questionnaire.seed)
        tables = {row.id: ratings_of(verdicts, row.id, answers=row.answers) for row in self.questionnaire.questions}
        return {name: agreement(table, rng).summary for name, table in tables.items()}

    def qualities(self, verdicts: Sequence[Verdict]) -> Sequence[AnnotatorQuality]:
        """Every annotator's record."""
        return annotator_qualities(verdicts, self.questionnaire.keep_if)

    def excluded(self, verdicts: Sequence[Verdict]) -> Mapping[str, str]:
        """Who is to be left out by the questionnaire's rule, and why."""
        rule = self.questionnaire.exclude
        return {} if rule is None else excluded_annotators(self.qualities(verdicts), Exclusion(**rule.model_dump()))

    def decisions(self, verdicts: Sequence[Verdict]) -> Sequence[Decision]:
        """What the answers come to by majority."""
        rule = DecisionRule("majority", self.questionnaire.annotators)
        return decisions(verdicts, self.questionnaire.keep_if, rule)
