"""Classifiers with random planted faults, small photos for them, and what a run should say about each.

A classifier looks at the picture alone for its fault: how much of it the object covers, where it stands, how it is
turned, the tint, colour and sharpness of the background, the light, and a second object. Where the fault applies it is
wrong with the planted strength; elsewhere it is right as often as its noise lets it, and its errors are correlated
within a photo. The chance of every answer is kept, so that what was planted under each edit is known exactly.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.models.model_protocol import ModelBase
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.interactions import Interaction
from counterfoil.statistics.references import find_reference
from counterfoil.study.runs import Study
from counterfoil.types import Prediction, Variant

LABELS = ("crimson", "emerald", "azure", "violet")
HUES = (0, 60, 105, 140)  # OpenCV's scale, 0..179
SATURATION = 230  # of objects alone
MODULE = "random_faults"
RECIPE = """
working_size: 96
judge_fills: false
edits:
  - edit: control
  - edit: fill-control
  - {edit: background-swap, main: true}
  - edit: background-plain
  - edit: background-grayscale
  - edit: background-blur
  - {edit: size, levels: {rate: [0.1, 0.05]}}
  - {edit: position, levels: {rate: [null, 0.05]}}
  - {edit: direction, levels: {rate: [null, 0.05]}}
  - {edit: flip, settings: {axis: upside-down}}
  - {edit: combine, settings: {edits: [{edit: background-blur}, {edit: size, settings: {rate: 0.05}}]}}
  - edit: object-hue
  - edit: object-motion
  - edit: texture
  - {edit: occlusion, settings: {share: 0.5}}
  - {edit: text, levels: {word: [neutral, other]}}
  - edit: second-object
  - edit: exposure
  - {edit: corruption-gaussian-noise, settings: {severity: 3}}
