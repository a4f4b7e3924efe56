"""How the background model is built, in numbers: what both of its runtimes agree on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PATCH = 4  # pixels along the side of a patch; the network sees one place for each
INPUT_PLANES = 7  # the noisy picture, the known colours, where they are known
CHANNELS = (128, 208, 240, 240)  # of each resolution, the finest first
BLOCKS = (2, 2, 1, 1)
ATTENDING = (False, False, True, True)
HEADS = 4
GROUPS = 16
EMBEDDING = 192  # numbers that say how noisy the picture is
STEP = PATCH * 2 ** (len(CHANNELS) - 1)  # sides of pictures come in steps of this many pixels


def frequencies() -> NDArray[np.float32]:
    """The waves in which the network reads the noise level."""
    return np.exp(np.linspace(np.log(0.3), np.log(12.0), 64)).astype(np.float32)
