"""How well the background is filled: a region of real background is cut out, filled and compared with the truth.

    python bench/fill.py IMAGES MASKS [PHOTOS] [--painted STRENGTH,STEPS,RESAMPLE ...]

Our fill is compared with cv2.inpaint (Telea, Navier-Stokes) and a smooth fill, all with the same hole, and with the
edit `painted-removal` in the settings given: about 0.2 s on one core for each step and repetition.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.fill import fill_background, find_hole
from counterfoil.edits.matting import estimate_alpha
from counterfoil.edits.smooth_fill import fill_smoothly
from counterfoil.errors import Unusable
from counterfoil.painters.background_painter import ObjectRemover, remove_object
from counterfoil.sources.pixels import read_mask, read_photo
from photos import jpeg_files

SIDE = 400  # shorter side that larger photos are reduced to
SHARES = (0.03, 0.3)  # of the picture: an object of another size is scaled to the nearer end
TRIES = 200
OCTAVES = 4

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


class Case(NamedTuple):
    """A photo and a region without object whose content is known."""

    image: Bytes
    alpha: Bytes  # the region and the photo's own object: none of the fills may look at either
    region: Flags


class Score(NamedTuple):
    """How far one fill is from the truth inside the region."""

    error: float  # root mean square, in levels 0..255
    detail: float  # mean difference of the sorted gradients, in levels per pixel: is it as rough as the truth?
    spectrum: float  # mean |log2| ratio of the energies in four octaves: is it rough on the same scales?
    milliseconds: float


Fill: TypeAlias = Callable[[Case], Bytes]


def ours(case: Case) -> Bytes:
    return fill_background(case.image, case.alpha)


def telea(case: Case) -> Bytes:
    return _inpainted(case, cv2.INPAINT_TELEA)


def navier_stokes(case: Case) -> Bytes:
    return _inpainted(case, cv2.INPAINT_NS)


def smooth(case: Case) -> Bytes:
    return fill_smoothly(case.image, find_hole(case.alpha))


def painted(settings: str) -> Fill:
    """The object painted over with these settings, one seed for every case."""
    strength, steps, times = settings.split(",")
    brush = ObjectRemover(float(strength), int(steps), 0.0, resample=int(times))

    def fill(case: Case) -> Bytes:
        return remove_object(case.image, ours(case), find_hole(case.alpha), brush, np.random.default_rng(0))

    return fill


def _inpainted(case: Case, method: int) -> Bytes:
    hole = find_hole(case.alpha).astype(np.uint8)
    return np.asarray(cv2.inpaint(case.image, hole, 5, method), np.uint8)


FILLS: Mapping[str, Fill] = {
    "Counterfoil": ours, "cv2 Telea": telea, "cv2 Navier-Stokes": navier_stokes, "smooth": smooth,
}  # fmt: skip


def cases(images: Path, masks: Path, count: int) -> Iterator[Case]:
    """One case of every few photos; a photo without enough room beside its object gives none."""
    photos = jpeg_files(images)
    found = 0
    for number, photo in enumerate(photos[:: max(1, len(photos) // (2 * count))]):
        image, mask = _reduced(read_photo(photo), read_mask(masks / photo.parent.name / f"{photo.stem}.png"))
        case = _case(image, estimate_alpha(image, mask), np.random.default_rng(number))
        if case is not None and found < count:
            found += 1
            yield case


def _reduced(image: Bytes, mask: Bytes) -> tuple[Bytes, Bytes]:
    scale = min(1.0, SIDE / min(mask.shape))
    size = (round(mask.shape[1] * scale), round(mask.shape[0] * scale))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.uint8), np.asarray(cv2.resize(mask, size, interpolation=cv2.INTER_NEAREST), np.uint8)


def _case(image: Bytes, alpha: Bytes, rng: np.random.Generator) -> Case | None:
    """The object's own shape, moved to where nothing but background is."""
    own = find_hole(alpha)
    share = float((alpha > 127).mean())
    if share == 0:
        return None
    wanted = float(np.clip(share, *SHARES))
    for attempt in range(TRIES):
        factor = (wanted / share) ** 0.5 * (1 - 0.6 * attempt / TRIES)
        shape = _moved(alpha, factor, rng)
        if shape is not None and not (find_hole(shape) & own).any():
            return Case(image, np.maximum(alpha, shape), shape > 127)
    return None


