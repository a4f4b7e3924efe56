"""The table of clusters of models: which fail on the same pictures, and what each cluster loses to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from counterfoil.report.attribute_chart import order_attributes
from counterfoil.report.content import ReportContent
from counterfoil.report.drop_findings import has_enough
from counterfoil.report.words import capitalize_first, count_words, format_number, name_attribute
from counterfoil.statistics.families import MAIN_FAMILY
from counterfoil.statistics.model_clusters import ModelClusters

_MOST_ATTRIBUTES = 8  # columns
CLUSTER_NAMES = "ABCDEFGHIJ"  # as many as there can be clusters


class ClusterRow(NamedTuple):
    """One cluster, its models best first."""

    name: str
    models: list[str]
    within: str  # agreement
    beside: str
    edited: str  # right answers on edited pictures, the mean of its models in percent
    losses: list[str]  # points lost by attribute, the mean of its models


class ClusterTable(NamedTuple):
    """The clusters, the largest first; no rows where none stands out."""

    sentence: str
    attributes: list[str]
    rows: list[ClusterRow]


def name_clusters(content: ReportContent) -> dict[str, str]:
    """The letter of each model's cluster; empty where none stands out."""
    clusters = content.model_clusters
    if clusters is None or clusters.number < 2:
        return {}
    return {model: CLUSTER_NAMES[own] for model, own in zip(clusters.models, clusters.cluster, strict=True)}


def build_cluster_table(content: ReportContent) -> ClusterTable | None:
    """Build the table; None where the models were not clustered."""
    clusters = content.model_clusters
    if clusters is None:
        return None
    if clusters.number < 2:
        return ClusterTable(_describe_none(clusters), [], [])
    right = {row.model: row.top1.value for row in content.edited_accuracies}
    family = {row.attribute: row.family for row in content.verdicts}
    attributes = [name for name in order_attributes(content) if family[name] == MAIN_FAMILY][:_MOST_ATTRIBUTES]
    lost = {(row.model, row.attribute): row.main.drop for row in content.verdicts if has_enough(row.main)}
    rows = []
    for place in range(clusters.number):
        models = sorted(clusters.members(place), key=lambda model: -right.get(model, -math.inf))
        rows.append(
            ClusterRow(
                name=CLUSTER_NAMES[place],
                models=models,
                within=_format_agreement(clusters.agreement_within(place)),
                beside=_format_agreement(clusters.agreement_with_others(place)),
                edited=_mean([right[model] for model in models if model in right]),
                losses=[_mean([lost[model, name] for model in models if (model, name) in lost]) for name in attributes],
            )
        )
    names = [capitalize_first(name_attribute(name)) for name in attributes]
    return ClusterTable(_describe(clusters, rows), names, rows)


def _describe(clusters: ModelClusters, rows: Sequence[ClusterRow]) -> str:
    models = count_words(len(clusters.models), "model")
    kinds = count_words(len(rows), "cluster")
    return f"By the edited pictures that they get wrong, the {models} form {kinds}."


def _describe_none(clusters: ModelClusters) -> str:
    pairs = clusters.agreement[np.triu_indices(len(clusters.models), 1)]
    low, high = (_format_agreement(float(bound)) for bound in (pairs.min(), pairs.max()))
    models = count_words(len(clusters.models), "model")
    return (
        f"By the edited pictures that they get wrong, the {models} form no clusters:"
        f" every two agree about as much as any other two ({low} to {high})."
    )


def _format_agreement(value: float) -> str:
    return "" if math.isnan(value) else format_number(value, 2)


def _mean(values: Sequence[float]) -> str:
    return format_number(sum(values) / len(values)) if values else "too few"
