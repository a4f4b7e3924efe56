"""How much faster the edits are than common libraries, and what the default recipe costs.

`python bench/edits.py [--turns N]`: the fifteen corruptions against imagecorruptions; moving, pasting and recolouring
an object against torchvision and Pillow; the recipe `attributes` against inferences. Both sides take turns in one
process, and CPU time is compared, since a machine is never fully idle. Prints ratios and shares only.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import cv2
import numpy as np
import torch
from skimage import data

from attributes_cost import cost_of_attributes
from counterfoil.edits.corruptions import CORRUPTIONS
from edit_rivals import ALIKE, BEHIND, HUE, MOVE, PASTE, exact_move
from figures import note_figure
from old_corruptions import imagecorruptions

SEVERITY = 3
SIDE = 224
TARGETS = {"all fifteen": 30, "without glass blur": 5, MOVE.name: 8, ALIKE.name: 5, PASTE.name: 2, HUE.name: 7}


class Seconds(NamedTuple):
    """CPU time of one call of each side, medians over the turns."""

    theirs: float
    ours: float

    @property
    def ratio(self) -> float:
        """How many times as long theirs takes."""
        return self.theirs / self.ours


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=9)
    turns = parser.parse_args().turns
    cv2.setNumThreads(1)  # threads that wait for one another spin, and spinning counts as CPU time
    torch.set_num_threads(1)
    _print_corruptions(_corruptions(turns))
    for pair in (MOVE, ALIKE, PASTE, HUE):
        _print_ratio(pair.name, _in_turns(pair.theirs, pair.ours, 5 * turns).ratio)
    _print_errors()
    print(cost_of_attributes())


def _corruptions(turns: int) -> dict[str, Seconds]:
    image = np.ascontiguousarray(data.astronaut()[:SIDE, 100 : 100 + SIDE])
    corrupt, rng = imagecorruptions().corrupt, np.random.default_rng(0)
    found = {}
    for name, kind in CORRUPTIONS.items():
        theirs, ours = name.removeprefix("corruption-").replace("-", "_"), kind(SEVERITY)
        for _ in range(20):  # the frosted panes are drawn once
            ours.corrupt(image, rng)
        found[theirs] = _in_turns(
            lambda theirs=theirs: corrupt(image, SEVERITY, theirs),  # type: ignore[misc]
            lambda ours=ours: ours.corrupt(image, rng),  # type: ignore[misc]
            turns,
        )
    return found


def _in_turns(theirs: Callable[[], object], ours: Callable[[], object], turns: int) -> Seconds:
    theirs()
    pairs = [(_cpu_seconds(theirs, 1), _cpu_seconds(ours, 5)) for _ in range(turns)]
    return Seconds(*(statistics.median(side) for side in zip(*pairs, strict=True)))


def _cpu_seconds(work: Callable[[], object], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


def _print_corruptions(found: Mapping[str, Seconds]) -> None:
    print(f"corruptions at {SIDE} x {SIDE} pixels, severity {SEVERITY}, against imagecorruptions 1.1.2:")
    for name, seconds in found.items():
        print(f"  {name:18} {seconds.ratio:7.1f}x")
    _print_ratio("all fifteen", _together(found).ratio)
    _print_ratio("without glass blur", _together({k: v for k, v in found.items() if k != "glass_blur"}).ratio)


def _together(found: Mapping[str, Seconds]) -> Seconds:
    return Seconds(*(sum(side) for side in zip(*found.values(), strict=True)))


def _print_errors() -> None:
    """How far the moved object is from an exact one, in levels, over the pixels that it changes."""
    exact = exact_move()
    changed = np.abs(exact - BEHIND).max(axis=2) > 0
    moved = {"ours": MOVE.ours().image, "torchvision": MOVE.theirs(), "torchvision, finer": ALIKE.theirs()}
    for name, image in moved.items():
        errors = np.abs(np.asarray(image) - exact)[changed]
        print(
            f"  {name}: mean {errors.mean():.2f}, 99 % within {np.quantile(errors, 0.99):.1f}, most {errors.max():.1f}"
        )


def _print_ratio(name: str, ratio: float) -> None:
    print(f"{name}: {ratio:.1f}x (wanted {TARGETS[name]}x)")
    note_figure(name, ratio)


if __name__ == "__main__":
    main()
