"""What of a loss may be the tool's doing: the controls, and the same loss on another photo's background."""

from __future__ import annotations

from counterfoil.analysis.evidence import FEWEST_PHOTOS, Evidence, MeasuredNumber, NotJudged, Reply, measured
from counterfoil.report.words import capitalize_first, join_words
from counterfoil.statistics.answers import NO_ATTRIBUTE
from counterfoil.statistics.control_losses import FEWEST_CONTROLS
from counterfoil.statistics.drops import is_significant
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.significance import SIGNIFICANCE
from counterfoil.types import Drop

_ADD_GROUND = (
    "add `- edit: scene-swap`, `- edit: scene-size` and `- {edit: size, levels: {rate: [0.05]}}` to the recipe"
    " (`attributes` has them)"
)
_ADD_CONTROLS = "add `- edit: control` and `- edit: fill-control` to the recipe (`attributes` has them)"


def ask_natural_ground(evidence: Evidence) -> Reply:
    """What an edit costs where no fill of the photo's own hole shows."""
    evidence.require_originals()
    rows = evidence.study.natural_ground
    if not rows:
        raise NotJudged("an edit on another photo's background, and that background alone", _ADD_GROUND)
    judged = [row for row in rows if row.drop.n >= FEWEST_PHOTOS]
    if not judged:
        most = max(row.drop.n for row in rows)
        raise NotJudged(f"{FEWEST_PHOTOS} photos with all of these pictures, got {most}", "add photos")
    numbers = [
        measured(f"{what}, {row.edit}", row.model, part, "points")
        for row in judged
        for what, part in (
            (f"loss on {row.ground}", row.drop),
            ("loss on its own background, filled", row.own_drop),
            ("difference", row.difference),
        )
    ]
    words = [
        f"{row.model} loses {first.text} to {row.edit} there and {second.text} on its own background"
        + ("" if row.is_clear else " (there not shown to differ from 0)")
        for row, first, second in zip(judged, numbers[::3], numbers[1::3], strict=True)
    ]
    return Reply(
        answer=f"{'; '.join(words)}.",
        numbers=tuple(numbers),
        notes=(
            "Loss in another photo's scene against that scene alone: no hole is filled there, so that a loss which"
            " only the fill makes would be missing (in a swapped background the other photo's own hole was filled)."
            " Over the photos that have all four pictures.",
            "A difference between the two grounds is either the fill or an interaction of background and edit: where"
            " the other background alone costs much, little is left to lose.",
        ),
    )


def ask_controls(evidence: Evidence) -> Reply:
    """What the controls cost, and which losses they leave open."""
    evidence.require_originals()
    drops = evidence.study.drops
    controls = [row for row in drops if row.attribute == "control" and row.n >= FEWEST_CONTROLS]
    if not controls:
        most = max((row.n for row in drops if row.attribute == "control"), default=0)
        raise NotJudged(f"{FEWEST_CONTROLS} photos with a control, got {most}", _ADD_CONTROLS)
    numbers = [_cost(row) for row in controls]
    explained = [row for row in drops if _is_explained(row)]
    numbers += [
        MeasuredNumber(
            f"loss counted from fill-control, {row.edit} {row.level}".rstrip(),
            row.model,
            row.drop_vs_fill_control,
            n=row.n_reference,
            unit="points",
        )
        for row in drops
        if row.drop_vs_fill_control == row.drop_vs_fill_control and row.attribute not in NO_ATTRIBUTE
    ]
    costs = "; ".join(f"{row.edit} costs {own.model} {own.text}" for row, own in zip(controls, numbers, strict=False))
    listed = join_words([f"{row.model} under {row.edit} {row.level}".rstrip() for row in explained])
    return Reply(
        answer=f"{capitalize_first(costs)}. "
        + (
            f"Significant against the reference, but not beyond what controls and tool explain: {listed}."
            if explained
            else "No loss that is significant against its reference is explained by controls and tool."
        ),
        numbers=tuple(numbers),
        notes=(
            "`control` cuts the object out and pastes it back; `fill-control` fills a hole of its shape elsewhere in"
            " the background. The interval of a loss holds whether it is counted from the reference or from a control"
            " that applies to the edit, photo by photo; a photo without the control has the mean cost of those that"
            " were answered like it before.",
        ),
    )


def _cost(row: Drop) -> MeasuredNumber:
    cost = Estimate(row.drop, row.ci_low, row.ci_high, row.n)
    return measured(f"cost of {row.edit}", row.model, cost, "points")


def _is_explained(row: Drop) -> bool:
    return (
        row.attribute not in NO_ATTRIBUTE
        and row.p_adjusted < SIGNIFICANCE
        and row.drop_vs_reference > 0
        and row.n_reference >= FEWEST_PHOTOS
        and not is_significant(row)
    )
