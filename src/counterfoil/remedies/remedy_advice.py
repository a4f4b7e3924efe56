"""What usually helps against an attribute that costs accuracy, each with its evidence."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.remedies.effects import measure_left_drop
from counterfoil.report.words import format_bounds, format_number
from counterfoil.run_result import Result
from counterfoil.run_verdicts import folder_of
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.runs import Study, open_runs
from counterfoil.types import Drop

if TYPE_CHECKING:
    from counterfoil.remedies.repair_result import RepairResult

_FILE = "advice.json"


@dataclass(frozen=True)
class Advice:
    """What helps against one attribute, and how that is known."""

    attribute: str
    helps: str
    evidence: str


def load_advice() -> dict[str, Advice]:
    """The advice for every attribute that there is some for."""
    rows = json.loads(resources.files("counterfoil.remedies").joinpath(_FILE).read_text(encoding="utf-8"))
    return {row["attribute"]: Advice(**row) for row in rows}


@dataclass(frozen=True, kw_only=True)
class RunAdvice:
    """What usually helps a model of a run against an attribute that costs it accuracy."""

    model: str
    drop: Drop  # by which the attribute is judged
    advice: Advice | None  # None: nothing is known to help

    def __str__(self) -> str:
        return self.sentence

    @property
    def sentence(self) -> str:
        """The cost, what helps and the evidence."""
        row = self.drop
        cost = f"{format_number(row.drop_vs_reference)} points {format_bounds(row.reference_low, row.reference_high)}"
        known = (
            "nothing is known here to help" if self.advice is None else f"{self.advice.helps} {self.advice.evidence}"
        )
        return f"{self.model}: {row.attribute} costs {cost}. {known}"


@dataclass(frozen=True, kw_only=True)
class LeftAdvice:
    """What usually helps against an attribute that costs accuracy after a repair."""

    left: Estimate  # the drop that is left, in points
    advice: Advice

    @property
    def cost(self) -> str:
        """The drop with its interval."""
        return f"{format_number(self.left.value)} points {format_bounds(self.left.ci_low, self.left.ci_high)}"


def advise(run: Result | str | Path) -> list[RunAdvice]:
    """Say what usually helps against each attribute that costs a model accuracy, and how that is known; nothing runs.

    Args:
        run: A result, or the folder of a run.

    Returns:
        One row for every model and attribute whose loss is significant, the costliest first; `str(row)` is a sentence.

    Raises:
        UserError: There is no such run.

    Examples:
        >>> for row in advise("out"):  # doctest: +SKIP
        ...     print(row)
    """
    return advise_run(run.study if isinstance(run, Result) else open_runs([folder_of(run)]))


def advise_run(study: Study) -> list[RunAdvice]:
    """For every model and attribute that costs accuracy, significantly, what usually helps; the costliest first."""
    known = load_advice()
    rows = [
        RunAdvice(model=row.model, drop=row.representative, advice=known.get(row.attribute))
        for row in study.verdicts if row.costs
    ]  # fmt: skip
    order = {model: place for place, model in enumerate(study.run.models)}
    return sorted(rows, key=lambda row: (order[row.model], -row.drop.drop_vs_reference))


def advise_what_is_left(result: RepairResult) -> list[LeftAdvice]:
    """The advice for the attributes that still cost accuracy, significantly, the costliest first."""
    known = load_advice()
    rows = [
        LeftAdvice(left=measure_left_drop(result.table, row.attribute), advice=known[row.attribute])
        for row in result.attributes if row.attribute in known
    ]  # fmt: skip
    costly = [row for row in rows if row.left.ci_low > 0]
    return sorted(costly, key=lambda row: -row.left.value)
