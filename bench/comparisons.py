"""How often a comparison says something false, and something true, by simulation.

    python bench/comparisons.py [--trials 150]

A comparison says which attribute costs a model most, which of two models loses more to an attribute, or what tells many
models apart. Photos are answered right with known chances; the answers to one photo are correlated.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from counterfoil.report.drop_findings import differ_significantly
from counterfoil.report.model_comparison import compare_models
from counterfoil.statistics.accuracy import edited_accuracies
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.attribute_verdicts import judge_attributes
from counterfoil.statistics.contrasts import contrast_attribute_drops
from counterfoil.statistics.drops import measure_drops

CORRELATION = 0.4
ORIGINAL = Condition("original", "original", "")
CONTROLS = (Condition("control", "control", "none"), Condition("control", "fill-control", "beside"))
SIZE, FOG = Condition("size", "size", "0.05"), Condition("corruption", "corruption-fog", "3")
ATTRIBUTES = (
    "background", "size", "position", "direction", "colour", "blur", "occlusion", "text", "second-object", "light",
    "corruption",
)  # fmt: skip
PLAIN = tuple(Condition(name, f"my-{name}", "1") for name in ATTRIBUTES)
Rows = NDArray[np.bool_]  # right answers, (conditions, photos)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=150)
    trials = parser.parse_args().trials
    print("| what is true | said | photos | tables |\n|---|---|--:|--:|")
    for photos in (100, 200, 480):
        words = "a hole costs 20, size 10 beyond it, fog 20 | size costs most, fog is clear and not named beside it"
        report(words, photos, trials, leads_alone)
    for photos in (100, 300):
        report("eleven attributes cost 20 each | one costs more than another", photos, trials, tells_equals_apart)
    for photos, hole, beyond in itertools.product((100, 480), (0, 5, 15), (0, 20)):
        words = f"one model loses {hole} to a hole and {beyond} to size beyond it | it loses more to size"
        report(words, photos, trials, partial(tells_models_apart, hole=hole, beyond=beyond))
    for photos in (100, 300):
        report("six models are equal | an attribute tells two apart", photos, trials, tells_equal_models_apart)


def report(words: str, photos: int, trials: int, said: Callable[[np.random.Generator, int], bool]) -> None:
    share = np.mean([said(np.random.default_rng([photos, trial]), photos) for trial in range(trials)])
    print(f"| {words} | {photos} | {100 * share:.1f} % |", flush=True)


def leads_alone(rng: np.random.Generator, photos: int) -> bool:
    answers = collect((ORIGINAL, *CONTROLS, SIZE, FOG), [draw(rng, photos, 0.85, (0, 7, 20, 30, 20))])
    verdicts = {own.attribute: own for own in judge_attributes(answers, measure_drops(answers), {})}
    return verdicts["size"].is_costliest and verdicts["corruption"].costs and not verdicts["corruption"].ties_costliest


def tells_equals_apart(rng: np.random.Generator, photos: int) -> bool:
    answers = collect((ORIGINAL, *PLAIN), [draw(rng, photos, 0.9, (0, *[20] * len(PLAIN)))])
    verdicts = judge_attributes(answers, measure_drops(answers), {})
    return any(own.costs and not (own.is_costliest or own.ties_costliest) for own in verdicts)


def tells_models_apart(rng: np.random.Generator, photos: int, hole: int, beyond: int) -> bool:
    losses = ((0, 0, 0, 0), (0, hole / 3, hole, hole + beyond))
    answers = collect((ORIGINAL, *CONTROLS, SIZE), [draw(rng, photos, 0.85, own) for own in losses])
    rows = contrast_attribute_drops(answers, [answers.models[:2]])  # type: ignore[list-item]
    return any(row.condition.attribute == "size" and differ_significantly(row) for row in rows)


def tells_equal_models_apart(rng: np.random.Generator, photos: int) -> bool:
    answers = collect((ORIGINAL, *PLAIN), [draw(rng, photos, 0.9, (0, *[10] * len(PLAIN))) for _ in range(6)])
    rows = contrast_attribute_drops(answers, list(itertools.combinations(answers.models, 2)))
    return any("points less" in own.text for own in compare_models(edited_accuracies(answers, answers.correct), rows))


def draw(rng: np.random.Generator, photos: int, accuracy: float, losses: Sequence[float]) -> Rows:
    """Right answers by condition and photo, losses in points."""
    bounds = np.array([NormalDist().inv_cdf(accuracy - loss / 100) for loss in losses])[:, None]
    hard, own = rng.normal(size=photos), rng.normal(size=(len(losses), photos))
    return np.asarray(np.sqrt(CORRELATION) * hard + np.sqrt(1 - CORRELATION) * own < bounds)


def collect(conditions: Sequence[Condition], rights: Sequence[Rows]) -> Answers:
    models, (kinds, photos) = len(rights), rights[0].shape
    rows = models * kinds * photos
    return Answers(
        models=tuple(f"model {place}" for place in range(models)),
        conditions=tuple(conditions),
        samples=tuple(map(str, range(photos))),
        model=np.repeat(np.arange(models), kinds * photos),
        condition=np.tile(np.repeat(np.arange(kinds), photos), models),
        sample=np.tile(np.arange(photos), kinds * models),
        replicate=np.zeros(rows, np.intp),
        correct=np.stack(rights).ravel(),
        scored=np.ones(rows, bool),
        object_share=np.full(rows, np.nan),
    )


if __name__ == "__main__":
    main()