def _moved(alpha: Bytes, factor: float, rng: np.random.Generator) -> Bytes | None:
    """The object's shape at another size and place, wholly inside the picture."""
    left, top, width, height = cv2.boundingRect((alpha > 127).astype(np.uint8))
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    room = (alpha.shape[1] - size[0], alpha.shape[0] - size[1])
    if min(room) < 0:
        return None
    shape = cv2.resize(alpha[top : top + height, left : left + width], size, interpolation=cv2.INTER_AREA)
    x, y = int(rng.integers(room[0] + 1)), int(rng.integers(room[1] + 1))
    result = np.zeros_like(alpha)
    result[y : y + size[1], x : x + size[0]] = np.where(shape > 127, 255, 0)
    return result if (result > 0).mean() > SHARES[0] / 3 else None


def score(case: Case, fill: Fill) -> Score:
    """Fill the case and compare."""
    started = time.perf_counter()
    filled = fill(case)
    spent = 1000 * (time.perf_counter() - started)
    difference = filled[case.region].astype(np.float64) - case.image[case.region]
    truth, guess = (_gray(image) for image in (case.image, filled))
    sorted_gradients = [np.sort(_gradient(plane)[case.region]) for plane in (truth, guess)]
    energies = [_energies(plane, case.region) for plane in (truth, guess)]
    return Score(
        float(np.sqrt((difference**2).mean())),
        float(np.abs(sorted_gradients[0] - sorted_gradients[1]).mean()),
        float(np.abs(np.log2(energies[0] / energies[1])).mean()),
        spent,
    )


def _gray(image: Bytes) -> NDArray[np.float32]:
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.float32)


def _gradient(plane: NDArray[np.float32]) -> NDArray[np.float32]:
    down, across = np.gradient(plane)
    return np.asarray(np.hypot(down, across), np.float32)


def _energies(plane: NDArray[np.float32], region: Flags) -> NDArray[np.float64]:
    """Root mean square of four octaves of detail inside the region; half a level is the noise of rounding."""
    blurred = [plane, *(cv2.GaussianBlur(plane, (0, 0), 2.0**k) for k in range(OCTAVES))]
    bands = [finer - coarser for finer, coarser in pairwise(blurred)]
    return np.array([np.sqrt((band[region] ** 2).mean()) + 0.5 for band in bands], np.float64)


def main() -> None:
    """Print one row per fill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("photos", type=int, nargs="?", default=60)
    parser.add_argument("--painted", nargs="*", default=[], metavar="STRENGTH,STEPS,RESAMPLE")
    asked = parser.parse_args()
    fills = {**FILLS, **{f"painted {settings}": painted(settings) for settings in asked.painted}}
    _printed(_scores(fills, cases(asked.images, asked.masks, asked.photos)))


def _scores(fills: Mapping[str, Fill], given: Iterator[Case]) -> dict[str, list[Score]]:
    scores: dict[str, list[Score]] = {name: [] for name in fills}
    for case in given:
        try:
            row = {name: score(case, fill) for name, fill in fills.items()}
        except Unusable:
            continue
        for name, result in row.items():
            scores[name].append(result)
    return scores


def _printed(scores: Mapping[str, list[Score]]) -> None:
    print(f"{len(scores['Counterfoil'])} regions")
    print(f"| {'fill':18s} | error | detail | spectrum | ms |\n|---|---|---|---|---|")
    for name, results in scores.items():
        error, detail, spectrum, spent = np.mean(results, axis=0)
        print(f"| {name:18s} | {error:.1f} | {detail:.2f} | {spectrum:.3f} | {spent:.0f} |")


if __name__ == "__main__":
    main()
