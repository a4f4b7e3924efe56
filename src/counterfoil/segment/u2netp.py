"""U2-Netp: a 4.6 MB network that finds the salient object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.embedded.session import session
from counterfoil.errors import Unsegmented
from counterfoil.segment.plausible import fault_of

_SIDE = 320
_MEAN = np.array((0.485, 0.456, 0.406), np.float32)
_STD = np.array((0.229, 0.224, 0.225), np.float32)


@dataclass(frozen=True)
class U2Netp:
    """Makes an alpha out of a photo; implausible ones raise `Unsegmented`."""

    weights: Path

    @cached_property
    def _session(self) -> Any:
        return session(self.weights)

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The object's alpha, (height, width)."""
        alpha = self.salience(image)
        if fault := fault_of(alpha):
            raise Unsegmented(fault)
        return alpha

    def salience(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The network's own map, stretched to 0..255, at the photo's size."""
        small = cv2.resize(image, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
        ready = (small / max(float(small.max()), 1e-6) - _MEAN) / _STD
        name = self._session.get_inputs()[0].name
        found = self._session.run([self._session.get_outputs()[0].name], {name: ready.transpose(2, 0, 1)[None]})[0][
            0, 0
        ]
        stretched = (found - found.min()) / max(float(found.max() - found.min()), 1e-6)
        full = cv2.resize(stretched, (image.shape[1], image.shape[0]), interpolation=cv2.INTER_LINEAR)
        return np.asarray(np.rint(full.clip(0, 1) * 255), np.uint8)
