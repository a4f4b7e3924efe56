"""Clusters of models by what they fail on: against scipy and scikit-learn, and on tables with and without families."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score, cohen_kappa_score, silhouette_score
from statsmodels.stats.contingency_tables import StratifiedTable

from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.model_clusters import (
    cluster_models,
    cut_tree,
    link_by_average,
    mean_silhouette,
    measure_failure_agreement,
)


def make_answers(right: NDArray[np.bool_], scored: NDArray[np.bool_] | None = None) -> Answers:
    """Answers (models, conditions, photos), the first condition the unedited photos."""
    models, conditions, photos = right.shape
    model, condition, sample = (axis.ravel() for axis in np.indices(right.shape))
    return Answers(
        models=tuple(f"m{n}" for n in range(models)),
        conditions=(
            Condition("original", "original", "none"),
            *(Condition("size", "size", str(n)) for n in range(1, conditions)),
        ),
        samples=tuple(map(str, range(photos))),
        model=model, condition=condition, sample=sample, replicate=np.zeros(right.size, int),
        correct=right.ravel(),
        scored=np.ones(right.size, bool) if scored is None else scored.ravel(),
        object_share=np.full(right.size, np.nan),
    )  # fmt: skip


def make_families(family: NDArray[np.intp], photos: int, shared: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Right answers of models whose skill, and whose loss to each edit, differ; a family shares what is hard for it."""
    conditions = 9
    hard = rng.normal(size=photos) + shared * rng.normal(size=(family.max() + 1, photos))[family]  # (models, photos)
    cost = np.outer(rng.uniform(0.5, 1.5, len(family)), np.linspace(0, 1.2, conditions))
    own = 0.5 * rng.normal(size=(len(family), photos))
    skill = rng.uniform(0.2, 2.0, len(family))
    noise = rng.normal(size=(len(family), conditions, photos))
    return np.asarray(skill[:, None, None] - cost[:, :, None] + (hard + own)[:, None] + noise > 0)


def test_agreement_is_the_pooled_odds_ratio_of_statsmodels_as_a_correlation() -> None:
    rng = np.random.default_rng(1)
    right = make_families(np.array([0, 0, 1]), 200, 1.0, rng)
    scored = rng.random(right.shape) > 0.1
    agreement = measure_failure_agreement(make_answers(right, scored), ["m0", "m1", "m2"])
    for first, second in ((0, 1), (0, 2), (1, 2)):
        tables = []
        for edit in range(1, right.shape[1]):
            both = scored[first, edit] & scored[second, edit]
            cells = np.histogram2d(right[first, edit, both], right[second, edit, both], bins=2, range=[[0, 1]] * 2)[0]
            tables.append(cells)
        odds = StratifiedTable(tables).oddsratio_pooled
        share = sum(tables) / np.sum(tables)
        rarest = min(*share.sum(axis=0), *share.sum(axis=1))
        exponent = (1 - abs(share[0].sum() - share[:, 0].sum()) / 5 - (0.5 - rarest) ** 2) / 2
        assert agreement[first, second] == pytest.approx(np.cos(np.pi / (1 + odds**exponent)), abs=0.01)
    assert np.allclose(agreement, agreement.T)


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("cuts", [(0.0, 0.0), (-1.2, -0.6), (-1.2, 0.8)])
def test_agreement_is_near_the_correlation_however_often_the_models_are_right(
    correlation: float, cuts: tuple[float, float]
) -> None:
    rng = np.random.default_rng(3)
    pairs = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], (4, 20_000))
    right = np.moveaxis(pairs > np.array(cuts), -1, 0)
    agreement = measure_failure_agreement(make_answers(right), ["m0", "m1"])
    assert agreement[0, 1] == pytest.approx(correlation, abs=0.16)


def test_models_that_only_lose_as_much_to_the_same_edit_do_not_agree() -> None:
    rng = np.random.default_rng(2)
    chance = np.array([1.0, 0.95, 0.2])[:, None]  # one edit costs nothing, the other nearly everything
    right = rng.random((4, 3, 4000)) < chance
    agreement = measure_failure_agreement(make_answers(right), ["m0", "m1", "m2", "m3"])
    assert np.abs(agreement[np.triu_indices(4, 1)]).max() < 0.1
    pooled = cohen_kappa_score(right[0, 1:].ravel(), right[1, 1:].ravel())  # what ignoring the edits would say
    assert pooled > 0.5


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_and_the_silhouette_are_those_of_scipy_and_scikit_learn(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(30, 3))
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
    theirs = linkage(squareform(distance, checks=False), "average")
    merges = link_by_average(distance)
    for count in (2, 5, 9):
        cluster = cut_tree(merges, 30, count)
        assert adjusted_rand_score(cluster, fcluster(theirs, count, "maxclust")) == 1.0
        assert mean_silhouette(distance, cluster) == pytest.approx(
            silhouette_score(distance, cluster, metric="precomputed")
        )
        sizes = np.bincount(cluster).tolist()
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(("models", "photos"), [(12, 80), (40, 300)])
def test_families_are_found_where_there_are_some(models: int, photos: int) -> None:
    family = np.arange(models) % 3
    for seed in range(5):
        right = make_families(family, photos, 1.5, np.random.default_rng(seed))
        clusters = cluster_models(make_answers(right), [f"m{n}" for n in range(models)])
        assert adjusted_rand_score(clusters.cluster, family) > 0.9
        for place in range(clusters.number):
            assert clusters.agreement_within(place) > clusters.agreement_with_others(place) + 0.1


@pytest.mark.parametrize(("models", "photos"), [(8, 60), (40, 300)])
def test_models_that_differ_in_accuracy_alone_form_no_clusters(models: int, photos: int) -> None:
    for seed in range(15):
        right = make_families(np.zeros(models, np.intp), photos, 0.0, np.random.default_rng(seed))
        assert cluster_models(make_answers(right), [f"m{n}" for n in range(models)]).number == 1


def test_a_model_that_shares_no_picture_leaves_all_in_one_cluster() -> None:
    right = make_families(np.arange(8) % 2, 100, 2.0, np.random.default_rng(0))
    scored = np.ones(right.shape, bool)
    scored[0] = False
    clusters = cluster_models(make_answers(right, scored), [f"m{n}" for n in range(8)])
    assert clusters.number == 1
    assert np.isnan(clusters.agreement[0, 1])