"""
_NORMAL = NormalDist()
_NOTHING = 0.5  # points; a drop below it was not planted


class Features(NamedTuple):
    """What a classifier sees of a picture."""

    share: float  # of the picture that the object covers
    across: float  # the object's centre, 0 left, 1 right
    down: float
    tilt: float  # degrees from upright
    strange: float  # how far the background's hue is from that of the photo's class
    pale: float  # saturation of the background
    sharp: float  # of the background
    light: float  # of the picture, 0..255
    foreign: float  # share of the picture in the full colour of another class's object


class Part(NamedTuple):
    """One condition of a fault."""

    feature: str
    bound: tuple[float, float]  # the threshold is drawn between
    below: bool  # the fault applies below the threshold, else above it


PARTS = {
    "small": Part("share", (0.06, 0.12), True),
    "left": Part("across", (0.35, 0.5), True),
    "top": Part("down", (0.35, 0.5), True),
    "turned": Part("tilt", (10.0, 25.0), False),
    "strange background": Part("strange", (12.0, 20.0), False),
    "gray background": Part("pale", (12.0, 25.0), True),
    "blurred background": Part("sharp", (4.0, 6.0), True),
    "recoloured": Part("share", (0.001, 0.01), True),  # no object of the class's colour is found
    "dark": Part("light", (95.0, 125.0), True),
    "noisy": Part("sharp", (115.0, 125.0), False),
    "second object": Part("foreign", (0.01, 0.02), False),
}
KINDS = (
    (), (), ("small",), ("left",), ("top",), ("turned",), ("strange background",), ("gray background",),
    ("blurred background",), ("recoloured",), ("dark",), ("noisy",), ("second object",), ("small", "left"),
    ("small", "turned"), ("small", "blurred background"),
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """The fault of one classifier: it applies where all of its parts do."""

    number: int

    @property
    def kind(self) -> tuple[str, ...]:
        """The parts by name; empty for a classifier without fault."""
        return KINDS[self.number % len(KINDS)]

    @cached_property
    def draws(self) -> NDArray[np.float64]:
        """Random numbers of this classifier: two thresholds, strength, accuracy, correlation within a photo."""
        return np.random.default_rng([self.number, 13]).random(5)

    @cached_property
    def strength(self) -> float:
        """How often it is wrong where the fault applies and it would be right."""
        return 0.3 + 0.7 * float(self.draws[2])

    @cached_property
    def accuracy(self) -> float:
        """How often it is right where the fault does not apply."""
        return 0.7 + 0.3 * float(self.draws[3])

    @cached_property
    def thresholds(self) -> list[tuple[int, float, bool]]:
        """Of each part: the place of its feature, the threshold, and whether the fault applies below it."""
        parts = [(PARTS[name], float(drawn)) for name, drawn in zip(self.kind, self.draws, strict=False)]
        return [
            (Features._fields.index(part.feature), part.bound[0] + (part.bound[1] - part.bound[0]) * drawn, part.below)
            for part, drawn in parts
        ]

    def chance(self, seen: Features) -> float:
        """The probability of a right answer."""
        applies = bool(self.kind)
        for place, threshold, below in self.thresholds:
            applies &= seen[place] < threshold if below else seen[place] > threshold
        return self.accuracy * (1.0 - self.strength * applies)


class Faulty(ModelBase):
    """A classifier with a fault; it knows the truth from the plan and errs by chance."""

    labels = LABELS
    preprocessing = None
    parameters = 1  # all classifiers fit in one group, so that every picture is made once
    gives_scores = False

    def __init__(self, number: int) -> None:
        self.name = f"python:{MODULE}:fault_{number}"
        self.digest = str(number)
        self.fault = Fault(number)
        self.chances: dict[str, float] = {}  # of a right answer, by variant
        CLASSIFIERS[self.name] = self

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        raise NotImplementedError("answers need the plan of the picture")

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """A right or a wrong answer to each picture."""
        return [self._answer(variant, image) for variant, image in zip(variants, images, strict=True)]

    def _answer(self, variant: Variant, image: NDArray[np.uint8]) -> Prediction:
        truth = LABELS.index(variant.label)
        if variant.id not in SEEN:  # many classifiers see the same picture
            SEEN[variant.id] = look(image, truth)
        chance = self.fault.chance(SEEN[variant.id])
        self.chances[variant.id] = chance
        together = 0.8 * float(self.fault.draws[4])
        errs = math.sqrt(together) * _draw_once(self.name, str(variant.sample_id))
        errs += math.sqrt(1.0 - together) * _draw(self.name, variant.id)
        right = errs < _NORMAL.inv_cdf(min(max(chance, 1e-9), 1 - 1e-9))
        ranked = (LABELS[truth if right else (truth + 1) % 4], LABELS[(truth + 2) % 4])
        return Prediction(variant.id, ranked, (0.7, 0.2), 0.7 if right else 0.05)


CLASSIFIERS: dict[str, Faulty] = {}
SEEN: dict[str, Features] = {}  # by variant, whose id comes from the photo and all that was done to it


def __getattr__(name: str) -> Any:
    """`python:random_faults:fault_17` is the factory of the seventeenth classifier."""
    if not name.startswith("fault_"):
        raise AttributeError(name)
    return lambda: Faulty(int(name.removeprefix("fault_")))


def _draw(*words: str) -> float:
    """A standard normal number that depends on the words alone."""
    number = int.from_bytes(hashlib.blake2b("|".join(words).encode(), digest_size=8).digest(), "big")
    return _NORMAL.inv_cdf((number + 0.5) / 2**64)


_draw_once = lru_cache(maxsize=100_000)(_draw)


def look(image: NDArray[np.uint8], truth: int) -> Features:
    """The features of a picture."""
    shape = image.shape
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV).astype(np.int64)
    light = float(np.median(hsv[:, :, 2]))
    distance = np.abs((hsv[:, :, 0] - HUES[truth] + 90) % 180 - 90)
    found = ((hsv[:, :, 1] > 190) & (distance <= 8)).astype(np.uint8)
    count, parts, sizes, centres = cv2.connectedComponentsWithStats(found)
    foreign = float(((hsv[:, :, 1] > 190) & (hsv[:, :, 2] > 120) & (distance > 20)).mean())
    if count < 2:
        return Features(0.0, 0.5, 0.5, 0.0, 0.0, 60.0, 99.0, light, foreign)
    largest = 1 + int(np.argmax(sizes[1:, cv2.CC_STAT_AREA]))
    rows, columns = np.nonzero(parts == largest)
    tilt = 0.0
    if len(rows) > 50:
        tilt = cv2.fitEllipse(np.stack([columns, rows], 1)[:, None].astype(np.float32))[2]
    ground = cv2.dilate(found, np.ones((9, 9), np.uint8)) == 0
    if not ground.any():
        ground = np.ones_like(ground)
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float64)
    pale = float(np.median(hsv[:, :, 1][ground]))
    return Features(
        share=len(rows) / found.size,
        across=float(centres[largest][0]) / shape[1],
        down=float(centres[largest][1]) / shape[0],
        tilt=min(tilt, 180 - tilt),
        strange=float(np.median(distance[ground])) if pale > 15 else 0.0,
        pale=pale,
        sharp=float(np.abs(cv2.Laplacian(gray, cv2.CV_64F))[ground].mean()),
        light=light,
        foreign=foreign,
    )


def write_scenes(folder: Path, count: int, seed: int) -> tuple[Path, Path]:
    """Small photos as <label>/<name>.png with masks: an upright oval low on the right, on a grainy, tinted ground."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        label = number % len(LABELS)
        image, mask = _scene(HUES[label], rng)
        for kind, pixels in (("images", image), ("masks", mask)):
            (folder / kind / LABELS[label]).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(folder / kind / LABELS[label] / f"{number:03d}.png")
    return folder / "images", folder / "masks"


