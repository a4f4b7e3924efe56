"""The verdict on a repair: repaired only if a drop shrinks and nothing else is lost, each shown by its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from counterfoil.remedies.effects import Change, Effect, RateTable
from counterfoil.report.gate import EXIT_STATUS, decide
from counterfoil.report.gate import Verdict as GateVerdict
from counterfoil.report.words import format_bounds, format_number, join_words
from counterfoil.statistics.growth import Growth, photos_to_hold
from counterfoil.statistics.intervals import RATE, estimate

RepairOutcome: TypeAlias = Literal[
    "repaired",
    "fits your classes better; robustness unchanged",
    "no change",
    "worse",
    "repaired at a cost",
    "cannot tell",
    "not judged",
]
_GATE: dict[RepairOutcome, GateVerdict] = {
    "repaired": "holds", "cannot tell": "cannot tell", "not judged": "not judged", "worse": "violated",
    "fits your classes better; robustness unchanged": "violated", "no change": "violated",
    "repaired at a cost": "violated",
}  # fmt: skip


_MEANINGS: dict[RepairOutcome, str] = {
    "repaired": "edits break the new network less than the old one, and nothing else that was judged is lost.",
    "cannot tell": "too little is shown to call it repaired; the reasons below say what is missing.",
    "not judged": "nothing is said about it, since the network before the repair is not told from guessing.",
    "worse": "the new network is worse than the old one; keep the old one.",
    "fits your classes better; robustness unchanged": "it gives the photos' classes more often, and edits cost it as"
    " much as before.",
    "no change": "edits cost the new network as much as the old, so far as is shown.",
    "repaired at a cost": "edits break the new network less than the old one, and something else is lost.",
}


@dataclass(frozen=True)
class LossCheck:
    """Whether accuracy on some photos fell by less than the bound."""

    subject: str  # "unedited photos", "photos of other classes"
    growth: Growth | None  # of the errors; None where there is no photo to measure it on
    allowed: float  # points
    remedy: str = ""  # what to do where there is none

    @property
    def verdict(self) -> GateVerdict:
        """Whether the fall is shown to be within the bound."""
        if self.growth is None or not self.growth.n:
            return "cannot tell"
        return decide((self.growth.low, self.growth.growth, self.growth.high), self.allowed, "upper")

    @property
    def sentence(self) -> str:
        """The fall and what it would take to decide it."""
        if self.growth is None or not self.growth.n:
            return f"{self.subject}: not measured; {self.remedy}"
        row = self.growth
        text = f"{self.subject}: accuracy falls by at most {format_number(row.high)} points (n = {row.n}"
        text += f"), {self.allowed:g} is allowed"
        if self.verdict == "violated":
            return f"{self.subject}: accuracy falls by {format_number(row.growth)} points, {self.allowed:g} is allowed"
        if self.verdict == "holds" or row.growth >= self.allowed:
            return text
        needed = photos_to_hold(row.spread, self.allowed, growth=max(row.growth, 0.0))
        return f"{text}; about {needed:,} photos would show it"


@dataclass(frozen=True, kw_only=True)
class RepairVerdict:
    """What a repair is called, and why."""

    outcome: RepairOutcome
    reasons: tuple[str, ...]

    @property
    def meaning(self) -> str:
        """The outcome in a sentence for somebody who wants to know which network to use."""
        return _MEANINGS[self.outcome]

    @property
    def status(self) -> int:
        """The exit status, as the gate has it: 0 repaired, 1 not, 3 cannot tell, 4 not judged."""
        return EXIT_STATUS[_GATE[self.outcome]]


def decide_repair(effects: Sequence[Effect], fit: Sequence[Change], losses: Sequence[LossCheck]) -> RepairVerdict:
    """The verdict from the attributes' effects, the accuracies with all classes competing, and the losses.

    Args:
        effects: One row per attribute.
        fit: Changes of accuracy with all classes competing; one that rises means a better fit to the photos' classes.
        losses: What must not be lost.
    """
    better = [row for row in effects if row.is_significant and row.drop.change.value > 0]
    worse = [row for row in effects if row.is_significant and row.drop.change.value < 0]
    changed = [_describe(row) for row in [*better, *worse]] or ["no attribute's drop changes significantly"]
    outcome = _choose(better, worse, fit, losses)
    if outcome == "fits your classes better; robustness unchanged":
        risen = next(row.change for row in fit if row.change.ci_low > 0)
        points = f"{format_number(risen.value)} points {format_bounds(risen.ci_low, risen.ci_high)}"
        changed.append(f"accuracy with all classes competing rises by {points}: the model prefers the photos' classes")
    return RepairVerdict(outcome=outcome, reasons=(*changed, *(check.sentence for check in losses)))


def combine_verdicts(own: RepairVerdict, choice: RepairVerdict, chosen: Sequence[str], method: str) -> RepairVerdict:
    """The verdict on the method that most folds chose, where they chose different ones.

    The method was chosen with all photos at hand, so "repaired" also needs the folds' own choices to repair.

    Args:
        own: The verdict on the method, judged on all photos.
        choice: The verdict on the folds' choices, each judged on photos that it was not chosen on.
        chosen: The method that each fold chose.
        method: The one that most chose.
    """
    if len(set(chosen)) == 1:
        return own
    named = f"the folds chose {', '.join(chosen)}"
    if own.outcome == "repaired" and choice.outcome != "repaired":
        reason = f"{named}, and this choice is not shown to repair; judge one method alone: --method {method}"
        return RepairVerdict(outcome="cannot tell", reasons=(*own.reasons, reason))
    return RepairVerdict(outcome=own.outcome, reasons=(*own.reasons, f"{named}; the verdict is about {method}"))


def find_guessing(table: RateTable, classes: int) -> RepairVerdict | None:
    """The verdict on a model that cannot be told from guessing among the photos' classes; None for any other."""
    before = table.before.among[:, table.original]
    row, chance = estimate(before, RATE).scaled(100), 100 / classes
    if row.ci_low > chance:
        return None
    reason = (
        f"accuracy on the unedited photos before the repair is {format_number(row.value)} %"
        f" {format_bounds(row.ci_low, row.ci_high)}, n = {row.n}: not above guessing ({format_number(chance)} %);"
        " check the model's labels and preprocessing"
    )
    return RepairVerdict(outcome="not judged", reasons=(reason,))


def _choose(
    better: Sequence[Effect], worse: Sequence[Effect], fit: Sequence[Change], losses: Sequence[LossCheck]
) -> RepairOutcome:
    verdicts = {check.verdict for check in losses}
    if better and (worse or "violated" in verdicts):
        return "repaired at a cost"
    if better:
        return "cannot tell" if "cannot tell" in verdicts else "repaired"
    if worse:
        return "worse"
    if any(row.change.ci_low > 0 for row in fit):
        return "fits your classes better; robustness unchanged"
    return "worse" if "violated" in verdicts else "no change"


def _describe(effect: Effect) -> str:
    drop = effect.drop
    change = f"{format_number(drop.change.value)} points {format_bounds(drop.change.ci_low, drop.change.ci_high)}"
    verb = "shrinks" if drop.change.value > 0 else "grows"
    before, after = format_number(drop.before), format_number(drop.after)
    return f"{effect.attribute}: the drop {verb} from {before} to {after}, a change of {change}, n = {drop.change.n}"


def summarise_attributes(effects: Sequence[Effect]) -> str:
    """The attributes whose drop shrank, in words; empty where none did."""
    return join_words([row.attribute for row in effects if row.is_significant and row.drop.change.value > 0])
