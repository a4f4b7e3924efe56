"""ImageNet-C's noise: Gaussian, shot and impulse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterfoil.edits.composition import Noisy, PictureLayer, Plane
from counterfoil.edits.corruptions.corruption_layers import PhotonCounted, Struck
from counterfoil.edits.corruptions.severity import DrawnNoise

GAUSSIAN_SPREAD = (0.08, 0.12, 0.18, 0.26, 0.38)  # of the range from black to white
SHOT_PHOTONS = (60, 25, 12, 5, 3)  # photons for a white pixel
IMPULSE_SHARE = (0.03, 0.06, 0.09, 0.17, 0.27)  # of all values


@dataclass(frozen=True)
class GaussianNoise(DrawnNoise):
    """Add noise from a normal distribution, as a sensor does in low light."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The picture with normal noise added to every value."""
        spread = np.float32(255 * GAUSSIAN_SPREAD[self.severity - 1])

        noise = rng.standard_normal((*image.shape, 3), np.float32)
        noise *= spread
        noise -= np.float32(0.5)  # OpenCV rounds, the release truncates
        return Noisy(image, noise)


@dataclass(frozen=True)
class ShotNoise(DrawnNoise):
    """Count photons: every value is a draw from the Poisson distribution of its brightness."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The picture made of the counts."""
        photons = SHOT_PHOTONS[self.severity - 1]
        return PhotonCounted(image, rng.integers(0, 2**32, (*image.shape, 3), np.uint32), photons)


@dataclass(frozen=True)
class ImpulseNoise(DrawnNoise):
    """Set some values to black or white, as broken pixels are."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The picture with salt and pepper."""
        bound = round(IMPULSE_SHARE[self.severity - 1] * 2**16)
        return Struck(image, rng.integers(0, 2**16, (*image.shape, 3), np.uint16), bound)
