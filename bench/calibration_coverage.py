"""How often the intervals of the rises of overconfidence and of the calibration error hold the true rise.

    python bench/calibration_coverage.py [--trials 1000]

Photos have a confidence before and after an edit, and are right with a chance that depends on it. Two levels of one
edit, answered by the same photos, are one attribute. The truth is computed from a million photos.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers, Condition, Details
from counterfoil.statistics.calibration import BINS, confidence_changes
from counterfoil.statistics.intervals import Estimate

Floats = NDArray[np.float64]
LEVELS = (Condition("size", "size", "0.1"), Condition("size", "size", "0.05"))


class World(NamedTuple):
    """Confidence from a normal score of the photo's ease, and the chance to be right at a confidence."""

    name: str
    confidence: tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]  # before, after
    chance: tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]


def squash(score: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-score)))


def sure(ease: Floats) -> Floats:
    return 0.05 + 0.9 * squash(1.0 + 1.5 * ease)


def less_sure(ease: Floats) -> Floats:
    return 0.05 + 0.9 * squash(1.5 * ease)


def honest(confidence: Floats) -> Floats:
    return confidence


def too_sure(points: float) -> Callable[[Floats], Floats]:
    return lambda confidence: np.asarray(np.clip(confidence - points, 0.02, 0.98))


def crossing(confidence: Floats) -> Floats:
    return np.asarray(0.5 + 0.5 * (confidence - 0.5))


WORLDS = (
    World("calibrated before and after", (sure, less_sure), (honest, honest)),
    World("10 points too sure before and after", (sure, less_sure), (too_sure(0.1), too_sure(0.1))),
    World("calibrated, then 5 points too sure", (sure, less_sure), (honest, too_sure(0.05))),
    World("calibrated, then 20 points too sure", (sure, sure), (honest, too_sure(0.2))),
    World("10, then 30 points too sure", (sure, sure), (too_sure(0.1), too_sure(0.3))),
    World("calibrated, then too sure high and too modest low", (sure, less_sure), (honest, crossing)),
    World("15 points too modest, then 5 too sure", (sure, less_sure), (too_sure(-0.15), too_sure(0.05))),
)


def draw(world: World, photos: int, rng: np.random.Generator) -> Details:
    """Three answers a photo, correlated by its ease and by a common draw."""
    ease, luck = rng.normal(size=photos), rng.normal(size=photos)
    columns = []
    for side in (0, 1, 1):
        own = 0.8 * ease + 0.6 * rng.normal(size=photos)
        confidence = world.confidence[side](own)
        normal = 0.6 * luck + 0.8 * rng.normal(size=photos)
        rank = np.array([NormalDist().cdf(value) for value in normal])
        columns.append((confidence, rank < world.chance[side](confidence)))
    rows = 3 * photos
    answers = Answers(
        models=("net",),
        conditions=(Condition("original", "original", "none"), *LEVELS),
        samples=tuple(map(str, range(photos))),
        model=np.zeros(rows, np.intp),
        condition=np.repeat([0, 1, 2], photos),
        sample=np.tile(np.arange(photos), 3),
        replicate=np.zeros(rows, np.intp),
        correct=np.concatenate([right for _, right in columns]),
        scored=np.ones(rows, bool),
        object_share=np.full(rows, np.nan),
    )
    first = np.concatenate([confidence for confidence, _ in columns])
    label = np.zeros(rows, np.intp)
    return Details(
        answers=answers, labels=("cat",), label=label, answer=label, true_score=first, top_score=first,
        other_score=0 * first, donor=label - 1, centre=np.full((rows, 2), np.nan),
    )  # fmt: skip


def truth(world: World, rng: np.random.Generator) -> tuple[float, float]:
    """The true rises, in points: of confidence minus accuracy, and of the root mean square error over bins."""
    excess, error = [], []
    for side in (0, 1):
        confidence = world.confidence[side](rng.normal(size=1_000_000))
        gap = confidence - world.chance[side](confidence)
        bins = np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1)
        times = np.maximum(1, np.bincount(bins, minlength=BINS))
        error.append(np.sqrt((np.bincount(bins, gap, minlength=BINS) ** 2 / times).sum() / len(gap)))
        excess.append(gap.mean())
    return 100 * (excess[1] - excess[0]), 100 * (error[1] - error[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    trials = parser.parse_args().trials
    print("| before and after | photos | true rise: surer by, error | mean measured | interval holds it | width |")
    print("|---|--:|---|---|---|---|")
    for world in WORLDS:
        true = truth(world, np.random.default_rng(1))
        for photos in (30, 62, 240, 1000):
            rng = np.random.default_rng(photos)
            rows = [confidence_changes(draw(world, photos, rng))[0] for _ in range(trials)]
            cells = [
                _describe([row.excess_rise for row in rows], true[0]),
                _describe([row.error_rise for row in rows], true[1]),
            ]
            columns = (", ".join(own) for own in zip(*cells, strict=True))
            print(f"| {world.name} | {photos} | {' | '.join(columns)} |", flush=True)


def _describe(rows: list[Estimate], true: float) -> tuple[str, str, str, str]:
    held = 100 * np.mean([row.ci_low <= true <= row.ci_high for row in rows])
    width = np.mean([row.ci_high - row.ci_low for row in rows])
    return f"{true:.1f}", f"{np.mean([row.value for row in rows]):.1f}", f"{held:.1f} %", f"{width:.0f}"


if __name__ == "__main__":
    main()
