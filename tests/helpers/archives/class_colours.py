"""Pictures whose colour says which ImageNet class the planted classifier will answer."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.labels.benchmark_classes import imagenet_d
from counterfoil.labels.label_space import imagenet1k

STEP = 8  # levels between two colours: JPEG does not move one that far
FAR = 500  # so many classes away the true class is not among the five best
SIDE = 40


def picture(index: int, size: tuple[int, int] = (SIDE, SIDE), tint: int = 0) -> NDArray[np.uint8]:
    """A plain picture, (height, width, 3), that the planted classifier answers with this class."""
    colour = (STEP * (index % 32) + STEP // 2, STEP * (index // 32) + STEP // 2, 128 + tint)
    return np.full((*size, 3), colour, np.uint8)


def save(path: Path, index: int, size: tuple[int, int] = (SIDE, SIDE), tint: int = 0) -> Path:
    """The picture as a file; its ending says the format, whatever the case."""
    return save_bytes(path, _encoded("PNG" if path.suffix.lower() == ".png" else "JPEG", index, size, tint))


@cache
def _encoded(kind: str, index: int, size: tuple[int, int], tint: int) -> bytes:
    """The bytes of a picture: the look-alikes hold few different ones, many times."""
    file = io.BytesIO()
    Image.fromarray(picture(index, size, tint)).save(file, kind, **({} if kind == "PNG" else {"quality": 95}))
    return file.getvalue()


def save_bytes(path: Path, data: bytes) -> Path:
    """A file that is no picture of the archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def index_of(image: NDArray[np.uint8]) -> int:
    """Which class a picture says."""
    red, green, _ = np.median(image.reshape(-1, 3), axis=0)
    return int(green // STEP) * 32 + int(red // STEP)


class Tells:
    """A classifier that answers what the picture says; its four next answers are the classes that follow."""

    labels = imagenet1k().labels
    preprocessing = None

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        scores = np.full((len(images), len(self.labels)), 1e-6, np.float32)
        for row, image in enumerate(images):
            for place in range(5):
                scores[row, (index_of(image) + place) % len(self.labels)] = 0.5 ** (place + 1)
        return np.asarray(scores / scores.sum(axis=1, keepdims=True), np.float32)


class TellsTheNext(Tells):
    """Always one class off: right only where a picture says the class before."""

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return np.roll(super().__call__(images), 1, axis=1)


class TellsTheCategory:
    """As a zero-shot model has it: one column for each of ImageNet-D's categories, called as its folder."""

    labels = imagenet_d().labels
    preprocessing = None

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        said = [imagenet1k().labels[index_of(image)] for image in images]
        scores = [[float(wnid in imagenet_d().ids_of(label)) for label in self.labels] for wnid in said]
        even = np.full((len(images), len(self.labels)), 1e-4)
        even[:, -1] = 1e-3  # what is no category is answered with the last
        found = np.asarray(scores) + even
        return np.asarray(found / found.sum(axis=1, keepdims=True), np.float32)


tells = Tells
tells_the_category = TellsTheCategory
tells_the_next = TellsTheNext
