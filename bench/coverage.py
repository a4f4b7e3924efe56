"""How often 95 % intervals cover the true drop, by simulation with a fixed seed; draws docs/figures/coverage.svg.

    python bench/coverage.py [--trials 20000]
    python bench/coverage.py --null [--trials 2000]
    python bench/coverage.py --tables [--trials 600]

With `--null`: how often the tests of photo_tests.py reject where there is nothing to find, at 5 %, and at the corrected
levels 0.625 % and 0.1 %; photos, pictures a photo, accuracies, and answers that are correlated within a photo.

With `--tables`: how often a whole table of drops calls an attribute or an interaction costly where nothing is; without
controls, and with controls that cost nothing, or as much as every edit in which the tool shows.

A cell of the grid is a number of photos, an accuracy before, a drop and a correlation of right answers before and
after. Photos are drawn from the four joint outcomes; every distinct draw's interval is computed once.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bootstraps import bca_interval, bootstrap_interval
from counterfoil.edits.registry import shows_tool
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.attribute_verdicts import judge_attributes
from counterfoil.statistics.drops import measure_drops
from counterfoil.statistics.interactions import measure_interactions
from counterfoil.statistics.intervals import Interval, score_interval
from counterfoil.statistics.photo_tests import p_of_mean

SEED = 20_240
PHOTOS = (30, 64, 100, 200, 500)
ACCURACIES = (0.6, 0.75, 0.9)
DROPS = (0.0, 0.02, 0.05, 0.1)
CORRELATIONS = (0.0, 0.3, 0.6)
NULL_PHOTOS = (20, 50, 100, 480, 2_000)
NULL_PICTURES = (1, 3, 10)
NULL_ACCURACIES = (0.05, 0.3, 0.75, 0.95, 0.99)
NULL_CORRELATIONS = (0.0, 0.3, 0.8)
TRACES = (None, 0.0, 0.1, 0.25)  # the share of right answers that the tool costs; None: a table without controls
FAMILIES = ("main", "surface", "interactions")
TABLE_EDITS = (
    ("background", "background-swap"), ("background", "background-plain"), ("background", "background-blur"),
    ("colour", "object-hue"), ("colour", "object-grayscale"), ("blur", "object-blur"), ("occlusion", "occlusion"),
    ("text", "text"), ("second-object", "second-object"), ("light", "light"), ("corruption", "corruption-fog"),
    ("texture", "texture"), ("material", "material"), ("shape", "silhouette"),
)  # fmt: skip
LEVELS = (0.05, 0.00625, 0.001)
ENOUGH = 10  # expected changes from which the default is to cover 94 to 96 %
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "coverage.svg"
METHODS: dict[str, Callable[[NDArray[np.float64]], Interval]] = {
    "score": score_interval, "bca": bca_interval, "percentile": bootstrap_interval,
}  # fmt: skip
COLOURS = {"score": "#0b6e4f", "bca": "#b45309", "percentile": "#7c8794"}


class Cell(NamedTuple):
    """So many photos, and the shares of them that an edit makes wrong and right."""

    photos: int
    lost: float
    gained: float

    @property
    def changes(self) -> float:
        """Photos whose answer is expected to change."""
        return self.photos * (self.lost + self.gained)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--tables", action="store_true")
    arguments = parser.parse_args()
    if arguments.tables:
        print_null_tables(arguments.trials or 600)
        return
    if arguments.null:
        print_null_levels(arguments.trials or 2_000)
        return
    trials = arguments.trials or 20_000
    cells = [cell_of(*place) for place in itertools.product(PHOTOS, ACCURACIES, DROPS, CORRELATIONS)]
    cells = [cell for cell in cells if cell.lost > 0 and cell.gained > 0]
    found = {method: [coverage(cell, method, trials) for cell in cells] for method in METHODS}
    for method, shares in found.items():
        print(summary(method, cells, shares))
    FIGURE.parent.mkdir(exist_ok=True)
    FIGURE.write_text(drawing(cells, found), encoding="utf-8")


def print_null_levels(trials: int) -> None:
    """The largest and the mean share of rejections over accuracies and correlations, by photos and pictures."""
    print(f"| test | photos | pictures | {' | '.join(f'{100 * level:g} %: mean, largest' for level in LEVELS)} |")
    for kind, photos, pictures in itertools.product(("drop", "contrast"), NULL_PHOTOS, NULL_PICTURES):
        cells = itertools.product(NULL_ACCURACIES, NULL_CORRELATIONS)
        p_values = np.array([
            null_p_values(kind, (trials, photos), pictures, accuracy, correlation) for accuracy, correlation in cells
        ])  # fmt: skip
        shares = [100 * (p_values < level).mean(axis=1) for level in LEVELS]
        columns = " | ".join(f"{share.mean():.2f}, {share.max():.2f}" for share in shares)
        print(f"| {kind} | {photos} | {pictures} | {columns} |", flush=True)


def print_null_tables(trials: int) -> None:
    """The share of tables without any true drop that call something costly, by family."""
    for traces, photos in itertools.product(TRACES, (100, 480)):
        rng = np.random.default_rng(SEED)
        found = np.array([costly_families(draw_null_table(photos, traces, rng)) for _ in range(trials)])
        shares = ", ".join(
            f"{name} {100 * part:.1f} %" for name, part in zip(FAMILIES, found.mean(axis=0), strict=True)
        )
        words = "no controls" if traces is None else f"traces cost {100 * traces:g} % of the right answers"
        any_found = 100 * found.any(axis=1).mean()
        print(f"{words}, {photos} photos, {trials} tables: any {any_found:.1f} % ({shares})", flush=True)


def draw_null_table(photos: int, traces: float | None, rng: np.random.Generator) -> Answers:
    """One model's answers under 35 conditions, correlated within a photo, and under two controls unless without traces.

    All are as often right as the original, but for the controls and the edits that show the tool, which lose the same
    share of the right answers.
    """
    edits = [Condition(attribute, edit, level) for attribute, edit in TABLE_EDITS for level in ("15/3", "other")]
    crossed = [("size", ("full", "0.1", "0.05")), ("position", ("random", "random@0.05"))]
    crossed += [("direction", ("-45..45", "-45..45@0.05"))]
    conditions = [
        Condition("original", "original", ""),
        *edits,
        *(Condition(name, name, level) for name, levels in crossed for level in levels),
        Condition("combination", "combine", "background-blur 15/3 + size 0.05"),
    ]
    if traces is not None:
        conditions += [Condition("control", "control", "none"), Condition("control", "fill-control", "beside")]
    kept = np.array([1 - (traces or 0) * (shows_tool(own.edit) or own.attribute == "control") for own in conditions])
    accuracy, size = rng.uniform(0.6, 0.98), 1 / rng.uniform(0.1, 0.8) - 1
    chance = rng.beta(accuracy * size, (1 - accuracy) * size, photos)
    rows = len(conditions) * photos
    return Answers(
        models=("net",),
        conditions=tuple(conditions),
        samples=tuple(map(str, range(photos))),
        model=np.zeros(rows, np.intp),
        condition=np.repeat(np.arange(len(conditions)), photos),
        sample=np.tile(np.arange(photos), len(conditions)),
        replicate=np.zeros(rows, np.intp),
        correct=(rng.random((len(conditions), photos)) < kept[:, None] * chance).ravel(),
        scored=np.ones(rows, bool),
        object_share=np.full(rows, np.nan),
    )


def costly_families(answers: Answers) -> list[bool]:
    """Whether a main attribute, a surface attribute or an interaction is called costly."""
    interactions = measure_interactions(answers)
    verdicts = judge_attributes(answers, measure_drops(answers), {}, interactions)
    costly = {own.family for own in verdicts if own.costs}
    return ["attributes" in costly, "surface" in costly, any(row.costs for row in interactions)]


def null_p_values(
    kind: str, shape: tuple[int, int], pictures: int, accuracy: float, correlation: float
) -> NDArray[np.float64]:
    """The p of each trial; a photo's chance of a right answer is beta distributed, the same before and after."""
    rng = np.random.default_rng(SEED)
    size = 1 / correlation - 1 if correlation else math.inf
    chance = rng.beta(accuracy * size, (1 - accuracy) * size, shape) if correlation else np.full(shape, accuracy)
    drops = [rng.binomial(1, chance) - rng.binomial(pictures, chance) / pictures for _ in range(2)]
    if kind == "drop":
        return np.array([p_of_mean(row) for row in drops[0]])
    return np.array([p_of_mean(row, 4) for row in drops[0] - drops[1]])


