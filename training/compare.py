"""Compare background models on held-out photos, all painted through the same sampler with guidance 0.

python training/compare.py IMAGES MASKS WEIGHTS... [--count 40] [--strength 0.3] [--steps 10]

Three figures each: complexity c(x) against the original's, a texture statistic (mean |log2| ratio of the energies of
four octaves over the background), and the Frechet distance between the EfficientNet-Lite0 features of real and painted
pictures, the object blanked in both.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import onnx
from numpy.typing import NDArray

from counterfoil.assets.cache import cache_folder, fetch_asset
from counterfoil.assets.embedded_networks import build_onnx_file
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.edits.complexity import complexity
from counterfoil.edits.cutout import paste
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.painters.background_model import Predictor, open_background_model
from counterfoil.painters.sampler import Scene, ratios, sample_background
from counterfoil.sources.pixels import read_mask, read_photo
from counterfoil.types import Picture

SIDE, FEATURE_SIDE = 256, 224
OCTAVES = 4
MARGIN = 6  # pixels around the object that are left out of the figures

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.float64]


class Figures(NamedTuple):
    """How far a model's pictures are from the real ones."""

    complexity: float  # geometric mean of c(x) over the original's
    spread: float  # standard deviation of its logarithm
    texture: float
    frechet: float


def pictures(images: Path, masks: Path, count: int) -> list[Picture]:
    """Photos at the model's size, evenly taken from the folder."""
    files = sorted(images.rglob("*.jpg"))
    found = []
    for path in files[:: max(1, len(files) // count)][:count]:
        mask = read_mask(masks / path.parent.name / f"{path.stem}.png")
        image = cv2.resize(read_photo(path), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        trimap = cv2.resize(mask, (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
        found.append(Picture(np.asarray(image, np.uint8), np.asarray(trimap, np.uint8)))
    return found


def repainted(model: Predictor, picture: Picture, schedule: Sequence[float], seed: int) -> Bytes:
    """The photo with its background painted anew, without any guidance."""
    cut = Subject(picture).cutout
    background, colours = (
        (plane.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None]
        for plane in (Subject(picture).background, cut.image)
    )
    known = (cut.alpha >= 230).astype(np.float32)[None, None]
    noise = np.random.default_rng(seed).standard_normal(background.shape, np.float32)
    made = sample_background(model, Scene(background, colours, known, noise), schedule)[0].transpose(1, 2, 0)
    return paste(cut, np.clip(np.rint((made + 1) * 127.5), 0, 255).astype(np.uint8))


def far_from_object(picture: Picture) -> NDArray[np.bool_]:
    """The background that the figures look at."""
    grown = cv2.dilate((picture.alpha > 0).astype(np.uint8), np.ones((2 * MARGIN + 1,) * 2, np.uint8))
    return np.asarray(grown == 0)


def energies(image: Bytes, where: NDArray[np.bool_]) -> Numbers:
    """Root mean square of four octaves of detail; half a level is the noise of rounding."""
    gray = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.float32)
    soft = [gray, *(cv2.GaussianBlur(gray, (0, 0), 2.0**octave) for octave in range(OCTAVES))]
    bands = [fine - coarse for fine, coarse in pairwise(soft)]
    return np.array([np.sqrt((band[where] ** 2).mean()) + 0.5 for band in bands], np.float64)


class Features:
    """What EfficientNet-Lite0 sees before it decides, 1280 numbers a picture."""

    def __init__(self) -> None:
        model = onnx.load(str(build_onnx_file("efficientnet-lite0", fetch_asset, cache_folder())))
        self._name = next(node.output[0] for node in model.graph.node if node.op_type == "GlobalAveragePool")
        model.graph.output.append(onnx.helper.make_tensor_value_info(self._name, onnx.TensorProto.FLOAT, None))
        self._session = open_onnx_session(model.SerializeToString())

    def __call__(self, image: Bytes, where: NDArray[np.bool_]) -> Numbers:
        """The object's place is gray in every picture, so that only backgrounds differ."""
        blanked = np.where(where[..., None], image, np.uint8(127))
        small = cv2.resize(blanked, (FEATURE_SIDE, FEATURE_SIDE), interpolation=cv2.INTER_AREA)
        planes = ((np.asarray(small, np.float32) - 127) / 128).transpose(2, 0, 1)[None]
        (found,) = self._session.run([self._name], {"pictures": planes})
        return np.asarray(found, np.float64).ravel()


def frechet(first: Numbers, second: Numbers) -> float:
    """The Frechet distance between two sets of features, (n, features), taken as Gaussian."""
    means = first.mean(axis=0) - second.mean(axis=0)
    one, two = (np.cov(features.T) for features in (first, second))
    values, vectors = np.linalg.eigh(one)
    root = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
    cross = np.sqrt(np.clip(np.linalg.eigvalsh(root @ two @ root), 0, None)).sum()
    return float(means @ means + np.trace(one) + np.trace(two) - 2 * cross)


def figures(model: Predictor, given: Sequence[Picture], schedule: Sequence[float]) -> Figures:
    """Paint every photo that can be painted, and measure."""
    features, real, made, logs, textures = Features(), [], [], [], []
    for seed, picture in enumerate(given):
        try:
            image = repainted(model, picture, schedule, seed)
        except Unusable:
            continue
        where = far_from_object(picture)
        logs.append(np.log(complexity(image) / complexity(picture.image)))
        textures.append(np.abs(np.log2(energies(image, where) / energies(picture.image, where))).mean())
        real.append(features(picture.image, where))
        made.append(features(image, where))
    distance = frechet(np.stack(real), np.stack(made))
    return Figures(float(np.exp(np.mean(logs))), float(np.std(logs)), float(np.mean(textures)), distance)


def main() -> None:
    """One row per file of weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("weights", type=Path, nargs="+")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--strength", type=float, default=0.3)
    parser.add_argument("--steps", type=int, default=10)
    asked = parser.parse_args()
    given = pictures(asked.images, asked.masks, asked.count)
    print("| weights | c / original | spread | texture | Frechet |\n|---|---|---|---|---|")
    for weights in asked.weights:
        found = figures(open_background_model(weights.read_bytes()), given, ratios(asked.strength, asked.steps))
        print(f"| {weights.name} | {found[0]:.3f} | {found[1]:.3f} | {found[2]:.3f} | {found[3]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
