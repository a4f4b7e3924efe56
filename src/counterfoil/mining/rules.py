"""The rule that keeps a mined picture: which surrogates must fail on it, and what they must answer to its original."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError, expect_choice, expect_kind

RuleKind: TypeAlias = Literal["all", "at-least", "mean-probability"]
OriginalRule: TypeAlias = Literal["failing", "all", "none"]

_THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)  # of the mean probability, reported where a rule keeps nothing


class AnswerMatrix(NamedTuple):
    """The answers of models to the candidates, each (models, pictures)."""

    right: NDArray[np.float64]  # 1 right, 0 wrong, NaN not scored
    truth: NDArray[np.float64]  # probability of the true class, NaN where there is none
    original: NDArray[np.float64]  # like `right`, for the picture's unedited original; NaN where there is none

    def of(self, models: slice | list[int] | NDArray[np.intp]) -> AnswerMatrix:
        """The answers of some of the models."""
        return AnswerMatrix(self.right[models], self.truth[models], self.original[models])


@dataclass(frozen=True)
class Rule:
    """The condition for keeping a picture.

    `original` says where a failure counts: "failing" where that surrogate has the unedited original right, "all" only
    where all surrogates have it right, "none" everywhere.
    """

    kind: RuleKind = "all"
    least: int = 1  # surrogates that must fail, for "at-least"
    below: float = 0.1  # mean probability of the true class, for "mean-probability"
    original: OriginalRule = "failing"

    def __post_init__(self) -> None:
        expect_kind(self.least, int, "at_least as a whole number")
        expect_kind(self.below, (int, float), "below as a probability")
        expect_choice(self.original, ("failing", "all", "none"), "original")
        if self.least < 1:
            raise UserError(f"expected at least 1 failing surrogate, got {self.least}")
        if not 0 < self.below <= 1:
            raise UserError(f"expected a mean probability above 0 and at most 1, got {self.below:g}")

    def check(self, surrogates: int) -> None:
        """Raise `UserError` where the rule asks for more than this many surrogates can give."""
        if surrogates < 1:
            raise UserError("expected at least one surrogate, got none; give --surrogate embedded:efficientnet-lite0")
        if self.kind == "at-least" and self.least > surrogates:
            raise UserError(f"expected --at-least of at most {surrogates}, the number of surrogates, got {self.least}")

    def words(self, surrogates: int) -> str:
        """The rule as it is recorded."""
        failure, mean = self._failure(surrogates), self.kind == "mean-probability"
        if self.original == "none":
            return f"{failure}, right on the original or not"
        if self.original == "all":
            return f"{failure}, and {_everyone(surrogates)} right on the original"
        if mean:
            return f"{failure}; surrogates that are wrong on the original do not count"
        return f"{failure} and right on the original"

    def needed(self, sizes: NDArray[np.intp]) -> NDArray[np.intp]:
        """How many of this many surrogates must fail; all of them where there are fewer than the rule asks for."""
        return sizes if self.kind == "all" else np.minimum(self.least, sizes)

    def _failure(self, surrogates: int) -> str:
        if self.kind == "mean-probability":
            return f"the mean probability of the true class over {_counted(surrogates)} is below {self.below:g}"
        if self.kind == "all" or self.least == surrogates:
            return f"{_everyone(surrogates)} wrong on the picture"
        return f"at least {self.least} of {surrogates} surrogates are wrong on the picture"


def apply_to_groups(said: AnswerMatrix, rule: Rule, groups: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return what each group of surrogates would keep, (groups, pictures); `groups` is (groups, surrogates)."""
    members = groups.astype(np.float64)
    counts = np.ones_like(said.right, bool) if rule.original == "none" else said.original == 1
    if rule.kind == "mean-probability":
        kept = _apply_probability(said, rule, members, counts if rule.original == "failing" else np.ones_like(counts))
    else:
        fails = (said.right == 0) & (counts if rule.original == "failing" else np.ones_like(counts))
        kept = members @ fails >= rule.needed(groups.sum(axis=1))[:, None]
    return kept & (members @ ~counts == 0) if rule.original == "all" else kept


def apply_rule(said: AnswerMatrix, rule: Rule) -> NDArray[np.bool_]:
    """Return what all surrogates together keep, (pictures,)."""
    kept: NDArray[np.bool_] = apply_to_groups(said, rule, np.ones((1, len(said.right)), bool))[0]
    return kept


def count_per_setting(said: AnswerMatrix, rule: Rule) -> dict[str, int]:
    """Count how many pictures other settings of the rule would keep, the strictest first."""
    if rule.kind == "mean-probability":
        milder = [(f"below {t:g}", Rule(rule.kind, below=t, original=rule.original)) for t in _THRESHOLDS]
    else:
        numbers = range(len(said.right), 0, -1)
        milder = [(f"at least {n}", Rule("at-least", least=n, original=rule.original)) for n in numbers]
    return {name: int(apply_rule(said, setting).sum()) for name, setting in milder}


def _apply_probability(
    said: AnswerMatrix, rule: Rule, members: NDArray[np.float64], counts: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Where the mean probability of the true class, over the surrogates that count, is below the threshold."""
    known = np.isfinite(said.truth) & counts
    total, many = members @ np.where(known, said.truth, 0.0), members @ known
    return np.asarray((total < rule.below * many) & (many > 0))


def _counted(surrogates: int) -> str:
    return f"{surrogates} surrogate{'' if surrogates == 1 else 's'}"


def _everyone(surrogates: int) -> str:
    return {1: "the surrogate is", 2: "both surrogates are"}.get(surrogates, f"all {surrogates} surrogates are")
