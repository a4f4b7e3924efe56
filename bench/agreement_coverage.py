"""How often the 95 % intervals of annotators' agreement cover the truth, by simulation with fixed seeds.

    python bench/agreement_coverage.py [--trials 300]

Three annotators, each right as often as the case says, one answer in ten missing. The truth is the value on
400,000 pictures. Draws without an interval (too few usable pictures) are counted in brackets.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from counterfoil.statistics.agreement import Agreement, Ratings, measure_agreement
from counterfoil.statistics.intervals import Estimate

PICTURES = (6, 12, 30, 100, 400)
MANY = 400_000  # pictures that show the truth
MEASURES = ("percent", "cohen", "fleiss", "krippendorff")
CASES = {
    "careful": (0.5, 0.9), "careless": (0.5, 0.7), "a rare answer": (0.9, 0.95), "nearly perfect": (0.6, 0.99),
    "chance": (0.6, 0.5), "careless, a rare answer": (0.9, 0.8),
}  # fmt: skip  # share of the commoner true answer, share of right answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    trials = parser.parse_args().trials
    for name, case in CASES.items():
        print(f"\n{name}: coverage in percent (draws without an interval) at {', '.join(map(str, PICTURES))} pictures")
        truth = drawn(case, 1, MANY, resamples=1)
        columns = [[drawn(case, trial, pictures) for trial in range(trials)] for pictures in PICTURES]
        for measure in MEASURES:
            true: Estimate = getattr(truth, measure)
            print(f"{measure:14}{true.value:7.2f}  " + "  ".join(covered(column, measure, true) for column in columns))


def drawn(case: tuple[float, float], seed: int, pictures: int, *, resamples: int = 400) -> Agreement:
    rng = np.random.default_rng([pictures, seed])
    commoner, right = case
    truth = (rng.random(pictures) > commoner).astype(np.intp)[:, None]
    codes = np.where(rng.random((pictures, 3)) < right, truth, 1 - truth)
    codes[rng.random((pictures, 3)) < 0.1] = -1
    names = tuple(map(str, range(pictures)))
    return measure_agreement(Ratings(names, ("a", "b", "c"), ("yes", "no"), codes), rng, resamples=resamples)


def covered(column: list[Agreement], measure: str, true: Estimate) -> str:
    found = [getattr(row, measure) for row in column]
    told = [row for row in found if math.isfinite(row.ci_low)]
    inside = sum(row.ci_low - 1e-9 <= true.value <= row.ci_high + 1e-9 for row in told)
    return f"{100 * inside / len(told) if told else math.nan:5.1f} ({len(found) - len(told):3})"


if __name__ == "__main__":
    main()
