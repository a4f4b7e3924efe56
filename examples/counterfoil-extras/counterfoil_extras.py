"""A source, a model and a painter from another package, each registered under the scheme of its addresses."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import counterfoil as cf

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class NpzSource(cf.SourceBase):
    """Photos of one NumPy file: arrays `images`, (n, height, width, 3), `masks`, (n, height, width), and `labels`."""

    file: Path

    @property
    def images(self) -> str:
        """The address, from the root on, so that a finished run finds its photos again."""
        return f"npz:{self.file.absolute()}"

    def samples(self) -> tuple[Sequence[cf.Sample], Sequence[cf.Skipped]]:
        """One sample per row."""
        with np.load(self.file) as arrays:
            rows = zip(arrays["labels"].tolist(), arrays["images"], arrays["masks"], strict=True)
            return [_sample(number, *row) for number, row in enumerate(rows)], []

    def read(self, sample: cf.Sample) -> tuple[Pixels, Pixels | None]:
        """The pixels and the mask of a row."""
        with np.load(self.file) as arrays:
            return arrays["images"][int(sample.image)], arrays["masks"][int(sample.image)]


def _sample(number: int, label: str, image: Pixels, mask: Pixels) -> cf.Sample:
    digest = hashlib.sha256(image.tobytes() + mask.tobytes()).hexdigest()
    return cf.Sample(id=f"{label}/{number}", label=label, image=str(number), mask=str(number), digest=digest)


def open_npz(place: str) -> NpzSource:
    """npz:FILE: photos, masks and labels in one NumPy file."""
    return NpzSource(Path(place))


class Brightness(cf.ModelBase):
    """Two labels: how bright the mean pixel is decides between them."""

    preprocessing = None
    digest = "brightness-1"
    note = "this model looks at the mean pixel alone"

    def __init__(self, name: str, labels: tuple[str, ...]) -> None:
        self.name, self.labels = name, labels

    def __call__(self, images: Sequence[Pixels]) -> NDArray[np.float32]:
        """Probabilities, (images, 2)."""
        bright = np.array([image.mean() / 255 for image in images], np.float32)
        return np.stack([1 - bright, bright], axis=1)


def load_brightness(request: Any) -> Brightness:
    """brightness:DARK,BRIGHT: two labels told apart by the mean pixel."""
    dark, _, bright = request.place.partition(",")
    if not dark or not bright:
        raise cf.UserError(f"expected brightness:DARK,BRIGHT, got '{request.address}'")
    return Brightness(request.address, (dark, bright))


@dataclass(frozen=True)
class NoisePainter(cf.PainterBase):
    """Coloured noise, drawn from the request's own seed."""

    name: str
    side: int

    @property
    def settings(self) -> dict[str, object]:
        """What changes its pictures."""
        return {"side": self.side}

    def check_prompt(self, prompt: str) -> None:
        """Noise of nothing is refused before the work begins."""
        if not prompt.strip():
            raise cf.UserError(f"expected a prompt for {self.name}, got none")

    def paint(self, requests: Sequence[cf.PaintRequest]) -> list[Pixels | cf.PaintRefused]:
        """One picture per request, of the photo's size where there is one."""
        return [self._picture(request) for request in requests]

    def _picture(self, request: cf.PaintRequest) -> Pixels:
        shape = (self.side, self.side, 3) if request.around is None else request.around.image.shape
        return np.random.default_rng(request.seed).integers(0, 256, shape, np.uint8)


def load_noise(address: str, place: str, paints: str, options: Any) -> NoisePainter:
    """noise:SIDE: coloured noise of so many pixels a side."""
    return NoisePainter(address, int(place))
