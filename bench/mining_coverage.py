"""How often the 95 % intervals of `mine` and of `verify changed` cover the truth, by simulation with fixed seeds.

    python bench/mining_coverage.py [--trials 400]

Three surrogates select pictures, two targets are evaluated. A picture's difficulty is the sum of an effect of its photo
and one of its own; each model adds an effect of its own per photo and one shared by its family. The truth is the value
on 60,000 photos. The intervals come from the functions behind the reports.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.mining.balanced_selection import MinedAnswers, MiningSelection
from counterfoil.mining.estimates import estimate_families, estimate_transfers
from counterfoil.mining.mining_config import MiningConfig
from counterfoil.mining.rules import AnswerMatrix, Rule, apply_rule
from counterfoil.mining.surrogate_answers import AskedModel, SurrogateAnswers
from counterfoil.mining.surrogate_groups import estimate_biases, estimate_curves, list_groups
from counterfoil.statistics.intervals import Estimate, estimate
from counterfoil.statistics.photo_shares import PhotoCounts, estimate_share, mean_share, pooled_share, share_change
from counterfoil.study.predictions import Predictions

PHOTOS = (6, 12, 25, 60, 200)
MANY = 60_000  # photos that show the truth
NAMES = ("resnet1", "resnet2", "vit1", "vit2", "swin1")  # families by name; the last two are targets
FAMILY = np.array([0, 0, 1, 1, 2])
SURROGATES = 3

Found: TypeAlias = dict[str, Estimate]
Draw: TypeAlias = Callable[[np.random.Generator, int], Found]


class Case(NamedTuple):
    """How many pictures a photo has, how good the models are, and how they choose."""

    variants: int
    skills: tuple[float, ...]
    rule: Rule


@dataclass(frozen=True)
class Simulated(SurrogateAnswers):
    """Answers that were drawn, not given."""

    drawn: AnswerMatrix
    photos: int

    @property
    def said(self) -> AnswerMatrix:
        """As drawn."""
        return self.drawn

    @cached_property
    def samples(self) -> tuple[tuple[str, ...], NDArray[np.intp]]:
        """Photos of equally many pictures."""
        each = self.drawn.right.shape[1] // self.photos
        return tuple(map(str, range(self.photos))), np.repeat(np.arange(self.photos), each)


CASES = {
    "8 % kept": Case(10, (0.8, 1.0, 1.2, 1.0, 1.3), Rule("all")),
    "two of three": Case(10, (0.8, 1.0, 1.2, 1.0, 1.3), Rule("at-least", least=2)),
    "3 % kept": Case(10, (2.0, 2.2, 2.4, 2.2, 2.5), Rule("all")),
    "most kept": Case(10, (-0.5, -0.3, -0.1, -0.3, 0.0), Rule("at-least", least=1, original="none")),
    "two variants": Case(2, (0.3, 0.5, 0.7, 0.5, 0.8), Rule("all")),
    "targets never fail": Case(10, (0.8, 1.0, 1.2, 4.5, 4.5), Rule("all")),
    "targets always fail": Case(10, (0.8, 1.0, 1.2, -2.5, -2.5), Rule("all")),
}
PEOPLE = {"half kept": (4, 0.5, 1.0), "nearly all kept": (4, 0.5, 3.5), "few kept": (4, 0.5, -0.8),
          "a hard set": (4, -1.0, 1.0), "one variant": (1, 0.5, 1.0)}  # fmt: skip  # variants, skill, people's patience


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args().trials
    draws: dict[str, Draw] = {name: partial(mined, case) for name, case in CASES.items()}
    draws |= {f"people: {name}": partial(verified, *case) for name, case in PEOPLE.items()}
    tables = {name: list(table_of(draw, trials)) for name, draw in draws.items()}
    for name, rows in tables.items():
        print(f"\n{name}: coverage in percent (median width in points) at {', '.join(map(str, PHOTOS))} photos")
        print("\n".join(f"{row.name:32}{row.truth:7.1f}  {row.told}" for row in rows))
    print(lowest(tables))


class Row(NamedTuple):
    """One number's intervals, by number of photos."""

    name: str
    truth: float
    covered: tuple[float, ...]
    widths: tuple[float, ...]
    errors: tuple[float, ...]  # mean estimate minus truth

    @property
    def told(self) -> str:
        """As a line of the table."""
        cells = zip(self.covered, self.widths, self.errors, strict=True)
        return "  ".join(f"{covered:5.1f} ({width:5.1f}, {error:+5.1f})" for covered, width, error in cells)


def table_of(draw: Draw, trials: int) -> Iterator[Row]:
    truth = draw(np.random.default_rng(99), MANY)
    columns = [[draw(np.random.default_rng([photos, trial]), photos) for trial in range(trials)] for photos in PHOTOS]
    for name, true in truth.items():
        every = [[row[name] for row in column if name in row] for column in columns]
        cells = [[row for row in cell if math.isfinite(row.ci_low)] for cell in every]
        yield Row(
            name, true.value,
            tuple(_mean([row.ci_low - 1e-9 <= true.value <= row.ci_high + 1e-9 for row in cell]) for cell in cells),
            tuple(float(np.median([row.ci_high - row.ci_low for row in cell] or [math.nan])) for cell in cells),
            tuple(_mean([row.value - true.value for row in cell]) / 100 for cell in cells),
        )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return 100 * float(np.mean(values)) if values else math.nan


