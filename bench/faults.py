"""Hundreds of classifiers with random planted faults through the whole pipeline: what is found, and what is invented.

    python bench/faults.py [--sets 3] [--classifiers 120] [--photos 200] [--tool-checks 60]

Each set has photos of its own and classifiers of its own (tests/helpers/random_faults.py): a fault in size, position,
direction, background, colour, light, noise or a second object, in two of them at once, or none, with random thresholds,
strength, noise and correlation of errors within a photo. A table is all that the run says about one classifier.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import counterfoil as cf
from counterfoil.statistics.intervals import RATE, estimate

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import numpy as np

from random_faults import KINDS, RECIPE, Planted, compare_with_plan, write_scenes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("sets", 3), ("classifiers", 120), ("photos", 200), ("tool-checks", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    rows: list[Planted] = []
    for number in range(arguments.sets):
        first = number * arguments.classifiers
        with tempfile.TemporaryDirectory() as folder:
            rows += run_set(Path(folder), number, range(first, first + arguments.classifiers), arguments)
        print_tables(rows)


def run_set(folder: Path, seed: int, numbers: range, arguments: argparse.Namespace) -> list[Planted]:
    images, masks = write_scenes(folder, arguments.photos, seed)
    recipe = folder / "recipe.yaml"
    recipe.write_text(f"tool_checks: {arguments.tool_checks}\n{RECIPE}")
    models = [f"python:random_faults:fault_{number}" for number in numbers]
    result = cf.run(images, models, masks=masks, recipe=str(recipe), out=folder / "out", seed=seed)
    return compare_with_plan(result.study)


def print_tables(rows: Sequence[Planted]) -> None:
    """Recall by the size of what was planted and by kind, and the tables with a false finding."""
    attributes = [row for row in rows if row.subject != "interaction"]
    interactions = [row for row in rows if row.subject == "interaction"]
    models = list(dict.fromkeys(row.model for row in rows))
    false = {row.model for row in rows if row.false}
    without = {row.model for row in rows if not row.kind}
    invented = {row.model for row in rows if row.model in without and row.found}
    print(f"\n{len(models)} tables, {len(without)} of classifiers without a fault\n")
    print("| question | share [95 %] |\n|---|---|")
    bands = ((2.0, np.inf, "at least twice"), (1.0, 2.0, "one to two times"), (0.5, 1.0, "half to one time"))
    for low, high, words in bands:
        found = [row.found for row in attributes if low <= row.multiple < high]
        print(f"| attribute named, planted {words} the detectable drop | {share(found)} |")
    for low, high, words in bands:
        found = [row.found for row in interactions if low <= row.multiple < high]
        print(f"| interaction named as such, planted {words} the detectable excess | {share(found)} |")
    crossed = {row.model for row in interactions if row.multiple >= 2.0}
    misnamed = {row.model for row in rows if row.misnamed}
    print(f"| ... and called a fault of one of the two | {share([model in misnamed for model in crossed])} |")
    print(f"| tables with a false finding | {share([model in false for model in models])} |")
    print(f"| ... of classifiers without a fault | {share([model in invented for model in without])} |")
    print(
        "\n| fault | tables | named where planted at least twice the detectable | false findings |\n|---|---|---|---|"
    )
    for kind in dict.fromkeys(KINDS):
        own = [row for row in rows if row.kind == kind]
        clear = [row.found for row in own if row.multiple >= 2.0]
        wrong = len({row.model for row in own if row.false})
        print(f"| {' and '.join(kind) or 'none'} | {len({row.model for row in own})} | {share(clear)} | {wrong} |")
    sys.stdout.flush()


def share(outcomes: Sequence[bool]) -> str:
    if not outcomes:
        return "none planted"
    row = estimate(np.array(outcomes, float), RATE).scaled(100)
    return f"{row.value:.1f} % [{row.ci_low:.1f}, {row.ci_high:.1f}] ({sum(outcomes)} of {len(outcomes)})"


if __name__ == "__main__":
    main()
