"""Masks for photos without one, found by a network of salience: U2-Netp, or the larger U2-Net."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import fetch_asset
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.errors import UserError
from counterfoil.object_mask import Bytes, ObjectMask, hard_object, mask_overlap
from counterfoil.types import Sample

SEGMENTERS: Mapping[str, str] = {
    "u2netp": "U2-Netp, 5 MB, about 0.3 s a photo",
    "u2net": "U2-Net, 176 MB, about 1 s a photo, better on some photos",
}
DEFAULT_SEGMENTER = "u2netp"
BORDER = 0.2  # by which a photo is extended for a second look, as a share of each side
UNSURE = (40, 215)  # salience between these is neither object nor background
_SIDE = 320  # pixels of the network's input
_MEAN = np.array((0.485, 0.456, 0.406), np.float32)
_STD = np.array((0.229, 0.224, 0.225), np.float32)


class Segmentation(NamedTuple):
    """What a segmenter finds in a photo."""

    mask: ObjectMask  # hard: 255 on the object, 0 off it
    undecided: float  # pixels of which the network is not sure, as a share of the object's
    steadiness: float  # overlap of the objects found in the photo and in the extended photo, 0 to 1


Segmenter: TypeAlias = Callable[[Bytes], Segmentation]


@dataclass(frozen=True)
class SalienceNetwork:
    """U2-Netp or U2-Net: both take the same input and give a map of salience."""

    weights: Path

    @cached_property
    def _session(self) -> Any:
        return open_onnx_session(self.weights)

    def __call__(self, image: Bytes) -> Segmentation:
        """The object, (height, width): what is salient in the photo or in the photo with an extended border.

        Where the object is cut by the border, the network often takes its head alone; a border around it helps.
        """
        plain, extended = self.salience(image), self._salience_extended(image)
        salience = np.maximum(plain, extended)
        inside = hard_object(salience)
        unsure = int(np.count_nonzero((salience > UNSURE[0]) & (salience < UNSURE[1])))
        return Segmentation(
            ObjectMask(np.where(inside, 255, 0).astype(np.uint8), "salience"),
            unsure / max(1, int(np.count_nonzero(inside))),
            mask_overlap(hard_object(plain), hard_object(extended)),
        )

    def _salience_extended(self, image: Bytes) -> Bytes:
        height, width = image.shape[:2]
        down, across = max(1, round(BORDER * height)), max(1, round(BORDER * width))
        extended = cv2.copyMakeBorder(image, down, down, across, across, cv2.BORDER_REPLICATE)
        return self.salience(np.asarray(extended, np.uint8))[down : down + height, across : across + width]

    def salience(self, image: Bytes) -> Bytes:
        """The network's map of salience, stretched to 0..255, at the photo's size."""
        salience = self.raw_salience(image)
        stretched = (salience - salience.min()) / max(float(salience.max() - salience.min()), 1e-6)
        full = cv2.resize(stretched, (image.shape[1], image.shape[0]), interpolation=cv2.INTER_LINEAR)
        return np.asarray(np.rint(full.clip(0, 1) * 255), np.uint8)

    def raw_salience(self, image: Bytes) -> NDArray[np.float32]:
        """The network's answer at its own size: how salient each place is, 0 to 1."""
        small = cv2.resize(image, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
        ready = (small / max(float(small.max()), 1e-6) - _MEAN) / _STD
        source, target = self._session.get_inputs()[0].name, self._session.get_outputs()[0].name
        answer = self._session.run([target], {source: ready.transpose(2, 0, 1)[None]})[0]
        return np.asarray(answer[0, 0], np.float32)


def check_segmenter(name: str) -> None:
    """Raises `UserError` where no segmenter has this name."""
    if name not in SEGMENTERS:
        raise UserError(f"expected a segmenter of {', '.join(SEGMENTERS)}, got {name!r}")


def make_segmenter(samples: Sequence[Sample], name: str = DEFAULT_SEGMENTER) -> SalienceNetwork:
    """The segmenter for these samples; its weights are fetched only where a photo has no mask."""
    check_segmenter(name)
    if all(sample.mask is not None for sample in samples):
        return SalienceNetwork(Path())
    return SalienceNetwork(fetch_asset(name))
