"""A choice and the answers it rests on: what all statistics of mining start from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Estimate
from counterfoil.analyse.photo_shares import share_estimate
from counterfoil.mine import Photos, Said, share
from counterfoil.pipeline.mining.asking import Asked, AskedModel
from counterfoil.pipeline.mining.choosing import Choice
from counterfoil.pipeline.mining.job import MiningJob


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

    @property
    def photos(self) -> Photos:
        """The candidates' photos."""
        return Photos(self.asked.photo, len(self.asked.samples[0]))

    def share(self, hits: NDArray[np.bool_], among: NDArray[np.bool_]) -> Estimate:
        """Percent of the pictures, with Wilson's interval for pictures that come in photos."""
        return share_estimate(share(hits, among, self.photos)).scaled(100)
