"""Statistics: numbers in, numbers out."""

from counterfoil.analyse.answers import Answer, Answers, Condition, collect, unscored
from counterfoil.analyse.dose import DosePoint, dose_curve
from counterfoil.analyse.drops import FEWEST_PHOTOS, drops, significant
from counterfoil.analyse.flips import Flipped, flipped
from counterfoil.analyse.paired import Interval, bootstrap_interval, holm, mcnemar

__all__ = [
    "FEWEST_PHOTOS",
    "Answer",
    "Answers",
    "Condition",
    "DosePoint",
    "Flipped",
    "Interval",
    "bootstrap_interval",
    "collect",
    "dose_curve",
    "drops",
    "flipped",
    "holm",
    "mcnemar",
    "significant",
    "unscored",
]
