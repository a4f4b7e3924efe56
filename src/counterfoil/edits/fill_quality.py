"""How well a filled hole fits its picture: seam, repetition, texture, new colours, objects, strangeness, agreement.

Pure functions of a picture and its hole; 0 is a fill that cannot be told from its surroundings by that measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.line_ends import measure_line_ends
from counterfoil.edits.matting import distance_to
from counterfoil.edits.new_lines import measure_new_lines

SIDE = 192  # shorter side at which fills are measured: faults smaller than its pixel are not seen
PATCH = 9  # pixels; wide enough to hold a detail, narrow enough to find it twice
SAMPLES = 120  # patches of the hole that are looked for elsewhere in it
APART = 12  # pixels; nearer copies are the same patch
TWIN = 0.12  # squared difference of two copies of one detail, as a share of the detail's variance
DETAIL = 5.0  # standard deviation of a patch, in levels, from which it counts as a detail
BANDS = (1.0, 2.0, 4.0)  # scales of the texture, in pixels
FLOOR = 1.5  # levels of texture that nobody sees; keeps ratios of smooth surfaces finite
COLOUR_STEP = (5.0, 4.0, 4.0)  # of a cell of colours, in L*, a* and b*
SALIENT = 0.5
MOSTLY = 0.65  # of a salient thing inside the hole: then it is new
USUAL_EXCESS = 0.05  # by which a hole may be more salient than the rest, since holes lie in the middle
BLUR = 0.021  # of the shorter side: what two fills are blurred by before they are compared
STRANGE_SIDE, STRANGE_PATCH = 128, 7  # pixels: side of a square as large as the small copy, width of a patch
STRANGE_SAMPLES = 500  # patches of the hole that are looked for outside; half as many around it
BESIDE = 0.06  # of the shorter side: the band beside the hole in which things that appeared are looked for
REACH = 0.12  # width of the surroundings that the fill is compared with, as a share of the shorter side

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
SalienceFinder = Callable[[Bytes], Floats]  # a network: how salient each place of a picture is, 0 to 1


class FillQuality(NamedTuple):
    """The faults of one fill; each is 0 where there is none."""

    seam: float  # share of the rim with a step that the surroundings do not have
    repetition: float  # share of the hole's details that occur a second time in it, more than they do around it
    texture: float  # mean difference of texture strength from the surroundings, in doublings
    novelty: float  # share of the hole in colours that the photo has nowhere else
    appearance: float  # share of the hole that a network takes for an object, more than around it
    hole_share: float  # of the picture
    strangeness: float = 0.55  # difference of its patches from the nearest outside, relative to patches around it
    disagreement: float = 4.5  # from another fill where they differ most, in CIE Lab; the usual where there is none
    line_ends: float = 0.0  # how clearly lines of the surroundings run into the hole and end at its rim
    painted: float = 0.0  # 1 where a network painted it, which is blurred more often than copies are
    new_lines: float = 0.0  # the clearest line in the hole, relative to the clear lines of the photo

    @property
    def risk(self) -> float:
        """The weighted sum of the faults: the higher, the more often an eye finds the fill bad."""
        return sum(self._terms().values())

    def _terms(self) -> dict[str, float]:
        terms = {name: weight * min(getattr(self, name), CAPS[name]) for name, weight in WEIGHTS.items()}
        return terms | {"disagreement": DISAGREEMENT_WEIGHT * math.log1p(self.disagreement)}

    @property
    def fault(self) -> float:
        """One figure to compare two fills of the same hole, in units of what is just too much."""
        single = zip(self[:HOLE_SHARE], MOST[:HOLE_SHARE], strict=True)
        invented = self.new_lines / MOST.new_lines
        refused = invented if invented > 1 else 0.0  # below the limit they say nothing of which fill is better
        lines = self.line_ends / MOST.line_ends
        return max(self.risk / MOST_RISK, lines, refused, *(value / most for value, most in single))

    @property
    def reason(self) -> str:
        """Why the fill is refused; empty where it is good enough."""
        if self.hole_share > MOST.hole_share:
            return f"the hole covers {self.hole_share:.0%} of the picture, at most {MOST.hole_share:.0%} can be filled"
        if self.fault <= 1:
            return ""
        return self._name_worst()

    @property
    def bare_reason(self) -> str:
        """Why the fill is refused where nothing stands before it; empty where it is good enough."""
        if self.reason:
            return self.reason
        if self.repetition > BARE_REPETITION:
            return f"no fill is good enough: {_WORDS['repetition'].format(self.repetition)}"
        return self._name_worst() if self.risk > BARE_RISK else ""

    def _name_worst(self) -> str:
        """The fault that adds most to the risk, in words."""
        if self.repetition > MOST.repetition:
            return f"no fill is good enough: {_WORDS['repetition'].format(self.repetition)}"
        if self.new_lines > MOST.new_lines:
            return f"no fill is good enough: {_WORDS['new_lines'].format(self.new_lines)}"
        usual, terms = USUAL._terms(), self._terms()
        worst = max(terms, key=lambda name: terms[name] - usual[name])
        return f"no fill is good enough: {_WORDS[worst].format(getattr(self, worst))}"


# A logistic regression on an eye's verdicts on 270 fills of 90 photos, corrected by that on 224 of 56 others, see
# docs/benchmarks.md.
WEIGHTS = {
    "seam": 28, "texture": 0.8, "novelty": 40, "appearance": 45, "hole_share": 1.5, "strangeness": 2.0,
    "line_ends": 28, "painted": 0.5
}  # fmt: skip
CAPS = {
    "seam": 0.2, "texture": 1.2, "novelty": 0.06, "appearance": 0.05, "hole_share": 1.0, "strangeness": 2.0,
    "line_ends": 0.1, "painted": 1.0
}  # fmt: skip
DISAGREEMENT_WEIGHT = 2.0
MOST_RISK = 6.8  # of the best fills of those 56 photos 12 lie below it, two of them with a fault
BARE_RISK = 6.0  # where nothing stands before the fill: 10 of them, one with a fault
BARE_REPETITION = 0.3  # there
# More than this of a single fault, or of the hole, is refused whatever the rest.
MOST = FillQuality(
    seam=0.15,
    repetition=0.5,
    texture=2.0,
    novelty=0.05,
    appearance=0.03,
    hole_share=0.65,
    line_ends=0.05,
    new_lines=1.6,
)
HOLE_SHARE = FillQuality._fields.index("hole_share")  # the faults before it have limits of their own
USUAL = FillQuality(seam=0.01, repetition=0.1, texture=0.3, novelty=0.0, appearance=0.0, hole_share=0.3)
_WORDS = {
    "seam": "{:.0%} of its rim is a visible edge",
    "repetition": "{:.0%} of its details are repeated",
    "texture": "its texture differs from the surroundings by a factor of 2 to the power {:.1f}",
    "novelty": "{:.1%} of it has colours that the photo has nowhere else",
    "appearance": "{:.0%} of it looks like an object",
    "hole_share": "the hole covers {:.0%} of the picture and more than one measure is doubtful",
    "strangeness": "it is unlike the rest of the photo (by {:.1f} times the usual difference)",
    "line_ends": "lines of the photo end at its rim (slope {:.2f} of CIE Lab a pixel along the rim)",
    "new_lines": "it shows a line {:.1f} times as clear as the photo has them",
    "painted": "a network painted it and more than one measure is doubtful",
    "disagreement": "two fills differ by {:.0f} levels of CIE Lab, so that what was there cannot be told",
}


class FilledHole(NamedTuple):
    """A filled hole to be judged, with what is known beside it."""

    image: Bytes
    hole: Flags
    ignore: Flags | None = None  # no surroundings of the hole, such as an object beside it
    others: tuple[Bytes, ...] = ()  # the picture filled in other ways
    usual: list[float] | None = None  # difference of patches around the hole: kept here by the first fill of a hole


def measure_fill(
    judged: FilledHole, find_salience: SalienceFinder | None = None, hopeless: float = math.inf
) -> FillQuality:
    """The faults of a fill; without a network, and where the faults are already too much, it is not asked.

    `hopeless`: the fault from which the slowest measure, strangeness, is left out and taken as usual.
    """
    small, inside = _reduce(judged.image, judged.hole)
    gray = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.float32)
    ring = _find_surroundings(inside)
    if judged.ignore is not None:
        ring &= ~_reduce(judged.image, judged.ignore)[1]
    quality = FillQuality(
        seam=measure_seam(small, inside),
        repetition=measure_repetition(gray, inside, ring),
        texture=measure_texture(gray, inside, ring),
        novelty=measure_novelty(small, inside),
        appearance=0.0,
        hole_share=float(judged.hole.mean()),
        line_ends=measure_line_ends(judged.image, judged.hole, judged.ignore),
        new_lines=measure_new_lines(judged.image, judged.hole, judged.ignore),
    )
    if quality._replace(strangeness=0.0, disagreement=0.0).fault < hopeless:
        quality = quality._replace(strangeness=measure_strangeness(judged))
    if judged.others:
        apart = min(measure_disagreement(judged.image, other, judged.hole) for other in judged.others)
        quality = quality._replace(disagreement=apart)
    if find_salience is None or quality.fault > 1:
        return quality
    return quality._replace(appearance=measure_appearance(find_salience(judged.image), judged.hole))


def _reduce(image: Bytes, hole: Flags) -> tuple[Bytes, Flags]:
    height, width = hole.shape
    scale = SIDE / min(height, width)
    if scale >= 1:
        return image, hole
    size = (round(width * scale), round(height * scale))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    share = cv2.resize(hole.astype(np.uint8) * 255, size, interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.uint8), np.asarray(share) > 127


def _find_surroundings(hole: Flags) -> Flags:
    """The band around the hole that it is compared with."""
    return np.asarray((distance_to(hole) <= REACH * min(hole.shape)) & ~hole)


def measure_seam(image: Bytes, hole: Flags) -> float:
    """The share of the rim where the step across it is larger than nearly every step beside it."""
    smooth = np.asarray(cv2.GaussianBlur(image, (0, 0), 1.0), np.float32)
    outside, inside = distance_to(hole), distance_to(~hole)
    signed = np.where(hole, -inside, outside).astype(np.float32)
    # The step is taken along the direction away from the hole, over four pixels.
    across = np.asarray(cv2.Sobel(signed, cv2.CV_32F, 1, 0, ksize=5), np.float64)
    down = np.asarray(cv2.Sobel(signed, cv2.CV_32F, 0, 1, ksize=5), np.float64)
    length = np.maximum(np.hypot(across, down), 1e-6)
    across, down = across / length, down / length
    rows, columns = np.nonzero((outside > 0) & (outside <= 1.5) & _clear_of_border(hole.shape, 4))
    if not len(rows):
        return 0.0
    step_rim = _steps(smooth, (rows, columns), (down, across), (-2.5, 1.5))
    beside = [_steps(smooth, (rows, columns), (down, across), (start, start + 4)) for start in (2.5, 5.0, -8.0)]
    usual = np.maximum(np.maximum.reduce(beside), np.percentile(np.concatenate(beside), 75))
    return float((step_rim > 1.6 * usual + 10).mean())


def _steps(
    image: Floats,
    places: tuple[NDArray[np.intp], NDArray[np.intp]],
    normal: tuple[NDArray[np.float64], NDArray[np.float64]],
    span: tuple[float, float],
) -> Floats:
    """The largest difference of a channel between two points on the line across the rim, for each place."""
    rows, columns = places
    down, across = (plane[rows, columns] for plane in normal)
    ends = []
    for distance in span:
        x = (columns + across * distance).astype(np.float32)[None]
        y = (rows + down * distance).astype(np.float32)[None]
        ends.append(cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)[0])
    return np.asarray(np.abs(ends[0] - ends[1]).max(axis=1), np.float32)


def _clear_of_border(shape: tuple[int, ...], margin: int) -> Flags:
    clear = np.zeros(shape, bool)
    clear[margin:-margin, margin:-margin] = True
    return clear


def measure_repetition(gray: Floats, hole: Flags, ring: Flags) -> float:
    """The share of the hole's details with a twin in the hole, less that of details around it."""
    half = (gray.shape[1] * 2 // 3, gray.shape[0] * 2 // 3)  # fine grain may repeat unseen
    coarse = np.asarray(cv2.resize(gray, half, interpolation=cv2.INTER_AREA), np.float32)
    regions = [cv2.resize(part.astype(np.uint8), half, interpolation=cv2.INTER_NEAREST) > 0 for part in (hole, ring)]
    shares = [_share_of_twins(coarse, np.asarray(region)) for region in regions]
    return max(0.0, shares[0] - shares[1])


def _share_of_twins(gray: Floats, region: Flags) -> float:
    fine = gray - cv2.GaussianBlur(gray, (0, 0), 6.0)
    inner = np.asarray(cv2.erode(region.astype(np.uint8), np.ones((PATCH, PATCH), np.uint8), borderValue=0)) > 0
    rows, columns = np.nonzero(inner)
    if len(rows) < SAMPLES:
        return 0.0
    every = np.linspace(0, len(rows) - 1, 6 * SAMPLES).astype(int)
    half = PATCH // 2
    windows = np.lib.stride_tricks.sliding_window_view(fine, (PATCH, PATCH))
    patches = windows[rows - half, columns - half].reshape(len(rows), -1)
    detailed = every[patches[every].std(axis=1) >= DETAIL]
    detailed = detailed[:: max(1, len(detailed) // SAMPLES)]
    if len(detailed) < SAMPLES // 8:
        return 0.0  # a plain surface repeats nothing
    own = patches[detailed]
    squares = (patches * patches).sum(axis=1)
    errors = (own * own).sum(axis=1)[:, None] + squares[None] - 2 * own @ patches.T
    near = (np.abs(rows[detailed][:, None] - rows[None]) < APART) & (
        np.abs(columns[detailed][:, None] - columns[None]) < APART
    )
    errors[near] = np.inf
    return float((errors.min(axis=1) < TWIN * (own * own).sum(axis=1)).mean())


def measure_texture(gray: Floats, hole: Flags, ring: Flags) -> float:
    """The mean difference of texture strength between hole and surroundings over several scales, in doublings."""
    inner = hole & (distance_to(~hole) > 2)
    if np.count_nonzero(ring) < 50 or np.count_nonzero(inner) < 50:
        return 0.0
    differences = []
    for scale in BANDS:
        band = np.abs(cv2.GaussianBlur(gray, (0, 0), scale / 2) - cv2.GaussianBlur(gray, (0, 0), scale))
        strengths = [max(float(band[part].mean()), FLOOR / scale**0.5 / 4) for part in (inner, ring)]
        differences.append(abs(float(np.log2(strengths[0] / strengths[1]))))
    return float(np.mean(differences))


def measure_novelty(image: Bytes, hole: Flags) -> float:
    """The share of the hole whose colour, within a few just noticeable differences, occurs nowhere outside it."""
    smooth = cv2.GaussianBlur(image, (0, 0), 1.5).astype(np.float32) / 255
    cells = np.floor(cv2.cvtColor(smooth, cv2.COLOR_RGB2LAB) / np.array(COLOUR_STEP, np.float32)).astype(np.intp)
    cells -= cells.min(axis=(0, 1))
    known = np.zeros(cells.max(axis=(0, 1)) + 3, bool)
    known[tuple((cells[~hole] + 1).T)] = True
    for axis in range(3):  # and the cells beside them
        known = known | np.roll(known, 1, axis) | np.roll(known, -1, axis)
    inside = known[tuple((cells[hole] + 1).T)]
    return float(1 - inside.mean()) if len(inside) else 0.0


def measure_appearance(salience: Floats, hole: Flags) -> float:
    """The share of the hole that a network takes for an object: things that lie in it, or more of them than around it.

    A salient thing that reaches far into the hole from outside, such as a fence, was there before.
    """
    height, width = salience.shape
    inside = np.asarray(cv2.resize(hole.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST)) > 0
    if inside.all() or not inside.any():
        return 0.0
    salient = salience > SALIENT
    count, labels = cv2.connectedComponents(salient.astype(np.uint8))
    areas = np.bincount(labels.ravel(), minlength=count).astype(float)
    # With a band around the hole: what is left of an object beside it is no less a fault.
    near = distance_to(inside) <= BESIDE * min(inside.shape)
    areas_inside = np.bincount(labels[near], minlength=count).astype(float)
    new = areas_inside[1:][areas_inside[1:] > MOSTLY * areas[1:]].sum() / np.count_nonzero(inside)
    excess = float(salient[inside].mean()) - float(salient[~inside].mean()) - USUAL_EXCESS
    return max(0.0, float(new), excess)


def measure_disagreement(first: Bytes, second: Bytes, hole: Flags) -> float:
    """The difference of two fills where they differ most (95 % differ less), in CIE Lab, after blurring."""
    planes = []
    for image in (first, second):
        small, inside = _reduce(image, hole)
        lab = cv2.cvtColor(np.asarray(small, np.float32) / 255, cv2.COLOR_RGB2LAB)
        planes.append(cv2.GaussianBlur(lab, (0, 0), BLUR * min(inside.shape)))
    differences = np.linalg.norm(planes[0] - planes[1], axis=2)[inside]
    return float(np.percentile(differences, 95)) if len(differences) else 0.0


def measure_strangeness(judged: FilledHole) -> float:
    """How far the hole's patches are from the nearest patch outside, relative to those of patches around the hole."""
    hole = _split_hole(judged)
    if hole is None:
        return USUAL.strangeness
    usual = judged.usual if judged.usual is not None else []
    if not usual:
        usual.append(_measure_nearest(hole, hole.around))
    return _measure_nearest(hole, hole.targets) / (usual[0] + 1)


class _SplitHole(NamedTuple):
    """The patches of a small copy of a picture, and which are compared with which."""

    patches: Floats
    library: _Library
    targets: NDArray[np.intp]  # in the hole
    around: NDArray[np.intp]


def _split_hole(judged: FilledHole) -> _SplitHole | None:
    """The patches of a picture and its hole; None where too few lie in it, around it or outside."""
    patches, inside = _split_patches(judged.image, judged.hole)
    taken = inside
    if judged.ignore is not None:
        taken = np.maximum(inside, _split_patches(judged.image, judged.ignore)[1])
    sources = np.flatnonzero(taken.max(axis=(2, 3)).ravel() < 0.05)
    share = inside.mean(axis=(2, 3))
    targets = _spread(np.flatnonzero(share.ravel() >= 0.3), STRANGE_SAMPLES)
    away = distance_to(share >= 0.01).ravel()
    around = _spread(sources[away[sources] < REACH * STRANGE_SIDE], STRANGE_SAMPLES // 2)
    if min(len(sources), len(targets), len(around)) < STRANGE_SAMPLES // 16:
        return None
    return _SplitHole(patches, _Library.of(patches, sources, inside.shape[1]), targets, around)


class _Library(NamedTuple):
    """The patches that others are compared with."""

    patches: Floats
    squares: Floats  # their sums
    number_at: NDArray[np.intp]  # of the patch at each place, or -1

    @classmethod
    def of(cls, patches: Floats, sources: NDArray[np.intp], columns: int) -> _Library:
        """The patches at these places."""
        library = patches.take(sources, axis=0)
        number_at = np.full((len(patches) // columns, columns), -1, np.intp)
        number_at.ravel()[sources] = np.arange(len(sources))
        return cls(library, (library * library).sum(axis=1), number_at)


def _split_patches(image: Bytes, hole: Flags) -> tuple[Floats, Floats]:
    """All patches of a small copy, one per row, and the share of the hole in each of their pixels."""
    height, width = hole.shape
    scale = STRANGE_SIDE / (height * width) ** 0.5
    size = (max(STRANGE_PATCH, round(width * scale)), max(STRANGE_PATCH, round(height * scale)))
    small = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.float32) / 255
    share = np.asarray(cv2.resize(hole.astype(np.float32), size, interpolation=cv2.INTER_AREA))
    window = (STRANGE_PATCH, STRANGE_PATCH)
    lab = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2LAB), np.float32)
    patches = np.lib.stride_tricks.sliding_window_view(lab, window, axis=(0, 1)).reshape(-1, 3 * STRANGE_PATCH**2)
    return patches, np.lib.stride_tricks.sliding_window_view(share, window)


def _measure_nearest(hole: _SplitHole, wanted: NDArray[np.intp]) -> float:
    """The mean distance of the wanted patches to the nearest of the library that does not overlap it, per pixel."""
    own, library = hole.patches[wanted], hole.library
    columns = library.number_at.shape[1]
    products = (2 * own) @ library.patches.T
    errors, nearest = np.empty_like(library.squares), np.empty(len(wanted), np.float32)
    for row, place in enumerate(wanted):  # one row at a time, which stays in the processor's cache
        np.subtract(library.squares, products[row], out=errors)
        down, across = divmod(int(place), columns)
        beside = library.number_at[
            max(0, down - STRANGE_PATCH + 1) : down + STRANGE_PATCH,
            max(0, across - STRANGE_PATCH + 1) : across + STRANGE_PATCH,
        ]
        errors[beside[beside >= 0]] = np.inf
        nearest[row] = errors.min()
    nearest = np.maximum(nearest + (own * own).sum(axis=1), 0)
    return float(np.sqrt(nearest[np.isfinite(nearest)] / STRANGE_PATCH**2, dtype=np.float64).mean())


def _spread(places: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """At most `count` of the places, evenly spread."""
    return places[np.linspace(0, len(places) - 1, min(count, len(places))).astype(np.intp)] if len(places) else places
