"""The gate: bounds on drops and accuracies, and the verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from counterfoil.errors import UserError
from counterfoil.report.words import format_interval, format_number
from counterfoil.statistics.answers import NO_ATTRIBUTE
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.references import ORIGINAL
from counterfoil.study.judgements import CANNOT_TELL, NOT_JUDGED, Judgement
from counterfoil.study.runs import OverallAccuracy
from counterfoil.types import Drop

Bound: TypeAlias = Literal["upper", "lower", "point"]
Verdict: TypeAlias = Literal["holds", "violated", "cannot tell", "not judged"]
EXIT_STATUS: dict[Verdict, int] = {
    "holds": 0,
    "violated": 1,
    "cannot tell": CANNOT_TELL,
    "not judged": NOT_JUDGED,
}
SHOWN_FIRST: tuple[Verdict, ...] = ("not judged", "violated", "cannot tell", "holds")  # the first decides
ANY = "any"  # in place of an attribute: every one


@dataclass(frozen=True)
class MaxDrop:
    """A rule that no edit it applies to may cost more than `limit` points."""

    what: str  # an attribute, an edit, or `any`
    level: str  # "" means every level
    limit: float  # points

    def applies_to(self, row: Drop) -> bool:
        """Whether the rule applies to this row."""
        named = row.attribute not in NO_ATTRIBUTE if self.what == ANY else self.what in (row.attribute, row.edit)
        return named and self.level in ("", row.level)


class Check(NamedTuple):
    """One rule applied to one model and one edit."""

    model: str
    subject: str
    verdict: Verdict
    message: str
    measured: float = math.nan  # drop, growth of a drop, or accuracy; in points or percent
    low: float = math.nan
    high: float = math.nan
    limit: float = math.nan
    n: int = 0  # photos
    before: float = math.nan  # of the baseline, where there is one
    after: float = math.nan
    photos: int = 0  # that would decide, where these cannot
    spread: float = math.nan  # standard deviation of the growth over photos, in points


def parse_max_drop(text: str) -> MaxDrop:
    """Parse a rule as typed: background=5, size:0.05=20, background-swap=10, any=15."""
    name, _, limit = text.partition("=")
    what, _, level = name.partition(":")
    try:
        points = float(limit)
    except ValueError:
        points = math.nan
    if not what or math.isnan(points):
        raise UserError(f"expected ATTRIBUTE=POINTS or EDIT:LEVEL=POINTS such as background=5, got '{text}'")
    return MaxDrop(what, level, points)


def judge_drops(drops: Sequence[Drop], rules: Sequence[MaxDrop], bound: Bound) -> list[Check]:
    """Apply every rule to its rows, counted from their references; raises `UserError` where a rule applies to none."""
    if rules and not any(row.n for row in drops):
        message = "the run is empty: no photo was scored both before and after an edit"
        return [Check("run", "drops", "cannot tell", message)]
    checks = []
    for rule in rules:
        rows = [row for row in drops if rule.applies_to(row)]
        if not rows:
            known = dict.fromkeys(
                name for row in drops for name in (row.attribute, row.edit, f"{row.edit}:{row.level}")
            )
            what = f"{rule.what}:{rule.level}" if rule.level else rule.what
            raise UserError(f"expected an attribute or edit of this run, got '{what}'; there are {', '.join(known)}")
        checks += [_judge_drop(row, rule, bound) for row in rows]
    return checks


def judge_accuracies(accuracies: Sequence[OverallAccuracy], least: float, bound: Bound) -> list[Check]:
    """Check the accuracy of every model against the minimum, in percent."""
    return [_judge_accuracy(row, least, bound) for row in accuracies]


def combine_verdicts(checks: Sequence[Check]) -> Verdict:
    """Return the first that occurs of "not judged", "violated" and "cannot tell", else "holds"."""
    verdicts = {check.verdict for check in checks}
    return next((verdict for verdict in SHOWN_FIRST if verdict in verdicts), "holds")


def judge_setups(judgements: Mapping[str, Judgement]) -> list[Check]:
    """One check for each model whose set-up is wrong, or whose accuracy cannot be told from guessing."""
    return [
        Check(model, "set-up", "cannot tell" if judgement.is_judged else "not judged", f"{model}: {judgement.sentence}")
        for model, judgement in judgements.items()
        if judgement.verdict != "judged"
    ]


def _judge_drop(row: Drop, rule: MaxDrop, bound: Bound) -> Check:
    subject = f"{row.edit} {row.level}".strip()
    if few := find_too_few(row.n):
        return Check(row.model, subject, "cannot tell", f"{row.model}, {subject}: {few}")
    verdict = decide((row.ci_low, row.drop, row.ci_high), rule.limit, bound)
    against = "" if row.reference == ORIGINAL else f" against {row.reference}"
    measured = f"drop {format_number(row.drop)} points {format_interval(row)}{against}, n = {row.n}"
    message = f"{row.model}, {subject}: {measured}; at most {rule.limit:g} is allowed"
    return Check(
        row.model, subject, verdict, message,
        measured=row.drop, low=row.ci_low, high=row.ci_high, limit=rule.limit, n=row.n,
    )  # fmt: skip


def _judge_accuracy(row: OverallAccuracy, least: float, bound: Bound) -> Check:
    subject = row.subject
    if few := find_too_few(row.n):
        return Check(row.model, subject, "cannot tell", f"{row.model}, {subject}: {few}")
    shortfall = (least - row.ci_high, least - row.accuracy, least - row.ci_low)
    measured = (
        f"{format_number(row.accuracy)} % [{format_number(row.ci_low)}, {format_number(row.ci_high)}], n = {row.n}"
    )
    message = f"{row.model}, {subject}: {measured}; at least {least:g} is asked for"
    return Check(
        row.model, subject, decide(shortfall, 0.0, bound), message,
        measured=row.accuracy, low=row.ci_low, high=row.ci_high, limit=least, n=row.n,
    )  # fmt: skip


def find_too_few(photos: int) -> str:
    """Say why there are too few photos to judge; empty where there are enough."""
    if photos == 0:
        return "no photo was scored"
    return f"too few photos: {photos}, and at least {FEWEST_PHOTOS} are needed" if photos < FEWEST_PHOTOS else ""


def decide(interval: tuple[float, float, float], limit: float, bound: Bound) -> Verdict:
    """`upper` requires proof that the limit holds, `lower` proof that it does not, `point` neither."""
    low, point, high = interval
    if bound == "point":
        return "violated" if point > limit else "holds"
    if low > limit:
        return "violated"
    return "holds" if bound == "lower" or high <= limit else "cannot tell"