def cell_of(photos: int, accuracy: float, drop: float, correlation: float) -> Cell:
    after = accuracy - drop
    shared = correlation * math.sqrt(accuracy * (1 - accuracy) * after * (1 - after))
    return Cell(photos, accuracy * (1 - after) - shared, (1 - accuracy) * after - shared)


def coverage(cell: Cell, method: str, trials: int) -> float:
    rng = np.random.default_rng(SEED)
    rates = [cell.lost, cell.gained, 1 - cell.lost - cell.gained]
    draws, times = np.unique(rng.multinomial(cell.photos, rates, trials)[:, :2], axis=0, return_counts=True)
    bounds = [interval(cell.photos, int(lost), int(gained), method) for lost, gained in draws]
    truth = cell.lost - cell.gained
    return float(np.average([low - 1e-9 <= truth <= high + 1e-9 for low, high in bounds], weights=times))


@functools.cache
def interval(photos: int, lost: int, gained: int, method: str) -> Interval:
    return METHODS[method](np.repeat([1.0, -1.0, 0.0], [lost, gained, photos - lost - gained]))


def summary(method: str, cells: list[Cell], shares: list[float]) -> str:
    enough = np.array([cell.changes >= ENOUGH for cell in cells])
    parts = [np.array(shares)[enough], np.array(shares)[~enough]]
    inside, few = (f"{100 * part.min():.1f} to {100 * part.max():.1f} %" for part in parts)
    more = f"{inside} over {enough.sum()} cells with {ENOUGH} expected changes or more"
    return f"{method}: {more}; {few} over {(~enough).sum()} with fewer"


