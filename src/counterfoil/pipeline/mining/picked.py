"""A choice and the answers it rests on: what all statistics of mining start from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Estimate
from counterfoil.analyse.accuracies import clustered_wilson
from counterfoil.analyse.resampling import percentile_interval, resample_counts
from counterfoil.mine import Photos, Said
from counterfoil.pipeline.mining.asking import Asked, AskedModel
from counterfoil.pipeline.mining.choosing import Choice
from counterfoil.pipeline.mining.job import MiningJob

SEED = 0  # of resamples and sampled groups: the same answers give the same page
RESAMPLES = 1_000
_MOSTLY = 0.95  # of the resamples must have a value


@dataclass(frozen=True)
class Picked:
    """What was asked, what was said, what was kept."""

    job: MiningJob
    asked: Asked
    choice: Choice

    @property
    def said(self) -> Said:
        """Of all models, the surrogates first."""
        return self.asked.said

    @property
    def targets(self) -> list[tuple[int, AskedModel]]:
        """The models that had no say, with their places among all."""
        return list(enumerate(self.asked.models))[self.asked.surrogates :]

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """A row of ones, then photos resampled, (rows, photos)."""
        photos = len(self.asked.samples[0])
        drawn = resample_counts(photos, np.random.default_rng(SEED), resamples=RESAMPLES)
        return np.vstack([np.ones((1, photos)), drawn])

    @property
    def photos(self) -> Photos:
        """The candidates' photos with all resamples."""
        return Photos(self.asked.photo, self.weights)

    def share(self, hits: NDArray[np.bool_], among: NDArray[np.bool_]) -> Estimate:
        """Percent of the pictures, with Wilson's interval for pictures that come in photos."""
        return clustered_wilson(hits[among], self.asked.photo[among]).scaled(100)


def resampled(values: NDArray[np.float64], n: int) -> Estimate:
    """In percent: the first row's value with the interval of the others; all are of photos weighed.

    A resample without any such picture has no value. A few of them are left out, as the set itself is not empty; many
    mean that too few photos carry it, and there is no interval.
    """
    drawn = values[1:]
    known = drawn[np.isfinite(drawn)]
    told = known if len(known) >= _MOSTLY * len(drawn) else drawn
    return Estimate(float(values[0]), *percentile_interval(told), n).scaled(100)
