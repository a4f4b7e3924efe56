"""Classifiers with known faults, which a run must find, and photos on which they are right.

The object's strong colour gives the class, and so does the pale tint of the background. Each classifier relies on a
different cue, so each fails under a different edit, and under no other.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage import data

from counterfoil.assets.onnx_graph import Graph
from counterfoil.models.preprocessing import prepare_input
from counterfoil.types import Preprocessing

LABELS = ("crimson", "emerald", "azure", "violet")
HUES = {"crimson": 0, "emerald": 60, "azure": 105, "violet": 140}  # OpenCV's scale, 0..179
HALT_AT_PARTS = 4  # in the folder that HALT_AT_FOLDER names: of two items, pictures and answers
SATURATION = 230  # of objects alone: no background and hardly a random colour has it together with a label's hue


# By level, since the pictures have many pixels and there are forty models in some runs: how far each hue is from each
# label's, around the circle, (labels, levels); the hues that are a label's; the saturations that are an object's.
_DISTANCES = np.stack([np.abs((np.arange(256) - HUES[label] + 90) % 180 - 90) for label in LABELS])
_OF_LABEL = _DISTANCES.min(axis=0) <= 5
_OF_OBJECT = np.abs(np.arange(256) - SATURATION) <= 12


def _hue_answer(hues: NDArray[np.generic]) -> int:
    """Which label's hue the pixels have; the first label where there are none."""
    return int(np.argmin(_DISTANCES @ np.bincount(hues.astype(np.uint8), minlength=256)))


def _one_hot(answers: Sequence[int]) -> NDArray[np.float32]:
    return np.asarray(0.9 * np.eye(len(LABELS))[list(answers)] + 0.1 / len(LABELS), np.float32)


class Planted:
    """Answers by the object's colour; each subclass has one fault."""

    labels = LABELS
    preprocessing = None

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return _one_hot([self.answer(cv2.cvtColor(image, cv2.COLOR_RGB2HSV)) for image in images])

    def answer(self, hsv: NDArray[np.generic]) -> int:
        return self.wrong_if(hsv, False)

    def wrong_if(self, hsv: NDArray[np.generic], fault: bool) -> int:
        found = _hue_answer(hsv[:, :, 0][self.object(hsv)])
        return (found + 1) % len(LABELS) if fault else found

    @staticmethod
    def object(hsv: NDArray[np.generic]) -> NDArray[np.bool_]:
        return np.asarray(_OF_OBJECT[hsv[:, :, 1]] & _OF_LABEL[hsv[:, :, 0]], np.bool_)


class AnswersByBackground(Planted):
    def answer(self, hsv: NDArray[np.generic]) -> int:
        frame = np.concatenate([hsv[:6].reshape(-1, 3), hsv[-6:].reshape(-1, 3)])
        return _hue_answer(frame[frame[:, 1] > 20][:, 0])


class FailsOnSmallObjects(Planted):
    def answer(self, hsv: NDArray[np.generic]) -> int:
        return self.wrong_if(hsv, bool(self.object(hsv).mean() < 0.065))


class BlindOnTheLeft(Planted):
    def answer(self, hsv: NDArray[np.generic]) -> int:
        columns = np.nonzero(self.object(hsv))[1]
        return self.wrong_if(hsv, bool(len(columns) and columns.mean() < 0.45 * hsv.shape[1]))


class FailsOnTurnedObjects(Planted):
    def answer(self, hsv: NDArray[np.generic]) -> int:
        rows, columns = np.nonzero(self.object(hsv))
        tilt = cv2.fitEllipse(np.stack([columns, rows], 1)[:, None].astype(np.float32))[2] if len(rows) > 50 else 0.0
        return self.wrong_if(hsv, min(tilt, 180 - tilt) > 15)


class ReadsTheBackground(Planted):
    """Less confident on brighter backgrounds, so that some backgrounds are worse than others."""

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        right = super().__call__(images)
        doubt = np.array([image[:6].mean() / 255 for image in images])[:, None]
        return np.asarray(right * (1 - doubt) + doubt / len(LABELS), np.float32)


def count_parts(folder: Path) -> int:
    """The finished parts in a run's folder of parts."""
    return len(list(folder.glob("[!.]*.parquet")))


class Halting(Planted):
    """Stops answering after a given amount of work, so that a kill comes in the middle on any machine."""

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        while count_parts(Path(os.environ.get("HALT_AT_FOLDER", "nowhere"))) >= HALT_AT_PARTS:
            time.sleep(0.1)
        return super().__call__(images)


class Counted(Planted):
    """Counts how many of its kind are held at once."""

    held: ClassVar[set[int]] = set()
    most: ClassVar[int] = 0

    def __init__(self) -> None:
        Counted.held.add(id(self))
        Counted.most = max(Counted.most, len(Counted.held))
        weakref.finalize(self, Counted.held.discard, id(self))


class FailsOnAzure(Planted):
    """Raises an error on azure objects in pictures smaller than the photos, which edited ones are."""

    def answer(self, hsv: NDArray[np.generic]) -> int:
        found = super().answer(hsv)
        if LABELS[found] == "azure" and len(hsv) < 160:
            raise ValueError("azure is too blue")
        return found