def drawing(cells: list[Cell], found: dict[str, list[float]]) -> str:
    """Coverage against expected changes, logarithmic; the band is 94 to 96 %."""
    width, height, left, top = 720, 400, 60, 30

    def x(changes: float) -> float:
        return left + (width - left - 20) * (math.log10(max(changes, 0.3)) - math.log10(0.3)) / math.log10(300 / 0.3)

    def y(share: float) -> float:
        return top + (height - top - 60) * (1.0 - max(share, 0.70)) / 0.30

    points = [
        f'<circle cx="{x(cell.changes):.1f}" cy="{y(share):.1f}" r="3" fill="{COLOURS[method]}" fill-opacity="0.75"/>'
        for method in reversed(METHODS)
        for cell, share in zip(cells, found[method], strict=True)
    ]
    rows = [axis_label(left - 8, y(share) + 4, f"{100 * share:.0f}", "end") for share in (0.7, 0.8, 0.9, 0.95, 1.0)]
    columns = [axis_label(x(n), height - 38, str(n), "middle") for n in (1, 3, 10, 30, 100, 300)]
    order = ("score", "bca", "percentile")
    legend = [
        f'<circle cx="{470}" cy="{y(0.80) + 20 * place:.1f}" r="4" fill="{COLOURS[method]}"/>'
        + axis_label(482, y(0.80) + 20 * place + 4, f"{method}{' (default)' if method == 'score' else ''}", "start")
        for place, method in enumerate(order)
    ]
    band, wide, line = f"{y(0.94) - y(0.96):.1f}", width - left - 20, f"{x(ENOUGH):.1f}"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>Coverage of 95 % intervals against the expected number of photos whose answer changes</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<rect x="{left}" y="{y(0.96):.1f}" width="{wide}" height="{band}" fill="#d8efe4"/>',
        f'<line x1="{line}" x2="{line}" y1="{top}" y2="{height - 60}" stroke="#9aa4ae" stroke-dasharray="3 4"/>',
        *points, *rows, *columns, *legend,
        axis_label(left, 18, "Share of 95 % intervals that hold the true drop, percent (band: 94 to 96)", "start"),
        axis_label(width / 2, height - 12, "photos whose answer is expected to change", "middle"),
        "</svg>\n",
    ])  # fmt: skip


def axis_label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#33404c">{text}</text>'


if __name__ == "__main__":
    main()
