"""Selection bias of surrogates.

Difficulty by number of surrogates; difficulty, transfer, yield by number of surrogates; transfer to models that did
not choose; yield, evenness, model accuracy on kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.mining.balanced_selection import MinedAnswers
from counterfoil.mining.mining_results import (
    ALL,
    Curve,
    CurvePoint,
    MinedModel,
    Role,
    SelectionBias,
    SizeYield,
    SpreadRow,
    Transfer,
    WrongAnswers,
    Yield,
)
from counterfoil.mining.rules import (
    AnswerMatrix,
    Rule,
    apply_to_groups,
    find_common_answer,
    list_subsets,
    measure_spread,
    repeats_common_answer,
)
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.shares import (
    PhotoCounts,
    PhotoShare,
    ShareSum,
    estimate_share,
    mover_interval,
    pooled_share,
    sum_shares,
)


class Bias(NamedTuple):
    """Accuracies on what all and on what the others chose, of a surrogate and of the targets on average."""

    of_all: PhotoShare
    of_others: PhotoShare
    targets_of_all: PhotoShare  # over the targets that answered both choices; NaN where there is none
    targets_of_others: PhotoShare
    pictures_of_others: int

    @property
    def bias(self) -> float:
        """Others minus all."""
        return self.of_others.value - self.of_all.value

    @property
    def adjusted(self) -> float:
        """The bias less what targets lose from the others' choice to the whole; NaN without targets."""
        return self.bias - (self.targets_of_others.value - self.targets_of_all.value)


def leave_one_out(said: AnswerMatrix, rule: Rule) -> NDArray[np.bool_]:
    """What is kept by all and, row by row after that, by all but one, (1 + surrogates, pictures)."""
    groups = np.vstack([np.ones((1, len(said.right)), bool), ~np.eye(len(said.right), dtype=bool)])
    return apply_to_groups(said, rule, groups)


def cross_fit_bias(said: AnswerMatrix, surrogates: int, rule: Rule, photos: PhotoCounts) -> list[Bias]:
    """The bias of every surrogate, whose answers stand first; there must be two at least, since the others choose."""
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
    """The targets' mean accuracies on both choices; the same targets on both sides, or they could not be compared."""
    answered = np.isfinite(targets.right)
    both = (answered & whole).any(axis=1) & (answered & others).any(axis=1)
    right, among = targets.right[both] == 1, answered[both]
    of_all, of_others = (
        sum_shares(*(next(photos.counts(rows & kept)) for rows in (right, among))).mean for kept in (whole, others)
    )
    return of_all, of_others


_BLOCK = 64  # groups of surrogates looked at together


class CurveRow(NamedTuple):
    """One model's answers to what groups of one size chose; a group that a surrogate is in is not asked about it."""

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
    """For every model a row per size of group; the first models are the surrogates, each seen where it had no say.

    `groups` is (groups, surrogates), `said` all models' answers, the surrogates' first.
    """
    sizes = groups.sum(axis=1)
    found: list[list[CurveRow]] = [[] for _ in said.right]
    for size in np.unique(sizes):
        for rows, told in zip(found, _shares_of_size(said, rule, groups[sizes == size], photos), strict=True):
            rows += [] if told is None else [_curve_row(int(size), *told)]
    return found


def _shares_of_size(
    said: AnswerMatrix, rule: Rule, groups: NDArray[np.bool_], photos: PhotoCounts
) -> list[tuple[ShareSum, ShareSum] | None]:
    """Accuracy and transfer of every model, added up block by block; None of a surrogate that is in every group."""
    surrogates = said.of(slice(0, groups.shape[1]))
    found: list[tuple[ShareSum, ShareSum] | None] = [None] * len(said.right)
    for start in range(0, len(groups), _BLOCK):  # the counts of all groups at once would fill the memory
        own = groups[start : start + _BLOCK]
        kept = apply_to_groups(surrogates, rule, own)
        for place, before in enumerate(found):
            outside = ~own[:, place] if place < own.shape[1] else np.ones(len(own), bool)
            if outside.any():
                told = _shares(said.of([place]), kept[outside], photos)
                found[place] = told if before is None else (before[0].joined(told[0]), before[1].joined(told[1]))
    return found


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
    """The groups of surrogates that are looked at."""
    return list_subsets(picked.asked.surrogates, np.random.default_rng(_SEED))