class Guessing(Planted):
    """Answers at random, the same for the same picture."""

    def answer(self, hsv: NDArray[np.generic]) -> int:
        return int(hashlib.sha256(hsv.tobytes()).digest()[0] % len(LABELS))


class Mislabelled(Planted):
    """Its columns are named one place too early."""

    labels = (*LABELS[1:], LABELS[0])


class AnswersOneClass(Planted):
    """Gives the same answer to every picture."""

    def answer(self, hsv: NDArray[np.generic]) -> int:
        return 2


class AnswersNothing(Planted):
    """Gives no number to any picture."""

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return np.full((len(images), len(LABELS)), np.nan, np.float32)


class Noisy(Planted):
    """Wrong on some pictures at random, by its seed; often wrong on small objects too, where it is told to be."""

    def __init__(self, seed: int, small: float = 0.0) -> None:
        self.seed, self.small = seed, small
        self.digest = f"noisy {seed} {small}"  # else fixed pictures are shown to each that is loaded, to know it by

    def answer(self, hsv: NDArray[np.generic]) -> int:
        digest = hashlib.sha256(self.seed.to_bytes(4, "big") + hsv.tobytes()).digest()
        noise, luck = digest[0] / 256 < 0.08, digest[1] / 256
        return self.wrong_if(hsv, noise or (luck < self.small and bool(self.object(hsv).mean() < 0.065)))


PAIRS = 20
for _seed in range(PAIRS):  # models by name: a run finds them as python:planted:noisy_7
    globals()[f"noisy_{_seed}"] = partial(Noisy, _seed)
    globals()[f"worse_on_small_{_seed}"] = partial(Noisy, 1000 + _seed, 0.9)
guessing = Guessing
mislabelled = Mislabelled
answers_one_class = AnswersOneClass
answers_nothing = AnswersNothing
halting = Halting
reads_the_background = ReadsTheBackground
honest = Planted
answers_by_background = AnswersByBackground
fails_on_small_objects = FailsOnSmallObjects
blind_on_the_left = BlindOnTheLeft
fails_on_turned_objects = FailsOnTurnedObjects


TRAINED = Preprocessing(size=(32, 32), resize=None, mean=(127.5, 127.5, 127.5), std=(127.5, 127.5, 127.5))


def write_colour_network(path: Path, photos: Path, **description: object) -> str:
    """A network that names the label whose photos have the nearest mean colour, with its description; the address.

    The network is always the same one. What the description says differently from `TRAINED` is a wrong set-up.
    """
    prototypes = np.stack([_mean_colour(photos / label) for label in LABELS], axis=1)  # (3, labels)
    graph = Graph("nearest-colour")
    flat = graph.node("Flatten", [graph.node("GlobalAveragePool", ["pictures"])])
    product = graph.node("MatMul", [flat, graph.constant("weights", (200 * prototypes).astype(np.float32))])
    bias = graph.constant("bias", (-100 * (prototypes**2).sum(axis=0)).astype(np.float32))
    logits = graph.node("Add", [product, bias])
    path.write_bytes(graph.model({"pictures": (3, 32, 32)}, {"logits": (logits, (len(LABELS),))}))
    given = {"labels": LABELS, "size": TRAINED.size, "resize": None, "mean": TRAINED.mean, "std": TRAINED.std}
    path.with_suffix(".json").write_text(json.dumps({**given, **description}))
    return f"onnx:{path}"


def _mean_colour(folder: Path) -> NDArray[np.float64]:
    """The mean colour of a label's photos, as the network sees it, (3,)."""
    inputs = [prepare_input(np.asarray(Image.open(file)), TRAINED) for file in sorted(folder.iterdir())]
    return np.asarray(np.mean([one.mean(axis=(1, 2)) for one in inputs], axis=0), np.float64)


def write_photos(folder: Path, count: int) -> tuple[Path, Path]:
    """Photos as <label>/<name>.png with their masks: an upright oval on the right half, on a tinted texture."""
    rng = np.random.default_rng(7)
    textures = [data.gravel(), data.brick(), data.grass()]
    for i in range(count):
        label = LABELS[i % len(LABELS)]
        image, mask = _photo(HUES[label], textures[i % 3], rng)
        for kind, pixels in (("images", image), ("masks", mask)):
            (folder / kind / label).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(folder / kind / label / f"{i:03d}.png")
    return folder / "images", folder / "masks"


def _photo(
    hue: int, texture: NDArray[np.uint8], rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    height, width = 160, 200
    top, left = rng.integers(0, texture.shape[0] - height), rng.integers(0, texture.shape[1] - width)
    value = 70 + texture[top : top + height, left : left + width] // 2
    hsv = np.dstack([np.full_like(value, hue), np.full_like(value, 60), value]).astype(np.uint8)
    centre = (int(rng.integers(128, 148)), int(rng.integers(70, 90)))
    mask = np.zeros((height, width), np.uint8)
    cv2.ellipse(mask, centre, (int(rng.integers(30, 36)), int(rng.integers(54, 62))), 0, 0, 360, 255, -1)
    shading = np.linspace(150, 250, width, dtype=np.uint8)[None].repeat(height, 0)
    hsv[mask > 0] = np.dstack([np.full_like(shading, hue), np.full_like(shading, SATURATION), shading])[mask > 0]
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.uint8), mask
