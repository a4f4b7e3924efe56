"""The candidates of a repair: the remedies that apply to a network, and the choice among them on the choosing parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.remedies.class_map import UnknownStructureError
from counterfoil.remedies.effects import edited_change, tabulate, unedited_change
from counterfoil.remedies.fixed_views import PREPROCESSING, build_views
from counterfoil.remedies.network_file import NetworkFile, WrittenNetwork
from counterfoil.remedies.photo_graph import check_repeatable
from counterfoil.remedies.photo_parts import FOLDS
from counterfoil.remedies.picture_answers import PhotoAnswers
from counterfoil.remedies.repair_config import FITTED, LAST_LAYER, RepairConfig
from counterfoil.remedies.trained_folds import find_trainable, too_large_for_cpu
from counterfoil.remedies.zoom import build_zoom
from counterfoil.types import Model

BEFORE = "before"
_NEAR = 0.5  # points: of candidates so near to the best, the one with the fewest passes is chosen


@dataclass(frozen=True, kw_only=True)
class RemedyCandidate:
    """A remedy that was made for a network."""

    name: str
    final: WrittenNetwork  # what is written where it is chosen
    model: Model  # of the final network
    folds: tuple[Model, ...]  # that judge each part: the same model three times where nothing is fitted
    choosing: tuple[Sequence[PhotoAnswers], ...]  # of each fold, with answers of a model that did not see them
    settings: Mapping[str, Any] = field(default_factory=dict)  # that were chosen, by fold where they differ
    fitted_edits: Mapping[tuple[str, str], str] = field(default_factory=dict)  # edit and level to the attribute

    @property
    def is_fitted(self) -> bool:
        """Whether it learnt from photos."""
        return self.name in FITTED


@dataclass(frozen=True)
class RefusedRemedy:
    """A remedy that does not apply, and why."""

    name: str
    reason: str


def build_unfitted(name: str, network: NetworkFile, config: RepairConfig) -> WrittenNetwork:
    """The network with a remedy that learns nothing."""
    if name == "zoom":
        return build_zoom(network, config.zoom)
    return build_views(network, config.crops.views if name == "crops" else PREPROCESSING[name], name)


def check_applies(name: str, network: NetworkFile, config: RepairConfig) -> str:
    """Why a remedy does not apply to a network; empty where it does."""
    try:
        if name not in FITTED:
            check_repeatable(network)
        elif name == LAST_LAYER:
            _ = network.last_layer
        else:
            find_trainable(network)
            return too_large_for_cpu(network, config.options.device) if config.method is None else ""
    except UnknownStructureError as error:
        return str(error)
    return ""


def select_methods(config: RepairConfig, network: NetworkFile) -> tuple[list[str], list[RefusedRemedy]]:
    """The methods that apply, and the others; raises `UserError` where the one that was asked for does not."""
    reasons = {name: check_applies(name, network, config) for name in config.methods}
    refused = [RefusedRemedy(name, reason) for name, reason in reasons.items() if reason]
    if refused and config.method is not None:
        raise UserError(
            f"expected a network that '{config.method}' applies to, got {network.address}: {refused[0].reason};"
            " without --method, every method that applies is tried"
        )
    left_out = {row.name for row in refused}
    if len(left_out) == len(config.methods):
        reasons_given = "; ".join(f"{row.name}: {row.reason}" for row in refused)
        raise UserError(f"expected a network that a method applies to, got {network.address}: {reasons_given}")
    return [name for name in config.methods if name not in left_out], refused


def choose_candidates(candidates: Sequence[RemedyCandidate], allow_loss: float) -> list[RemedyCandidate]:
    """The best candidate of each fold by its choosing part alone.

    Of those whose unedited photos lose no more than is allowed, the one with the best accuracy on edited pictures, only
    the photos' classes competing; of those within half a point of it, the one with the fewest passes.
    """
    return [_choose_one(candidates, fold, allow_loss) for fold in range(len(FOLDS))]


def _choose_one(candidates: Sequence[RemedyCandidate], fold: int, allow_loss: float) -> RemedyCandidate:
    scores: list[tuple[float, RemedyCandidate]] = []
    for candidate in candidates:
        photos = candidate.choosing[fold]
        table = tabulate(photos, BEFORE, dict.fromkeys((photo.sample for photo in photos), candidate.name))
        lost = -unedited_change(table, among=True).change.value
        penalty = 100.0 if lost > allow_loss else 0.0
        scores.append((edited_change(table, among=True).after - penalty, candidate))
    best = max(score for score, _ in scores)
    near = [candidate for score, candidate in scores if score >= best - _NEAR]
    return min(near, key=lambda candidate: candidate.final.passes)


def most_chosen(chosen: Sequence[RemedyCandidate]) -> RemedyCandidate:
    """The candidate that most folds chose; of equals the first."""
    counts = Counter(candidate.name for candidate in chosen)
    return max(chosen, key=lambda candidate: counts[candidate.name])


def write_candidate(folder: Path, name: str, network: WrittenNetwork) -> Model:
    """Write a candidate's network into a folder and load it."""
    return network.write(folder / f"{name}.onnx")
