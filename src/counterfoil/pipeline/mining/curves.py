"""Difficulty, transfer and yield against the number of surrogates, and what choosing does to the choosers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Estimate
from counterfoil.analyse.photo_shares import combined, share_estimate
from counterfoil.mine import Bias, CurveRow, Rule, bias_of, curve, kept_by, subsets
from counterfoil.pipeline.mining.picked import Picked
from counterfoil.report.mining import Curve, CurvePoint, SelectionBias, SizeYield
from counterfoil.report.mining.content import Role

_SEED = 0  # of sampled groups: the same answers give the same page
_BLOCK = 64  # groups at once


def groups_of(picked: Picked) -> NDArray[np.bool_]:
    """The groups of surrogates that are looked at."""
    return subsets(picked.asked.surrogates, np.random.default_rng(_SEED))


def curves_of(picked: Picked, groups: NDArray[np.bool_]) -> list[Curve]:
    """A curve for every target, and for every surrogate over the groups that it is not in."""
    rows = curve(picked.said, _of_a_group(picked), groups, picked.photos)
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
    of_all, of_others = (share_estimate(found).scaled(100) for found in (row.of_all, row.of_others))
    own = [(1.0, row.of_others)]
    if _by_construction(picked):
        of_all = of_all._replace(ci_high=0.0)
    else:
        own.append((-1.0, row.of_all))
    by_targets = [(-1.0, row.targets_of_others), (1.0, row.targets_of_all)]
    bias = Estimate(row.bias, *combined(own, row.bias), row.pictures_of_others)
    adjusted = Estimate(row.adjusted, *combined([*own, *by_targets], row.adjusted), row.pictures_of_others)
    name = picked.asked.models[place].name
    return SelectionBias(name, of_all, of_others, bias.scaled(100), adjusted.scaled(100), row.pictures_of_others)


def _by_construction(picked: Picked) -> bool:
    """Whether every surrogate has to fail, so that none can be right on what all chose."""
    rule, surrogates = picked.choice.rule, picked.asked.surrogates
    return rule.kind != "mean-probability" and int(rule.needed(np.array(surrogates))) == surrogates


def _point(picked: Picked, row: CurveRow) -> CurvePoint:
    n = picked.photos.many
    accuracy, transfer = (share_estimate(found)._replace(n=n).scaled(100) for found in (row.accuracy, row.transfer))
    return CurvePoint(row.size, row.groups, row.empty, accuracy, 100 * row.lowest, 100 * row.highest, transfer)
