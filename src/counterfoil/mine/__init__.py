"""Shared failures: which pictures several surrogates get wrong, and whether models that had no say fail on them too.

Pure functions on arrays: who was right where comes in, which pictures are kept and what that does comes out. Intervals
are the caller's: a function that takes `Photos` gives shares with what they owe to each photo.
"""

from counterfoil.mine.balance import Balance, Spread, balanced, group_of, spread
from counterfoil.mine.bias import Bias, bias_of
from counterfoil.mine.curve import CurveRow, curve
from counterfoil.mine.families import family_of
from counterfoil.mine.rules import Rule, RuleKind, Said, kept_by, kept_of_all, pictures_per_setting
from counterfoil.mine.shares import Photos, share
from counterfoil.mine.subsets import MOST_SURROGATES_FOR_ALL, subsets
from counterfoil.mine.wrong_answers import common_wrong_answer, names_the_same

__all__ = [
    "MOST_SURROGATES_FOR_ALL", "Balance", "Bias", "CurveRow", "Photos", "Rule", "RuleKind", "Said", "Spread",
    "balanced", "bias_of", "common_wrong_answer", "curve", "family_of", "group_of", "kept_by", "kept_of_all",
    "names_the_same", "pictures_per_setting", "share", "spread", "subsets",
]  # fmt: skip
