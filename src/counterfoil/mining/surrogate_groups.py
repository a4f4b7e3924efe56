"""The selections of groups of surrogates: curves by group size, and selection bias by leaving one out."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.mining.balanced_selection import MinedAnswers
from counterfoil.mining.mining_results import (
    Curve,
    CurvePoint,
    Role,
    SelectionBias,
    SizeYield,
)
from counterfoil.mining.rules import AnswerMatrix, Rule, apply_to_groups
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.photo_shares import (
    PhotoCounts,
    PhotoShare,
    ShareSum,
    estimate_share,
    mover_interval,
    pooled_share,
    sum_shares,
)

MOST_SURROGATES_FOR_ALL = 12  # 4,095 groups; with more, a sample of each size is drawn
_SAMPLED = 100  # groups per size


def list_subsets(surrogates: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return all non-empty groups as rows, (groups, surrogates), small ones first; sampled above twelve surrogates."""
    rows = [row for size in range(1, surrogates + 1) for row in _subsets_of_size(surrogates, size, rng)]
    masks = np.zeros((len(rows), surrogates), bool)
    for mask, row in zip(masks, rows, strict=True):
        mask[list(row)] = True
    return masks


def _subsets_of_size(surrogates: int, size: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    if surrogates <= MOST_SURROGATES_FOR_ALL or math.comb(surrogates, size) <= _SAMPLED:
        return list(itertools.combinations(range(surrogates), size))
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < _SAMPLED:
        drawn[tuple(sorted(rng.choice(surrogates, size, replace=False).tolist()))] = None
    return list(drawn)


class Bias(NamedTuple):
    """Accuracies on the selection of all and of the others, for a surrogate and for the targets on average."""

    of_all: PhotoShare
    of_others: PhotoShare
    targets_of_all: PhotoShare  # over the targets that answered both selections; NaN where there is none
    targets_of_others: PhotoShare
    pictures_of_others: int

    @property
    def bias(self) -> float:
        """Accuracy on the others' selection minus that on everyone's."""
        return self.of_others.value - self.of_all.value

    @property
    def adjusted(self) -> float:
        """The bias minus what targets lose between the two selections; NaN without targets."""
        return self.bias - (self.targets_of_others.value - self.targets_of_all.value)


def leave_one_out(said: AnswerMatrix, rule: Rule) -> NDArray[np.bool_]:
    """Return what all keep and, in the rows after that, what all but one keep, (1 + surrogates, pictures)."""
    groups = np.vstack([np.ones((1, len(said.right)), bool), ~np.eye(len(said.right), dtype=bool)])
    return apply_to_groups(said, rule, groups)


def cross_fit_bias(said: AnswerMatrix, surrogates: int, rule: Rule, photos: PhotoCounts) -> list[Bias]:
    """Estimate the bias of every surrogate (their answers come first); at least two are needed."""
    chosen, targets = said.of(slice(0, surrogates)), said.of(slice(surrogates, None))
    whole, *without = leave_one_out(chosen, rule)
    return [
        Bias(
            _accuracy(right, whole, photos),
            _accuracy(right, others, photos),
            *_target_accuracies(targets, whole, others, photos),
            int(others.sum()),
        )
        for right, others in zip(chosen.right, without, strict=True)
    ]


def _accuracy(right: NDArray[np.float64], kept: NDArray[np.bool_], photos: PhotoCounts) -> PhotoShare:
    return pooled_share(right == 1, np.isfinite(right) & kept, photos)


def _target_accuracies(
    targets: AnswerMatrix, whole: NDArray[np.bool_], others: NDArray[np.bool_], photos: PhotoCounts
) -> tuple[PhotoShare, PhotoShare]:
    """The mean accuracies of the targets on both selections, over the same targets."""
    answered = np.isfinite(targets.right)
    both = (answered & whole).any(axis=1) & (answered & others).any(axis=1)
    right, among = targets.right[both] == 1, answered[both]
    of_all, of_others = (
        sum_shares(*(next(photos.counts(rows & kept)) for rows in (right, among))).mean for kept in (whole, others)
    )
    return of_all, of_others


_BLOCK = 64  # groups of surrogates processed together


class CurveRow(NamedTuple):
    """One model's answers to the selections of groups of one size; groups that contain the model are excluded."""

    size: int  # surrogates in a group
    groups: int  # that kept a picture which the model answered
    empty: int  # that kept none
    accuracy: PhotoShare  # mean over the groups
    lowest: float  # accuracy over the groups
    highest: float
    transfer: PhotoShare  # failures where the model has the original right


def trace_curves(
    said: AnswerMatrix, rule: Rule, groups: NDArray[np.bool_], photos: PhotoCounts
) -> list[list[CurveRow]]:
    """Return a row per group size for every model; the surrogates come first, each over groups without it.

    `groups` is (groups, surrogates), `said` all models' answers, the surrogates' first.
    """
    sizes = groups.sum(axis=1)
    curves: list[list[CurveRow]] = [[] for _ in said.right]
    for size in np.unique(sizes):
        for rows, shares in zip(curves, _shares_of_size(said, rule, groups[sizes == size], photos), strict=True):
            rows += [] if shares is None else [_curve_row(int(size), *shares)]
    return curves


def _shares_of_size(
    said: AnswerMatrix, rule: Rule, groups: NDArray[np.bool_], photos: PhotoCounts
) -> list[tuple[ShareSum, ShareSum] | None]:
    """Accuracy and transfer of every model, summed block by block; None for a surrogate that is in every group."""
    surrogates = said.of(slice(0, groups.shape[1]))
    shares: list[tuple[ShareSum, ShareSum] | None] = [None] * len(said.right)
    for start in range(0, len(groups), _BLOCK):  # the counts of all groups at once would not fit in memory
        own = groups[start : start + _BLOCK]
        kept = apply_to_groups(surrogates, rule, own)
        for place, before in enumerate(shares):
            outside = ~own[:, place] if place < own.shape[1] else np.ones(len(own), bool)
            if outside.any():
                block = _shares(said.of([place]), kept[outside], photos)
                shares[place] = block if before is None else (before[0].joined(block[0]), before[1].joined(block[1]))
    return shares


def _shares(model: AnswerMatrix, kept: NDArray[np.bool_], photos: PhotoCounts) -> tuple[ShareSum, ShareSum]:
    """How often the model is right on what groups kept, and wrong where it has the original right."""
    right, sound = model.right[0], model.original[0] == 1
    answered = np.isfinite(right)
    kinds = (right == 1, answered, sound & (right == 0), sound & answered)
    hits, asked, lost, known = photos.counts(kept, kinds)
    return sum_shares(hits, asked), sum_shares(lost, known)


def _curve_row(size: int, accuracy: ShareSum, transfer: ShareSum) -> CurveRow:
    ends = accuracy.lowest, accuracy.highest
    return CurveRow(size, accuracy.sets, accuracy.empty, accuracy.mean, *ends, transfer.mean)


_SEED = 0  # of sampled groups: the same answers give the same page


def list_groups(picked: MinedAnswers) -> NDArray[np.bool_]:
    """Return the groups of surrogates to evaluate."""
    return list_subsets(picked.asked.surrogates, np.random.default_rng(_SEED))


def estimate_curves(picked: MinedAnswers, groups: NDArray[np.bool_]) -> list[Curve]:
    """Estimate a curve for every target, and for every surrogate over the groups without it."""
    rows = trace_curves(picked.said, _group_rule(picked), groups, picked.photos)
    curves = []
    for place, (model, points) in enumerate(zip(picked.asked.models, rows, strict=True)):
        role: Role = "surrogate" if place < picked.asked.surrogates else "target"
        if points:
            curves.append(Curve(model.name, role, tuple(_point(picked, row) for row in points)))
    return curves


def estimate_size_yields(picked: MinedAnswers, groups: NDArray[np.bool_]) -> list[SizeYield]:
    """Estimate the share of the candidates that groups of each size keep."""
    surrogates = picked.said.of(slice(0, picked.asked.surrogates))
    rule = _group_rule(picked)
    starts = range(0, len(groups), _BLOCK)
    blocks = [apply_to_groups(surrogates, rule, groups[start : start + _BLOCK]).mean(axis=1) for start in starts]
    shares, sizes = 100 * np.concatenate(blocks), groups.sum(axis=1)
    return [
        SizeYield(int(size), len(own), float(own.mean()), float(own.min()), float(own.max()))
        for size in np.unique(sizes)
        for own in [shares[sizes == size]]
    ]


def estimate_biases(picked: MinedAnswers) -> list[SelectionBias]:
    """Estimate the selection bias of every surrogate; empty where there is only one."""
    if picked.asked.surrogates < 2:
        return []
    biases = cross_fit_bias(picked.said, picked.asked.surrogates, picked.choice.rule, picked.photos)
    return [_bias(picked, place, row) for place, row in enumerate(biases)]


def _group_rule(picked: MinedAnswers) -> Rule:
    """The rule within a group: all of its members must fail, whatever number the rule asks of all surrogates."""
    rule = picked.choice.rule
    return rule if rule.kind == "mean-probability" else replace(rule, kind="all")


def _bias(picked: MinedAnswers, place: int, row: Bias) -> SelectionBias:
    of_all, of_others = (estimate_share(found).scaled(100) for found in (row.of_all, row.of_others))
    own = [(1.0, row.of_others)]
    if _by_construction(picked):
        of_all = of_all._replace(ci_high=0.0)
    else:
        own.append((-1.0, row.of_all))
    by_targets = [(-1.0, row.targets_of_others), (1.0, row.targets_of_all)]
    bias = Estimate(row.bias, *mover_interval(own, row.bias), row.pictures_of_others)
    adjusted = Estimate(row.adjusted, *mover_interval([*own, *by_targets], row.adjusted), row.pictures_of_others)
    name = picked.asked.models[place].name
    return SelectionBias(name, of_all, of_others, bias.scaled(100), adjusted.scaled(100), row.pictures_of_others)


def _by_construction(picked: MinedAnswers) -> bool:
    """Whether every surrogate must fail, so that none can be right on what all selected."""
    rule, surrogates = picked.choice.rule, picked.asked.surrogates
    return rule.kind != "mean-probability" and int(rule.needed(np.array(surrogates))) == surrogates


def _point(picked: MinedAnswers, row: CurveRow) -> CurvePoint:
    n = picked.photos.many
    accuracy, transfer = (estimate_share(found)._replace(n=n).scaled(100) for found in (row.accuracy, row.transfer))
    return CurvePoint(
        size=row.size,
        groups=row.groups,
        empty=row.empty,
        accuracy=accuracy,
        lowest=100 * row.lowest,
        highest=100 * row.highest,
        transfer=transfer,
    )
