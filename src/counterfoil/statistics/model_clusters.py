"""Clusters of models that fail on the same pictures, whatever their accuracy.

Agreement is the correlation of failures: the odds ratio of two models' right and wrong answers, pooled over the edits
(Mantel and Haenszel 1959), as a tetrachoric correlation (approximation of Bonett and Price 2005). Two models that
merely lose as much to an edit, or are right as often, do not agree. Kappa depends on how often models are wrong: it
would put those of like accuracy together. Models are joined by average linkage, and the tree is cut where the mean
silhouette is highest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import REFERENCES, Answers

FEWEST_MODELS = 4
MOST_CLUSTERS = 10
# Of simulated tables without clusters 0 to 2 of 100 reach both. Accuracy may look like a cluster where models that are
# right on 20 to 97 % fail nearly alike, each on what the next better one fails on and more: then 9 to 77 of 100 do.
_CLEAR = 0.25  # mean silhouette
_APART = 0.15  # agreement within clusters, less that between them


class ModelClusters(NamedTuple):
    """The clusters of models, the largest first; a single one where none stands out."""

    models: tuple[str, ...]
    agreement: NDArray[np.float64]  # (models, models), 1 on the diagonal, NaN where two share no picture
    cluster: NDArray[np.intp]  # (models,), from 0

    @property
    def number(self) -> int:
        """The number of clusters."""
        return int(self.cluster.max(initial=-1)) + 1

    def members(self, cluster: int) -> list[str]:
        """The models of a cluster, in the order of the table."""
        return [model for model, own in zip(self.models, self.cluster, strict=True) if own == cluster]

    def agreement_within(self, cluster: int) -> float:
        """The mean agreement of every two models of a cluster; NaN where it has one."""
        inside = np.flatnonzero(self.cluster == cluster)
        pairs = self.agreement[np.ix_(inside, inside)][np.triu_indices(len(inside), 1)]
        return float(pairs.mean()) if pairs.size else math.nan

    def agreement_with_others(self, cluster: int) -> float:
        """The mean agreement of a model of a cluster and one that is not of it; NaN where there is none."""
        inside = self.cluster == cluster
        pairs = self.agreement[np.ix_(inside, ~inside)]
        return float(pairs.mean()) if pairs.size else math.nan


def cluster_models(answers: Answers, models: Sequence[str]) -> ModelClusters:
    """Cluster some of the models by the edited pictures that they get wrong."""
    agreement = measure_failure_agreement(answers, models)
    alone = ModelClusters(tuple(models), agreement, np.zeros(len(models), np.intp))
    if len(models) < FEWEST_MODELS or not np.isfinite(agreement).all():
        return alone
    distance = 1.0 - agreement
    merges = link_by_average(distance)
    cuts = [cut_tree(merges, len(models), count) for count in range(2, min(MOST_CLUSTERS, len(models) // 2) + 1)]
    clear, _, best = max((mean_silhouette(distance, cut), -place, cut) for place, cut in enumerate(cuts))
    return alone._replace(cluster=best) if clear >= _CLEAR and _are_apart(agreement, best) else alone


def _are_apart(agreement: NDArray[np.float64], cluster: NDArray[np.intp]) -> bool:
    pairs = np.triu_indices(len(cluster), 1)
    same = np.equal.outer(cluster, cluster)[pairs]
    return bool(agreement[pairs][same].mean() - agreement[pairs][~same].mean() >= _APART)


def measure_failure_agreement(answers: Answers, models: Sequence[str]) -> NDArray[np.float64]:
    """The correlation of failures of every two models over all edited pictures, (models, models).

    A photo counts once under each condition: as wrong where half of its replicates or more were answered wrongly.
    """
    rows = [answers.model_index(model) for model in models]
    same, opposite, total, wrong_first = np.zeros((4, len(rows), len(rows)))
    for condition in np.flatnonzero(~answers.conditions_of(REFERENCES)):
        right, scored = (counts[rows, condition] for counts in answers.tally[:2])  # (models, samples)
        known = (scored > 0).astype(np.float32)
        wrong = ((2 * right <= scored) & (scored > 0)).astype(np.float32)
        both = (known @ known.T).astype(np.float64)
        wrong_both = (wrong @ wrong.T).astype(np.float64)
        only_first = (wrong @ known.T).astype(np.float64) - wrong_both
        right_both = both - wrong_both - only_first - only_first.T
        for sums, product in ((same, wrong_both * right_both), (opposite, only_first * only_first.T)):
            sums += np.divide(product, both, out=np.zeros_like(both), where=both > 0)
        total += both
        wrong_first += wrong_both + only_first
    odds = (same + 0.5) / (opposite + 0.5)  # finite where no answers differ
    with np.errstate(invalid="ignore"):  # 0 / 0: no picture of both
        first = wrong_first / total
    rarest = np.minimum(np.minimum(first, 1.0 - first), np.minimum(first.T, 1.0 - first.T))
    exponent = (1.0 - np.abs(first - first.T) / 5.0 - (0.5 - rarest) ** 2) / 2.0
    agreement = np.where(total > 0, np.cos(np.pi / (1.0 + odds**exponent)), np.nan)
    np.fill_diagonal(agreement, 1.0)
    return agreement


def link_by_average(distance: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Join the two nearest clusters again and again, by the mean distance of their members.

    Each merge names the first member of either cluster, the lower first, which then stands for both.
    """
    between, sizes = distance.astype(np.float64), np.ones(len(distance))
    np.fill_diagonal(between, np.inf)
    merges = []
    for _ in range(len(distance) - 1):
        first, second = sorted(int(place) for place in np.unravel_index(np.argmin(between), between.shape))
        merges.append((first, second))
        joined = (sizes[first] * between[first] + sizes[second] * between[second]) / (sizes[first] + sizes[second])
        between[first], between[:, first] = joined, joined
        between[second], between[:, second] = np.inf, np.inf
        between[first, first] = np.inf
        sizes[first] += sizes[second]
    return merges


def cut_tree(merges: Sequence[tuple[int, int]], items: int, count: int) -> NDArray[np.intp]:
    """The cluster of each item where so many are left, the largest cluster first, of equal ones the earlier."""
    head = list(range(items))
    for first, second in merges[: items - count]:
        head = [first if there == second else there for there in head]
    heads = sorted(set(head), key=lambda there: (-head.count(there), there))
    return np.array([heads.index(there) for there in head], np.intp)


def mean_silhouette(distance: NDArray[np.float64], cluster: NDArray[np.intp]) -> float:
    """How much nearer items are to their own cluster than to the next, from -1 to 1; 0 for one that is alone."""
    members = np.equal.outer(cluster, np.arange(cluster.max() + 1)).astype(np.float64)  # (items, clusters)
    sizes, sums = members.sum(axis=0), distance @ members
    own = cluster[:, None] == np.arange(len(sizes))
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: alone in its cluster
        inside = sums[own] / (sizes[cluster] - 1)
        nearest = np.where(own, np.inf, sums / sizes).min(axis=1)
        width = (nearest - inside) / np.maximum(inside, nearest)
    return float(np.nan_to_num(width).mean())
