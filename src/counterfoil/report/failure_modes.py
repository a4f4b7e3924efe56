"""How models fail, beyond how often: what the page tells about classes, photos and what models share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from counterfoil.analyse import BrokenClass, BrokenPhoto, Confusion, Consistency, Fall, LenderConfusion
from counterfoil.report.wording import interval, number
from counterfoil.types import Attribute


class ModelConfusion(NamedTuple):
    """A confusion that an attribute's edits create in one model more often than chance would."""

    model: str
    attribute: Attribute
    confusion: Confusion


class ModelClass(NamedTuple):
    """A class that edits break most in one model."""

    model: str
    broken: BrokenClass


@dataclass(frozen=True)
class FailureModes:
    """The systematic part of the failures; what was not found or rests on too little is left out."""

    confusions: Sequence[ModelConfusion] = ()
    lenders: Sequence[LenderConfusion] = ()
    classes: Sequence[ModelClass] = ()
    photos: Sequence[BrokenPhoto] = ()
    consistency: Sequence[Consistency] = ()
    falls: Sequence[Fall] = ()

    def __bool__(self) -> bool:
        return bool(self.confusions or self.lenders or self.classes or self.photos or self.consistency)


def told_fall(fall: Fall) -> str:
    """How small the object may be before so many points are lost, in a sentence; an open end is named."""
    lost = f"{number(fall.points, 0)} points"
    if fall.reached == "not reached":
        return f"{fall.model} does not lose {lost} at any of these sizes (n = {fall.n})."
    if fall.reached == "before the first level":
        return f"{fall.model} has lost {lost} before the first size (n = {fall.n})."
    low = "below the smallest size" if math.isnan(fall.ci_low) else f"{number(fall.ci_low)} %"
    high = "above the largest size" if math.isnan(fall.ci_high) else f"{number(fall.ci_high)} %"
    return (
        f"{fall.model} has lost {lost} where the object covers {number(fall.level)} % of the picture "
        f"(95 % interval from {low} to {high}, n = {fall.n})."
    )


def told_lender(row: LenderConfusion) -> str:
    """Whether wrong answers name what lent the background, in a sentence."""
    return (
        f"{row.model}: of {row.share.n} wrong answers on another photo's background, {number(row.share.value)} % "
        f"{interval(row.share)} name the class of that photo; {number(row.chance)} % would by chance."
    )