def estimate_curves(picked: MinedAnswers, groups: NDArray[np.bool_]) -> list[Curve]:
    """A curve for every target, and for every surrogate over the groups that it is not in."""
    rows = trace_curves(picked.said, _group_rule(picked), groups, picked.photos)
    found = []
    for place, (model, points) in enumerate(zip(picked.asked.models, rows, strict=True)):
        role: Role = "surrogate" if place < picked.asked.surrogates else "target"
        if points:
            found.append(Curve(model.name, role, tuple(_point(picked, row) for row in points)))
    return found


def estimate_size_yields(picked: MinedAnswers, groups: NDArray[np.bool_]) -> list[SizeYield]:
    """What share of the candidates groups of each size keep."""
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
    """The selection bias of every surrogate; none where one chose alone, since no other can take its place."""
    if picked.asked.surrogates < 2:
        return []
    found = cross_fit_bias(picked.said, picked.asked.surrogates, picked.choice.rule, picked.photos)
    return [_bias(picked, place, row) for place, row in enumerate(found)]


def _group_rule(picked: MinedAnswers) -> Rule:
    """A group chooses what all of it fail on, whatever number the rule asks of all surrogates: more, never milder."""
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
    """Whether every surrogate has to fail, so that none can be right on what all chose."""
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


def estimate_transfers(picked: MinedAnswers) -> list[Transfer]:
    """Every target."""
    return [_transfer(picked, model.name, picked.job.family(model.address), [place]) for place, model in picked.targets]


def estimate_families(picked: MinedAnswers) -> list[Transfer]:
    """The targets of each family together: a pair of target and picture counts once."""
    members: dict[str, list[int]] = {}
    for place, model in picked.targets:
        members.setdefault(picked.job.family(model.address), []).append(place)
    return [_transfer(picked, name, name, places) for name, places in members.items()]


def _transfer(picked: MinedAnswers, name: str, family: str, places: Sequence[int]) -> Transfer:
    right, original = picked.said.right[list(places)], picked.said.original[list(places)]
    chose = {picked.job.family(model.address) for model in picked.asked.models[: picked.asked.surrogates]}
    failing = _contrast(picked, right == 0, np.isfinite(right))
    lost = _contrast(picked, right == 0, np.isfinite(right) & (original == 1))
    return Transfer(name, family, family not in chose, *failing, *lost)


def _contrast(
    picked: MinedAnswers, hits: NDArray[np.bool_], among: NDArray[np.bool_]
) -> tuple[Estimate, Estimate, Estimate]:
    """The share on the kept pictures, on all candidates, and how much more; over all pairs of model and picture."""
    chosen = np.broadcast_to(picked.choice.kept, among.shape)
    kept, everything, rest, part = (
        pooled_share(what, of, picked.photos)
        for what, of in ((hits, among & chosen), (hits, among), (hits, among & ~chosen), (chosen, among))
    )
    of_kept, of_all = (estimate_share(found).scaled(100) for found in (kept, everything))
    return of_kept, of_all, _difference(kept, rest, part).scaled(100)


def _difference(kept: PhotoShare, rest: PhotoShare, part: PhotoShare) -> Estimate:
    """Kept against all is kept against the rest, less by the kept ones' part of all; all three are uncertain.

    The kept pictures are among all: an interval from those of these two would be too sure where all kept ones fail.
    """
    n = round(kept.pictures)
    if not n or part.value == 1:  # nothing or everything is kept: there is nothing to compare
        return Estimate(math.nan, math.nan, math.nan, n)
    others, gap = 1 - part.value, kept.value - rest.value
    terms = [(others, kept), (-others, rest), (-gap, part)]
    return Estimate(others * gap, *mover_interval(terms, others * gap), n)