def _scene(hue: int, rng: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    height, width = 96, 96
    value = np.clip(rng.normal(150, 25, (height, width)), 60, 240).astype(np.uint8)
    hsv = np.dstack([np.full_like(value, hue), np.full_like(value, 60), value]).astype(np.uint8)
    across, down = int(rng.integers(12, 17)), int(rng.integers(22, 28))
    centre = (int(rng.integers(52, width - across - 3)), int(rng.integers(50, height - down - 3)))
    mask = np.zeros((height, width), np.uint8)
    cv2.ellipse(mask, centre, (across, down), 0, 0, 360, 255, -1)
    hsv[mask > 0] = (hue, SATURATION, 200)
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.uint8), mask


class Planted(NamedTuple):
    """What was planted for one classifier, and what the run made of it."""

    model: str
    kind: tuple[str, ...]  # the parts of its fault
    subject: str  # an attribute, or "interaction"
    planted: float  # points: the largest drop against its reference among the rows of the attribute, or excess
    multiple: float  # of the smallest drop that the photos could have shown
    found: bool  # called costly: the attribute, or an interaction
    false: bool  # called costly by a row in which nothing was planted
    misnamed: bool = False  # an attribute called costly by a row in which only an interaction was planted


def compare_with_plan(study: Study) -> list[Planted]:
    """One row per classifier and attribute, and one for its interactions."""
    answers = _expected_answers(study)
    rows = []
    for model in study.predictions:
        planted = _planted_drops(answers, answers.model_index(model))
        interactions = [own for own in study.interactions if own.model == model]
        excess = {own.condition[1:]: _planted_excess(answers, own) for own in interactions}
        kind = _fault_of(model).kind
        for verdict in (own for own in study.verdicts if own.model == model):
            row = max(verdict.rows, key=lambda row: planted[row.edit, row.level])
            drop, key = planted[row.edit, row.level], (model, row.edit, row.level)
            own = verdict.representative
            # what an interaction explains is found, under its own name
            found = verdict.costs or (row.edit, row.level) in [it.condition[1:] for it in verdict.interactions]
            false = verdict.costs and planted[own.edit, own.level] < _NOTHING
            beyond = planted[own.edit, own.level] - excess.get((own.edit, own.level), 0.0)  # the interaction
            rows.append(Planted(
                model, kind, verdict.attribute, drop, drop / study.detectable_drops.get(key, math.inf), found, false,
                misnamed=verdict.costs and not false and beyond < _NOTHING,
            ))  # fmt: skip
        rows.append(_compare_interactions(interactions, list(excess.values())))
    return rows


def _planted_excess(answers: Answers, row: Interaction) -> float:
    """The points that two edits at once were planted to cost beyond the sum of each."""
    rates = answers.rates[answers.model_index(row.model)]
    place = {(own.edit, own.level): number for number, own in enumerate(answers.conditions)}
    first, second, both = (rates[place[own]] for own in (row.first, row.second, row.condition[1:]))
    return _mean_points(first + second - rates[0] - both)


def _compare_interactions(measured: Sequence[Interaction], excess: Sequence[float]) -> Planted:
    """The interaction in which most was planted; false where one is called costly in which nothing was."""
    model = measured[0].model
    most = int(np.argmax(excess))
    half = (measured[most].high - measured[most].low) / 2  # at the corrected level, about 2.6 standard errors
    called = [own for row, own in zip(measured, excess, strict=True) if row.costs]
    return Planted(
        model, _fault_of(model).kind, "interaction", excess[most], excess[most] / (half * (1 + 0.84 / 2.6)),
        bool(called), any(own < _NOTHING for own in called),
    )  # fmt: skip


def _planted_drops(answers: Answers, model: int) -> dict[tuple[str, str], float]:
    """By edit and level, the drop against the reference that was planted, in points."""
    return {
        (own.edit, own.level): _mean_points(find_reference(answers, place).rates[model] - answers.rates[model, place])
        for place, own in enumerate(answers.conditions)
        if own.attribute != "original"
    }


def _expected_answers(study: Study) -> Answers:
    """The answers with the chance of a right one in place of each photo's rate; the original comes first."""
    answers = replace(study.answers)
    rates = np.full(answers.shape, np.nan)
    samples = {name: number for number, name in enumerate(answers.samples)}
    conditions = {condition: number for number, condition in enumerate(answers.conditions)}
    for model, predictions in study.predictions.items():
        chances = CLASSIFIERS[_address(model)].chances
        table = predictions.columns(["variant_id", "sample_id", "attribute", "edit", "level"])
        for variant, sample, *condition in zip(*table.values(), strict=True):
            place = answers.model_index(model), conditions[Condition(*condition)], samples[sample]
            rates[place] = chances[variant]
    vars(answers)["rates"] = rates  # in place of the cached property
    vars(answers)["original_rates"] = rates[:, 0]
    return answers


def _address(model: str) -> str:
    return model.split(" (")[0]


def _fault_of(model: str) -> Fault:
    return CLASSIFIERS[_address(model)].fault


def _mean_points(values: NDArray[np.float64]) -> float:
    return 100 * float(np.nanmean(values))
