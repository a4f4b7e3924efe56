"""Whether models that had no say fail on what the surrogates chose, against all candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Estimate
from counterfoil.analyse.photo_shares import combined, share_estimate
from counterfoil.mine import share
from counterfoil.pipeline.mining.picked import Picked
from counterfoil.report.mining import Transfer
from counterfoil.types import PhotoShare


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
    """The share on the kept pictures, on all candidates, and how much more; over all pairs of model and picture."""
    chosen = np.broadcast_to(picked.choice.kept, among.shape)
    kept, everything, rest, part = (
        share(what, of, picked.photos)
        for what, of in ((hits, among & chosen), (hits, among), (hits, among & ~chosen), (chosen, among))
    )
    of_kept, of_all = (share_estimate(found).scaled(100) for found in (kept, everything))
    return of_kept, of_all, _more(kept, rest, part).scaled(100)


def _more(kept: PhotoShare, rest: PhotoShare, part: PhotoShare) -> Estimate:
    """Kept against all is kept against the rest, less by the kept ones' part of all; all three are uncertain.

    The kept pictures are among all: an interval from those of these two would be too sure where all kept ones fail.
    """
    n = round(kept.pictures)
    if not n or part.value == 1:  # nothing or everything is kept: there is nothing to compare
        return Estimate(math.nan, math.nan, math.nan, n)
    others, gap = 1 - part.value, kept.value - rest.value
    terms = [(others, kept), (-others, rest), (-gap, part)]
    return Estimate(others * gap, *combined(terms, others * gap), n)
