"""Whether models that had no say fail on what the surrogates chose, against all candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Estimate
from counterfoil.analyse.accuracies import clustered_wilson
from counterfoil.mine import share
from counterfoil.pipeline.mining.picked import Picked, resampled
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
    """The share on the kept pictures, on all candidates, and how much more; photos resampled for the difference."""
    kept = among & picked.choice.kept
    shares = [_pooled(picked, hits, chosen) for chosen in (kept, among)]
    both = [_weighed(picked, hits, chosen) for chosen in (kept, among)]
    return shares[0], shares[1], resampled(both[0] - both[1], shares[0].n)


def _pooled(picked: Picked, hits: NDArray[np.bool_], among: NDArray[np.bool_]) -> Estimate:
    """Over all pairs of model and picture."""
    photo = np.broadcast_to(picked.asked.photo, hits.shape)
    return clustered_wilson(hits[among], photo[among]).scaled(100)


def _weighed(picked: Picked, hits: NDArray[np.bool_], among: NDArray[np.bool_]) -> NDArray[np.float64]:
    photos = picked.photos._replace(photo=np.tile(picked.asked.photo, len(hits)))
    return share(hits.reshape(1, -1), among.reshape(1, -1), photos)[:, 0]
