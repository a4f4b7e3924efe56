"""Whether models that had no say fail on what the surrogates chose, against all candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Estimate
from counterfoil.analyse.accuracies import clustered_wilson
from counterfoil.pipeline.mining.picked import Picked
from counterfoil.report.mining import Transfer


def transfers_of(picked: Picked) -> list[Transfer]:
    """Every target."""
    return [_transfer(picked, model.name, picked.job.family(model.address), [place]) for place, model in picked.targets]


def families_of(picked: Picked) -> list[Transfer]:
    """The targets of each family together: a pair of target and picture counts once."""
    members: dict[str, list[int]] = {}
    for place, model in picked.targets:
        members.setdefault(picked.job.family(model.address), []).append(place)
    return [_transfer(picked, name, name, places) for name, places in members.items()]


def _transfer(picked: Picked, name: str, family: str, places: Sequence[int]) -> Transfer:
    right, original = picked.said.right[list(places)], picked.said.original[list(places)]
    chose = {picked.job.family(model.address) for model in picked.asked.models[: picked.asked.surrogates]}
    failing = _contrast(picked, right == 0, np.isfinite(right))
    lost = _contrast(picked, right == 0, np.isfinite(right) & (original == 1))
    return Transfer(name, family, family not in chose, *failing, *lost)


def _contrast(picked: Picked, hits: NDArray[np.bool_], among: NDArray[np.bool_]) -> tuple[Estimate, Estimate, Estimate]:
    """The share on the kept pictures, on all candidates, and how much more."""
    kept, rest = among & picked.choice.kept, among & ~picked.choice.kept
    of_kept, of_all, of_rest = (_pooled(picked, hits, chosen) for chosen in (kept, among, rest))
    return of_kept, of_all, _more(of_kept, of_all, of_rest)


def _more(kept: Estimate, everything: Estimate, rest: Estimate) -> Estimate:
    """Kept against all is kept against the rest, less by the rest's part; the ends are Newcombe's, of both intervals.

    A bootstrap would know no end beyond what it saw: of few kept pictures that all fail, all fail in every resample.
    """
    if not kept.n or not rest.n:
        none = 0.0 if kept.n else math.nan  # all are kept: there is no difference
        return Estimate(none, none, none, kept.n)
    part, gap = rest.n / everything.n, kept.value - rest.value
    down = math.hypot(kept.value - kept.ci_low, rest.ci_high - rest.value)
    up = math.hypot(kept.ci_high - kept.value, rest.value - rest.ci_low)
    return Estimate(part * gap, part * (gap - down), part * (gap + up), kept.n)


def _pooled(picked: Picked, hits: NDArray[np.bool_], among: NDArray[np.bool_]) -> Estimate:
    """Over all pairs of model and picture."""
    photo = np.broadcast_to(picked.asked.photo, hits.shape)
    return clustered_wilson(hits[among], photo[among]).scaled(100)
