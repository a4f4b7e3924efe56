"""Difficulty, transfer and yield against the number of surrogates, and what choosing does to the choosers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from counterfoil.mine import Bias, CurveRow, Photos, Rule, bias_of, curve, kept_by, subsets
from counterfoil.pipeline.mining.picked import SEED, Picked, resampled
from counterfoil.report.mining import Curve, CurvePoint, SelectionBias, SizeYield
from counterfoil.report.mining.content import Role

_FEWEST_RESAMPLES = 100
_MOST_WORK = 5_000_000_000  # resamples x photos x groups x sums: seconds, not minutes
_SUMS = 4  # over the pictures, of every model and group
_BLOCK = 64  # groups at once


def groups_of(picked: Picked) -> NDArray[np.bool_]:
    """The groups of surrogates that are looked at."""
    return subsets(picked.asked.surrogates, np.random.default_rng(SEED))


def curves_of(picked: Picked, groups: NDArray[np.bool_]) -> list[Curve]:
    """A curve for every target, and for every surrogate over the groups that it is not in."""
    rows = curve(picked.said, _of_a_group(picked), groups, _affordable(picked, len(groups)))
    found = []
    for place, (model, points) in enumerate(zip(picked.asked.models, rows, strict=True)):
        role: Role = "surrogate" if place < picked.asked.surrogates else "target"
        if points:
            found.append(Curve(model.name, role, tuple(_point(picked, row) for row in points)))
    return found


def sizes_of(picked: Picked, groups: NDArray[np.bool_]) -> list[SizeYield]:
    """What share of the candidates groups of each size keep."""
    surrogates = picked.said.of(slice(0, picked.asked.surrogates))
    rule = _of_a_group(picked)
    starts = range(0, len(groups), _BLOCK)
    blocks = [kept_by(surrogates, rule, groups[start : start + _BLOCK]).mean(axis=1) for start in starts]
    shares, sizes = 100 * np.concatenate(blocks), groups.sum(axis=1)
    return [
        SizeYield(int(size), len(own), float(own.mean()), float(own.min()), float(own.max()))
        for size in np.unique(sizes)
        for own in [shares[sizes == size]]
    ]


def biases_of(picked: Picked) -> list[SelectionBias]:
    """The selection bias of every surrogate; none where one chose alone, since no other can take its place."""
    if picked.asked.surrogates < 2:
        return []
    found = bias_of(picked.said, picked.asked.surrogates, picked.choice.rule, picked.photos)
    return [_bias(picked, place, row) for place, row in enumerate(found)]


def _of_a_group(picked: Picked) -> Rule:
    """A group chooses what all of it fail on, whatever number the rule asks of all surrogates: more, never milder."""
    rule = picked.choice.rule
    return rule if rule.kind == "mean-probability" else replace(rule, kind="all")


def _bias(picked: Picked, place: int, row: Bias) -> SelectionBias:
    chosen, others = int(picked.choice.chosen.sum()), row.pictures_of_others
    return SelectionBias(
        picked.asked.models[place].name,
        resampled(row.chosen_by_all, chosen),
        resampled(row.chosen_by_others, others),
        resampled(row.bias, others),
        resampled(row.adjusted, others),
        others,
    )


def _point(picked: Picked, row: CurveRow) -> CurvePoint:
    n = len(picked.asked.samples[0])
    accuracy, transfer = resampled(row.accuracy, n), resampled(row.transfer, n)
    return CurvePoint(row.size, row.groups, row.empty, accuracy, 100 * row.lowest, 100 * row.highest, transfer)


def _affordable(picked: Picked, groups: int) -> Photos:
    """Fewer resamples where groups, photos and models are many."""
    photos = picked.photos
    sums = _SUMS * len(picked.asked.models) * groups
    rows = max(_FEWEST_RESAMPLES, _MOST_WORK // (sums * photos.weights.shape[1]))
    return photos._replace(weights=photos.weights[: 1 + rows])