def lowest(tables: dict[str, list[Row]]) -> str:
    """The worst case of every number, and which it is."""
    lines = ["\nThe lowest coverage over the cases:"]
    for name in dict.fromkeys(row.name for rows in tables.values() for row in rows):
        found = [(row.covered, case) for case, rows in tables.items() for row in rows if row.name == name]
        worst = [min((covered[place], case) for covered, case in found) for place in range(len(PHOTOS))]
        lines.append(f"{name:32}" + "  ".join(f"{share:5.1f} {case[:22]:22}" for share, case in worst))
    return "\n".join(lines)


def mined(case: Case, rng: np.random.Generator, photos: int) -> Found:
    """What mining says of simulated answers; nothing where nothing is kept, since the command then refuses."""
    said = answers(case, rng, photos)
    kept = apply_rule(said.of(slice(0, SURROGATES)), case.rule)
    if not kept.any():
        return {}
    models = tuple(AskedModel(name, name, "", Predictions(Path())) for name in NAMES)
    asked = Simulated(None, models, SURROGATES, (), said, photos)  # type: ignore[arg-type]  # no workspace is read
    job = MiningConfig(workspace=Path(), surrogates=NAMES[:SURROGATES], targets=NAMES[SURROGATES:], rule=case.rule)
    return dict(told(MinedAnswers(job, asked, MiningSelection(case.rule, kept, kept, "", ()))))


def answers(case: Case, rng: np.random.Generator, photos: int) -> AnswerMatrix:
    """Right or wrong of five models, (models, photos x variants)."""
    shape = (len(NAMES), photos, case.variants)
    skill = np.array(case.skills)[:, None, None]
    photo, picture = rng.normal(0, 1, (1, photos, 1)), rng.normal(0, 1, (1, *shape[1:]))
    own, kin = rng.normal(0, 0.6, (*shape[:2], 1)), rng.normal(0, 0.5, (3, *shape[1:]))[FAMILY]
    right = photo + picture < skill + own + kin + rng.normal(0, 0.6, shape)
    original = photo < skill + 1.2 + own + rng.normal(0, 0.6, (*shape[:2], 1))
    flat = right.reshape(len(NAMES), -1).astype(np.float64)
    return AnswerMatrix(flat, flat, np.broadcast_to(original, shape).reshape(flat.shape).astype(np.float64))


def told(picked: MinedAnswers) -> Iterator[tuple[str, Estimate]]:
    """Every kind of interval on the page, of one surrogate, one target and one family."""
    everything = np.ones(len(picked.choice.kept), bool)
    yield "yield", picked.share(picked.choice.kept, everything)
    target, family = estimate_transfers(picked)[0], estimate_families(picked)[0]
    yield "transfer", target.failing
    yield "base rate", target.base
    yield "transfer over base rate", target.more
    yield "transfer, original right", target.lost
    yield "the same over base rate", target.lost_more
    yield "family: over base rate", family.more
    for curve in (
        row for row in estimate_curves(picked, list_groups(picked)) if row.model in (NAMES[0], NAMES[SURROGATES])
    ):
        for point in curve.points:
            yield f"curve of {curve.role}, {point.size}: accuracy", point.accuracy
            yield f"curve of {curve.role}, {point.size}: transfer", point.transfer
    bias = estimate_biases(picked)[0]
    yield "bias: right on others' choice", bias.chosen_by_others
    yield "bias", bias.bias
    yield "bias, adjusted", bias.adjusted


def verified(variants: int, skill: float, patience: float, rng: np.random.Generator, photos: int) -> Found:
    """A model's accuracies and drops, without and with people who keep what they can recognise."""
    hard = rng.normal(0, 1, (photos, 1)) + np.zeros((photos, variants))
    original = (hard[:, 0] < skill + 1.2 + rng.normal(0, 0.6, photos)).astype(np.float64)
    hard = hard + rng.normal(0, 1, hard.shape)
    right = (hard < skill + rng.normal(0, 0.6, (photos, 1)) + rng.normal(0, 0.6, hard.shape)).ravel()
    there = (rng.random(hard.shape) < 0.6).ravel()
    kept = there & (hard + rng.normal(0, 0.7, hard.shape) < patience).ravel()
    which = PhotoCounts(np.repeat(np.arange(photos), variants), photos)
    accuracies = [pooled_share(right, chosen, which) for chosen in (there, kept)]
    lost = [_lost(right, original, chosen, which) for chosen in (there, kept)]
    return {
        "verified: kept of decided": estimate_share(pooled_share(kept, there, which)).scaled(100),
        "verified: accuracy with": estimate_share(accuracies[1]).scaled(100),
        "verified: change of accuracy": share_change(*accuracies).scaled(100),
        "verified: drop with": estimate(lost[1]).scaled(100),
        "verified: change of drop": share_change(*map(mean_share, lost)).scaled(100),
    }


def _lost(
    right: NDArray[np.bool_], original: NDArray[np.float64], chosen: NDArray[np.bool_], which: PhotoCounts
) -> NDArray[np.float64]:
    (hits,), (pictures,) = (next(which.counts(rows[None])).T for rows in (right & chosen, chosen))
    with np.errstate(invalid="ignore"):  # 0 / 0: no such picture of the photo
        return np.asarray(original - hits / pictures, np.float64)


if __name__ == "__main__":
    main()
