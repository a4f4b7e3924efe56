"""What each edit is compared with, photo by photo, and what the tool itself changes in the comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.registry import crossed_by, reference_of, shows_tool, uses_mask
from counterfoil.statistics.answers import FILL_CONTROL, Answers, Condition
from counterfoil.statistics.intervals import exact_mean
from counterfoil.statistics.photo_tests import AnswerCount
from counterfoil.types import GROWN_MASK, SECOND_FILL, SHRUNK_MASK, TOOL_CHECKS, EditLevel

OWN_REFERENCES = "each edit's own"  # the reference of a row that pools edits with different ones
ORIGINAL = "original"
BORROWED = "main edit's "  # before the name of a check that was made of the attribute's main edit only
COMBINATION = "combination"  # the attribute of combined edits

Rates: TypeAlias = NDArray[np.float64]  # (models, samples)


class ReferenceRates(NamedTuple):
    """What one condition is compared with."""

    name: str  # "original", or an edit and its level: "size 0.05"
    rates: Rates
    shifts: Mapping[str, Rates]  # by tool check: how much the drop of each photo changes with the other fill or mask
    answers: AnswerCount = 2  # in the drop of a photo: four where the reference is made of two edits and the original


def list_conditions(answers: Answers) -> list[int]:
    """The positions of the conditions that are rows of the table: not the original, no doubled pictures."""
    shown = ~answers.conditions_of({"original", *TOOL_CHECKS})
    return [place for place in range(len(answers.conditions)) if shown[place]]


def find_reference(answers: Answers, condition: int) -> ReferenceRates:
    """The reference that the edit declares, where the table contains it; else the original.

    Two combined edits are compared with what each costs alone: the drop is their interaction.
    """
    if (parts := find_summed_parts(answers, condition)) is not None:
        shifts = tool_shifts(answers, answers.conditions[condition], parts)
        return ReferenceRates(" + ".join(map(str, parts)), add_losses(answers, parts), shifts, answers=4)
    place, shifts = locate_reference(answers, condition), _shifts_or_main(answers, condition)
    if place is None:
        return ReferenceRates(ORIGINAL, answers.original_rates, shifts)
    name = f"{answers.conditions[place].edit} {answers.conditions[place].level}".strip()
    return ReferenceRates(name, answers.rates[:, place], shifts)


def _shifts_or_main(answers: Answers, condition: int) -> dict[str, Rates]:
    """The tool's shifts of a condition; of masks those of its attribute's main edit where its own were not made.

    One edit of each attribute is made again with other masks. The others cut the same objects out, and a finding of
    theirs must survive as much.
    """
    shifts, own = _shifts_of(answers, condition), answers.conditions[condition]
    missing = {GROWN_MASK, SHRUNK_MASK} - shifts.keys()
    made = {row[1:] for row in answers.conditions if row.attribute in missing}
    if not made or not uses_mask(own.edit) or own.edit == FILL_CONTROL:  # whose object is not cut out
        return shifts
    for place, other in enumerate(answers.conditions):
        if other.attribute == own.attribute and place != condition and other[1:] in made:
            main = _shifts_of(answers, place)
            shifts |= {f"{BORROWED}{check}": main[check] for check in sorted(missing & main.keys())}
    return shifts


def _shifts_of(answers: Answers, condition: int) -> dict[str, Rates]:
    place = locate_reference(answers, condition)
    reference = [] if place is None else [EditLevel(answers.conditions[place].edit, answers.conditions[place].level)]
    return tool_shifts(answers, answers.conditions[condition], reference)


def locate_reference(answers: Answers, condition: int) -> int | None:
    """The position of the edit that a condition declares as its reference; None where it is the original."""
    own = answers.conditions[condition]
    declared = answers.references.get(EditLevel(own.edit, own.level)) or reference_of(own.edit, own.level)
    return None if declared is None else locate_edits(answers).get(declared)


def find_summed_parts(answers: Answers, condition: int) -> tuple[EditLevel, EditLevel] | None:
    """The two edits whose losses are added up as the reference of a combination; None for any other condition."""
    is_combined = answers.conditions[condition].attribute == COMBINATION
    return find_parts(answers, condition) if is_combined else None


def find_parts(answers: Answers, condition: int) -> tuple[EditLevel, EditLevel] | None:
    """The two edits that a condition makes at once, where the table contains both alone."""
    parts, places = find_crossed(answers, condition), locate_edits(answers)
    return parts if parts is not None and all(part in places for part in parts) else None


def find_crossed(answers: Answers, condition: int) -> tuple[EditLevel, EditLevel] | None:
    """The two edits that a condition makes at once, whether or not the table contains them alone."""
    own = answers.conditions[condition]
    return None if own.attribute in TOOL_CHECKS else crossed_by(own.edit, own.level)


def add_losses(answers: Answers, parts: Sequence[EditLevel]) -> Rates:
    """The rates that are expected where the losses of the parts add up."""
    lost = sum(answers.original_rates - part_rates(answers, part) for part in parts)
    return np.asarray(answers.original_rates - lost)


def part_rates(answers: Answers, part: EditLevel) -> Rates:
    """The rates under an edit at a level that the table contains."""
    return np.asarray(answers.rates[:, locate_edits(answers)[part]])


def pool_pictures(values: NDArray[np.float64], pictures: NDArray[np.int32]) -> NDArray[np.float64]:
    """The mean of each photo over conditions (conditions, ..., samples), every scored picture counting once."""
    if len(values) == 1:
        return np.asarray(values[0])
    weights = np.where(np.isfinite(values), pictures, 0)
    with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unanswered
        return np.asarray(np.where(weights > 0, values * weights, 0.0).sum(axis=0) / weights.sum(axis=0))


def reference_losses(answers: Answers, condition: int) -> Rates:
    """The loss of each photo under a condition against its reference."""
    return np.asarray(find_reference(answers, condition).rates - answers.rates[:, condition])


def group_conditions(answers: Answers) -> dict[str, list[int]]:
    """By attribute, the positions of its conditions, in the order of the table."""
    groups: dict[str, list[int]] = {}
    for place in list_conditions(answers):
        groups.setdefault(answers.conditions[place].attribute, []).append(place)
    return groups


def pool_attributes(answers: Answers) -> dict[str, list[int]]:
    """By attribute, the positions of the conditions that are one row where all pictures of an attribute count together.

    A filled hole beside the object is no replicate of the control, in which nothing changes: it is left out.
    """
    pooled = {
        name: [place for place in places if answers.conditions[place].edit != FILL_CONTROL]
        for name, places in group_conditions(answers).items()
    }
    return {name: places for name, places in pooled.items() if places}


def attribute_losses(answers: Answers, only: str | None = None) -> dict[str, Rates]:
    """By attribute, the loss of each photo against the references, all pictures of the attribute together."""
    groups = {name: places for name, places in pool_attributes(answers).items() if only in (None, name)}
    return {
        attribute: pool_pictures(
            np.stack([reference_losses(answers, place) for place in places]),
            np.moveaxis(answers.tally.scored[:, places], 1, 0),
        )
        for attribute, places in groups.items()
    }


def locate_edits(answers: Answers) -> dict[EditLevel, int]:
    """The position of the condition of each edit and level; doubled pictures are left out."""
    return {
        EditLevel(condition.edit, condition.level): place
        for place, condition in enumerate(answers.conditions)
        if condition.attribute not in TOOL_CHECKS
    }


def tool_shifts(answers: Answers, own: Condition, reference: Sequence[EditLevel]) -> dict[str, Rates]:
    """By check, the drop with the doubled pictures minus the drop with the pictures themselves, photo by photo."""
    return {
        check: shift + sum(_shift(answers, check, part, 0.0) for part in reference)
        for check in sorted(TOOL_CHECKS)
        if not np.isnan(shift := -_shift(answers, check, EditLevel(own.edit, own.level), math.nan)).all()
    }


def _shift(answers: Answers, check: str, place: EditLevel, missing: float) -> Rates:
    """How much more often a doubled picture is answered right, (models, samples); `missing` where none was made."""
    double = Condition(check, *place)
    if double not in answers.conditions:
        return np.full((len(answers.models), len(answers.samples)), missing)
    rates = answers.rates
    return np.asarray(rates[:, answers.conditions.index(double)] - rates[:, locate_edits(answers)[place]])


def tool_uncertainty(shifts: Sequence[Mapping[str, Rates]], model: int, edits: Sequence[str], *, photos: int) -> float:
    """The spread of a drop between the tools, as a share; of several conditions, of their mean.

    The difference between the two fills, and the larger of those between the masks, in quadrature. The noise of the
    row's photos is taken out, since the interval of the drop holds it already; that only some of them have doubled
    pictures stays in. Where a main edit's pictures stand in for the row's, all noise of theirs is taken out. Without
    doubled pictures it is 0 where nothing of the tool shows in the pictures of these edits, else NaN. `photos` counts
    those of the row.
    """
    spreads = {
        check: _spread(
            np.stack([own[check][model] for own in shifts if check in own]), 0 if check.startswith(BORROWED) else photos
        )
        for check in reduce(set.union, map(set, shifts), set[str]())
    }
    known = {check: value for check, value in spreads.items() if not math.isnan(value)}
    if not known:
        return math.nan if any(map(shows_tool, edits)) else 0.0
    mask = max((value for check, value in known.items() if check != SECOND_FILL), default=0.0)
    return math.hypot(known.get(SECOND_FILL, 0.0), mask)


def _spread(shifts: NDArray[np.float64], photos: int) -> float:
    """The mean shift over photos (conditions, photos) beyond the standard error of the row's; NaN without photos."""
    known = np.isfinite(shifts).any(axis=0)
    by_photo = np.nanmean(shifts[:, known], axis=0)
    if len(by_photo) < 2:
        return math.nan
    noise = float(np.sort(by_photo).var(ddof=1)) / max(photos, len(by_photo))
    return math.sqrt(max(0.0, exact_mean(by_photo) ** 2 - noise))
