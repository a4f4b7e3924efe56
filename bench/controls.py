"""How often a loss is called clear where the traces of editing explain it, and where they do not, by simulation.

    python bench/controls.py [--trials 400]

One model, photos with an original, a control, a filled hole beside the object and a small object. The control and the
hole cost a known number of points, the small object the same and, in half of the tables, more. Answers of one photo are
correlated. The hole is there for a share of the photos only, as in real runs. Without controls in the table, every loss
beyond zero would be called clear.
"""

from __future__ import annotations

import argparse
import itertools
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.drops import is_significant, measure_drops

SEED = 20_240
CONDITIONS = (
    Condition("original", "original", ""),
    Condition("control", "control", "none"),
    Condition("control", "fill-control", "beside"),
    Condition("size", "size", "0.05"),
)
PHOTOS = (60, 200, 480)
SHARES = (1.0, 0.5)  # of the photos that have a filled hole
TRACES = (0, 5, 15)  # points that the hole costs; cutting and pasting costs a third of it
BEYOND = (0, 10, 20, 30)  # points that the size costs beyond it
ACCURACY, CORRELATION = 0.85, 0.4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args().trials
    columns = " | ".join(f"{points} beyond: with, without controls" for points in BEYOND)
    print(f"| photos | with a hole | the hole costs | {columns} |")
    print(f"|---|---|---|{'---|' * len(BEYOND)}")
    for photos, share, traces in itertools.product(PHOTOS, SHARES, TRACES):
        cells = " | ".join(called(photos, share, traces, beyond, trials) for beyond in BEYOND)
        print(f"| {photos} | {100 * share:.0f} % | {traces} | {cells} |", flush=True)


def called(photos: int, share: float, traces: int, beyond: int, trials: int) -> str:
    """The share of tables in which the loss is called clear, with the controls and without them."""
    rng = np.random.default_rng([SEED, photos, round(100 * share), traces, beyond])
    losses = np.array([0, traces / 3, traces, traces + beyond]) / 100
    found = np.array([judge(draw(rng, photos, losses), share) for _ in range(trials)])
    return ", ".join(f"{100 * part:.1f} %" for part in found.mean(axis=0))


def draw(rng: np.random.Generator, photos: int, losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Right answers by condition and photo."""
    bounds = np.array([NormalDist().inv_cdf(ACCURACY - loss) for loss in losses])
    errs = np.sqrt(CORRELATION) * rng.normal(size=photos) + np.sqrt(1 - CORRELATION) * rng.normal(
        size=(len(losses), photos)
    )
    return np.asarray(errs < bounds[:, None])


def judge(right: NDArray[np.bool_], share: float) -> tuple[bool, bool]:
    scored = np.ones_like(right)
    scored[2, int(share * right.shape[1]) :] = False
    with_controls = measure_drops(collect(right, scored))[-1]
    scored[1:3] = False
    without = measure_drops(collect(right, scored))[-1]
    return tuple(is_significant(row) and row.drop_vs_reference > 0 for row in (with_controls, without))  # type: ignore[return-value]


def collect(right: NDArray[np.bool_], scored: NDArray[np.bool_]) -> Answers:
    kinds, photos = right.shape
    return Answers(
        models=("net",),
        conditions=CONDITIONS,
        samples=tuple(map(str, range(photos))),
        model=np.zeros(right.size, np.intp),
        condition=np.repeat(np.arange(kinds), photos),
        sample=np.tile(np.arange(photos), kinds),
        replicate=np.zeros(right.size, np.intp),
        correct=right.ravel().copy(),
        scored=scored.ravel().copy(),
        object_share=np.full(right.size, np.nan),
    )


if __name__ == "__main__":
    main()