_GROUPED: dict[Literal["class", "attribute"], str] = {"class": "label", "attribute": "attribute"}


def estimate_models(picked: MinedAnswers) -> list[MinedModel]:
    """Every model with its accuracies on originals, candidates and kept pictures."""
    first = np.zeros(len(picked.asked.candidates), bool)
    first[np.unique(picked.asked.photo, return_index=True)[1]] = True  # one picture stands for its photo's original
    found = []
    for place, model in enumerate(picked.asked.models):
        right, original = picked.said.right[place], picked.said.original[place]
        scored = np.isfinite(right)
        accuracies = (
            picked.share(original == 1, first & np.isfinite(original)),
            picked.share(right == 1, scored),
            picked.share(right == 1, scored & picked.choice.kept),
        )
        role: Role = "surrogate" if place < picked.asked.surrogates else "target"
        family = picked.job.family(model.address)
        found.append(MinedModel(model.name, role, family, model.digest, *accuracies, int((~scored).sum())))
    return found


def estimate_yields(picked: MinedAnswers) -> list[Yield]:
    """What the rule chose of all, then of every attribute with its edits and their levels."""
    variants = [stored.variant for stored in picked.asked.candidates]
    columns = [np.array([getattr(v, name) for v in variants], object) for name in ("attribute", "edit", "level")]
    rows = dict.fromkeys([(ALL, ALL, ALL)])
    for attribute in dict.fromkeys(v.attribute for v in variants):
        own = [v for v in variants if v.attribute == attribute]
        rows[attribute, ALL, ALL] = None
        for edit in dict.fromkeys(v.edit for v in own):
            rows[attribute, edit, ALL] = None
            rows |= dict.fromkeys((attribute, edit, v.level) for v in own if v.edit == edit)
    found = []
    for row in rows:
        among = np.ones(len(variants), bool)
        for name, column in zip(row, columns, strict=True):
            among &= (column == name) | (name == ALL)
        chosen = picked.choice.chosen & among
        found.append(Yield(*row, int(among.sum()), int(chosen.sum()), picked.share(chosen, among)))
    return found


def estimate_spreads(picked: MinedAnswers) -> Iterator[SpreadRow]:
    """How evenly candidates and kept pictures spread over classes and attributes."""
    for over, name in _GROUPED.items():
        groups = [str(getattr(stored.variant, name)) for stored in picked.asked.candidates]
        kept = [group for group, is_kept in zip(groups, picked.choice.kept, strict=True) if is_kept]
        yield SpreadRow(over, "candidates", measure_spread(groups, groups), _largest(groups))
        yield SpreadRow(over, "kept", measure_spread(kept, groups), _largest(kept))


def count_classes(picked: MinedAnswers) -> list[tuple[str, int, int]]:
    """Every class with its candidates and kept pictures, the fullest first."""
    labels = [stored.variant.label for stored in picked.asked.candidates]
    candidates = Counter(labels)
    kept = Counter(label for label, is_kept in zip(labels, picked.choice.kept, strict=True) if is_kept)
    rows = [(label, many, kept[label]) for label, many in candidates.items()]
    return sorted(rows, key=lambda row: (-row[2], -row[1], row[0]))


def estimate_wrong_answers(picked: MinedAnswers) -> WrongAnswers:
    """Whether the failing surrogates name the same class, and whether targets that fail there name it too."""
    surrogates = slice(0, picked.asked.surrogates)
    wrong = picked.said.right == 0
    common = find_common_answer(picked.asked.answers[surrogates], wrong[surrogates])
    several = picked.choice.kept & (wrong[surrogates].sum(axis=0) > 1)
    followed = repeats_common_answer(picked.asked.answers, wrong, common)
    shared = picked.choice.kept & (common >= 0)
    return WrongAnswers(
        picked.share(common >= 0, several),
        {model.name: picked.share(followed[place], shared & wrong[place]) for place, model in picked.targets},
    )


def _largest(members: Sequence[str]) -> str:
    counts = Counter(members)
    return min(counts, key=lambda name: (-counts[name], name), default="")
