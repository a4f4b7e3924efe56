"""The kept pictures of a workspace: selected by the rule, then balanced over classes and attributes."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.mining.mining_config import Balance, MiningConfig
from counterfoil.mining.rules import AnswerMatrix, Rule, apply_rule, count_per_setting
from counterfoil.mining.surrogate_answers import AskedModel, SurrogateAnswers
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.photo_shares import PhotoCounts, estimate_share, pooled_share

Group = TypeVar("Group", bound=Hashable)


@dataclass(frozen=True)
class MiningSelection:
    """The pictures that the rule selected, those left after balancing, and notes on both."""

    rule: Rule  # as it was applied
    chosen: NDArray[np.bool_]  # (candidates,), by the rule
    kept: NDArray[np.bool_]  # (candidates,), after balancing
    words: str
    notes: tuple[str, ...]


def select_pictures(asked: SurrogateAnswers, job: MiningConfig) -> MiningSelection:
    """Apply the rule and the balance; raises `UserError` where nothing is selected."""
    _require_answers(asked)
    rule, notes = _adapt_rule(asked, job.rule)
    _require_probabilities(asked, rule)
    chosen = apply_rule(asked.said.of(slice(0, asked.surrogates)), rule)
    words = rule.words(asked.surrogates)
    if not chosen.any():
        raise UserError(_describe_empty(asked, rule, words))
    kept, balance = _balance(asked, chosen, job)
    return MiningSelection(rule, chosen, kept, words + balance, notes)


def _adapt_rule(asked: SurrogateAnswers, rule: Rule) -> tuple[Rule, tuple[str, ...]]:
    """Return the rule and notes; without any original its condition is dropped, and single missing ones are noted."""
    if rule.original == "none":
        return rule, ()
    if not asked.originals:
        return replace(rule, original="none"), ("No picture has an original, so models need not be right on one.",)
    missing = sum(str(e.variant.sample_id) not in asked.originals for e in asked.candidates)
    if not missing:
        return rule, ()
    return rule, (f"{missing} pictures have no original, so this rule cannot keep them.",)


def _require_answers(asked: SurrogateAnswers) -> None:
    if np.isfinite(asked.said.right[: asked.surrogates]).any():
        return
    unread = [row.reason for row in asked.skipped if row.stage == "evaluate"]
    reason = f": {len(unread)} could not be read, the first because {unread[0]}" if unread else ""
    raise UserError(
        f"expected answers of the surrogates to {len(asked.candidates)} edited pictures, got none that can be"
        f" scored{reason}"
    )


def _require_probabilities(asked: SurrogateAnswers, rule: Rule) -> None:
    """Raise `UserError` where a surrogate gives no probabilities: answers saved without them read as 0 and 1."""
    if rule.kind != "mean-probability":
        return
    for model, truth in zip(asked.models[: asked.surrogates], asked.said.truth, strict=False):
        if np.isin(truth[np.isfinite(truth)], (0.0, 1.0)).all():
            raise UserError(
                f"expected probabilities from every surrogate for the rule mean-probability, but {model.name} gives"
                " none; use --at-least instead"
            )


def _describe_empty(asked: SurrogateAnswers, rule: Rule, words: str) -> str:
    """Describe the rule that selected nothing, and what other settings would keep."""
    surrogates = asked.said.of(slice(0, asked.surrogates))
    settings = count_per_setting(surrogates, rule)
    alternatives = ", ".join(f"{name}: {pictures}" for name, pictures in settings.items())
    if any(settings.values()):
        advice = "lower --at-least" if rule.kind != "mean-probability" else "raise --below"
    else:
        freed = int(apply_rule(surrogates, replace(rule, original="none")).sum())
        advice = "add edits, stronger levels or photos" + (
            f", or try --original none, which keeps {freed}" * (freed > 0)
        )
    return (
        f"expected pictures on which {words}, got none of {len(asked.candidates)}; other settings would keep"
        f" {alternatives}; {advice} (answers are kept, so no model is asked twice)"
    )


def _balance(asked: SurrogateAnswers, chosen: NDArray[np.bool_], job: MiningConfig) -> tuple[NDArray[np.bool_], str]:
    if job.balance is None:
        return chosen, ""
    variants = [asked.candidates[place].variant for place in np.flatnonzero(chosen)]
    groups = {v.id: balance_group(job.balance, v.label, v.attribute) for v in variants}
    ids, most = balance_groups(groups, job.most_per_group)
    wanted = set(ids)
    kept = np.array([e.variant.id in wanted for e in asked.candidates], bool)
    over = {"class": "class", "attribute": "attribute", "both": "class and attribute"}[job.balance]
    return kept, f"; balanced, at most {most} of each {over}"


def balance_groups(groups: Mapping[str, Group], most: int | None = None) -> tuple[list[str], int]:
    """Return the ids kept when every group may have `most` (default: the smallest group's number), and that number.

    The hash of the id decides which are kept, so that the same pictures are kept every time.
    """
    members: dict[Group, list[str]] = {}
    for name, group in groups.items():
        members.setdefault(group, []).append(name)
    limit = most or min((len(names) for names in members.values()), default=0)
    chosen = {name for names in members.values() for name in sorted(names, key=_hash_id)[:limit]}
    return [name for name in groups if name in chosen], limit


def balance_group(balance: Balance, label: str, attribute: str) -> tuple[str, ...]:
    """The group that a picture is balanced by: its class, its attribute, or both."""
    return {"class": (label,), "attribute": (attribute,), "both": (label, attribute)}[balance]


def _hash_id(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


@dataclass(frozen=True)
class MinedAnswers:
    """The models asked, their answers, and the pictures kept."""

    job: MiningConfig
    asked: SurrogateAnswers
    choice: MiningSelection

    @property
    def said(self) -> AnswerMatrix:
        """The answers of all models, the surrogates first."""
        return self.asked.said

    @property
    def targets(self) -> list[tuple[int, AskedModel]]:
        """The models that took no part in the selection, with their positions among all."""
        return list(enumerate(self.asked.models))[self.asked.surrogates :]

    @property
    def photos(self) -> PhotoCounts:
        """The candidates' photos."""
        return PhotoCounts(self.asked.photo, len(self.asked.samples[0]))

    def share(self, hits: NDArray[np.bool_], among: NDArray[np.bool_]) -> Estimate:
        """Percent of the pictures, with Wilson's interval for pictures clustered by photo."""
        return estimate_share(pooled_share(hits, among, self.photos)).scaled(100)
