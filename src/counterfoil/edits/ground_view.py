"""Ground seen at a known slant, with nothing on it: grass, gravel, sand, earth and asphalt.

Two small photos of grass and gravel, seen from above, are continued to a large plane by image quilting (Efros and
Freeman, 2001): patches that fit their neighbours, cut where both look alike. A camera looks down on the plane. Every
view shows another part of it, from another height and at another angle, in other colours.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.assets.cache import fetch_asset
from counterfoil.assets.derived_file import keep_derived
from counterfoil.edits.seeds import seed_from
from counterfoil.errors import UserError

VERSION = 1  # of the planes that are kept in the cache
SHIPPED = "textures-scikit-image"  # photos of 512 x 512 in grey levels
PLANE = 1536  # texels of a plane's side, at least
CANDIDATES = 24  # places of the photo among which the patch that fits best is looked for
UNEVEN = 0.1  # by how much patches of some size of the ground are lighter or darker
LATTICE = 14  # such patches along a side of the plane
FIELD = 36.0  # degrees that the camera sees from the upper to the lower border
FINER = 2  # rows and columns computed for one of the picture
LEVELS = 5  # of reduced copies of the plane; each is half as fine

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Colour = tuple[int, int, int]


class GroundMaterial(NamedTuple):
    """What a ground is made of: a photo, and the colours that its levels become."""

    photo: str
    reduced: float  # how much smaller the photo is used: gravel becomes sand
    patch: int  # texels of a side of a patch
    contrast: float  # of the photo's levels about their mean
    dark: Colour
    middle: Colour
    light: Colour


MATERIALS: Mapping[str, GroundMaterial] = {
    "grass": GroundMaterial("grass", 1.0, 96, 1.0, (22, 26, 10), (96, 106, 58), (226, 226, 186)),
    "gravel": GroundMaterial("gravel", 1.0, 96, 1.0, (22, 20, 18), (122, 117, 110), (248, 246, 240)),
    "sand": GroundMaterial("gravel", 2.5, 80, 0.7, (74, 58, 42), (178, 156, 124), (250, 238, 214)),
    "earth": GroundMaterial("gravel", 2.0, 84, 0.8, (34, 24, 16), (118, 94, 70), (214, 192, 164)),
    "asphalt": GroundMaterial("gravel", 3.5, 64, 0.6, (24, 24, 25), (104, 104, 106), (226, 226, 226)),
}


@dataclass(frozen=True)
class _View:
    """Where the camera is and what it sees, drawn from the number of a view."""

    down: float  # degrees from the horizontal to the middle of the picture
    across: float  # texels that the lower border shows
    corner: tuple[float, float]  # of the plane, in texels
    turned: int  # quarter turns of the plane
    gains: tuple[float, float, float]  # of red, green and blue

    @classmethod
    def draw(cls, material: str, number: int) -> _View:
        rng = np.random.default_rng(seed_from("ground", material, number))
        light, warmth = float(rng.uniform(0.85, 1.12)), float(np.clip(rng.normal(0, 0.02), -0.05, 0.05))
        return cls(
            down=float(rng.uniform(33, 41)),
            across=float(rng.uniform(420, 620)),
            corner=(float(rng.uniform(0, PLANE)), float(rng.uniform(0, PLANE))),
            turned=int(rng.integers(4)),
            gains=(light * (1 + warmth), light, light * (1 - warmth)),
        )


def can_draw_ground() -> bool:
    """Whether the photos of which grounds are made are there or can be fetched."""
    try:
        fetch_asset(SHIPPED)
    except UserError:
        return False
    return True


def draw_ground(material: str, number: int, shape: tuple[int, int]) -> Bytes:
    """A view of a ground, (height, width, 3), read-only; another number is another view."""
    view, plane = _View.draw(material, number), lay_plane(material)
    across, along, spread = _look_down(view, shape)
    levels = _sample(np.rot90(plane, view.turned), across, along, spread)
    colours = _colour_levels(MATERIALS[material], view, np.clip(np.rint(levels), 0, 255).astype(np.uint8))
    size = (shape[1], shape[0])
    image = np.asarray(cv2.resize(colours, size, interpolation=cv2.INTER_AREA), np.uint8)
    image.flags.writeable = False
    return image


def _look_down(view: _View, shape: tuple[int, int]) -> tuple[Floats, Floats, Floats]:
    """For each fine pixel its place on the plane, across and along in texels, and how many texels it spans."""
    height, width = FINER * shape[0], FINER * shape[1]
    focal = (height / 2) / math.tan(math.radians(FIELD / 2))
    sine, cosine = math.sin(math.radians(view.down)), math.cos(math.radians(view.down))
    rows = np.arange(height, dtype=np.float64)[:, None] + 0.5 - height / 2
    columns = np.arange(width, dtype=np.float64)[None] + 0.5 - width / 2
    below = rows * cosine + focal * sine  # the ray's way down by its way to the picture; the camera's height is 1
    scale = view.across * (height / 2 * cosine + focal * sine) / width  # texels in the camera's height
    away = (focal * cosine - rows * sine) / below
    across = view.corner[0] + scale * columns / below
    along = view.corner[1] - scale * np.broadcast_to(away, across.shape)
    spread = scale / below * np.sqrt(focal / below)  # the mean of both ways: a slant makes squares flat
    spread = np.broadcast_to(spread, across.shape)
    return tuple(np.ascontiguousarray(each, np.float32) for each in (across, along, spread))  # type: ignore[return-value]


def _sample(plane: Bytes, across: Floats, along: Floats, spread: Floats) -> Floats:
    """The plane, which repeats without a seam, at these places, as fine as the pixels there."""
    side = np.float32(len(plane))
    across, along = np.mod(across, side), np.mod(along, side)
    fineness = np.clip(np.log2(np.maximum(spread, 1)), 0, LEVELS - 1)
    result = np.zeros(across.shape, np.float32)
    for level in range(LEVELS):
        share = np.clip(1 - np.abs(fineness - level), 0, 1).astype(np.float32)
        if not share.any():
            continue
        blurred = plane if level == 0 else cv2.GaussianBlur(plane, (0, 0), 0.45 * 2**level)
        seen = cv2.remap(blurred, across, along, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
        result += share * np.asarray(seen, np.float32)
    return result


def _colour_levels(material: GroundMaterial, view: _View, levels: Bytes) -> Bytes:
    stops = np.array([0, 112, 255], np.float64)
    bands = zip(material.dark, material.middle, material.light, view.gains, strict=True)
    table = np.stack([np.interp(np.arange(256), stops, each[:3]) * each[3] for each in bands], axis=1)
    table = np.clip(np.rint(table), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(cv2.merge([levels] * 3), table[None]), np.uint8)


@lru_cache(maxsize=len(MATERIALS))
def lay_plane(name: str) -> Bytes:
    """The plane of a material in grey levels; half a second of work, done once for all processes of a machine."""
    recipe = (VERSION, name, MATERIALS[name], PLANE, CANDIDATES, UNEVEN, LATTICE, cv2.__version__)
    digest = hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]
    kept = keep_derived(f"grounds/{name}-{digest}.levels", lambda: _lay_plane(name).tobytes())
    levels = np.frombuffer(kept if isinstance(kept, bytes) else kept.read_bytes(), np.uint8)
    side = math.isqrt(len(levels))
    return levels.reshape(side, side)


def _lay_plane(name: str) -> Bytes:
    material = MATERIALS[name]
    with Image.open(fetch_asset(SHIPPED) / f"{material.photo}.png") as photo:
        levels = np.array(photo.convert("L"))
    side = round(levels.shape[0] / material.reduced)
    small = np.asarray(cv2.resize(levels, (side, side), interpolation=cv2.INTER_AREA), np.float32)
    even = small - cv2.GaussianBlur(small, (0, 0), side / 8)  # the photo's own light and dark parts would be repeated
    source = np.clip(np.rint(112 + material.contrast * even), 0, 255).astype(np.int32)
    rng = np.random.default_rng(seed_from("plane", name))
    laid = _quilt(source, material.patch, rng)
    knots = np.pad(rng.normal(0, 0.5, (LATTICE, LATTICE)), 2, mode="wrap")
    edge = round(2 * len(laid) / LATTICE)
    side = len(laid) + 2 * edge
    uneven = cv2.resize(knots, (side, side), interpolation=cv2.INTER_CUBIC)[edge:-edge, edge:-edge]
    return np.asarray(np.clip(np.rint(laid * (1 + UNEVEN * uneven)), 0, 255), np.uint8)


def _quilt(source: Integers, patch: int, rng: np.random.Generator) -> Integers:
    """A seamless plane of patches, each among several of the source the one that fits its neighbours best."""
    over = patch // 4
    step = patch - over
    count = math.ceil(PLANE / step)
    plane, along = np.zeros((count * step, count * step), np.int32), np.arange(patch)
    windows = np.lib.stride_tricks.sliding_window_view(source, (patch, patch))
    for row in range(count):
        for column in range(count):
            place = np.ix_((row * step + along) % len(plane), (column * step + along) % len(plane))
            there = plane[place]
            # In quarter turns: beside, above; the last patches meet the first ones on the other sides.
            sides = [turn for turn, met in enumerate((column, row, column == count - 1, row == count - 1)) if met]
            tops, lefts = rng.integers(0, np.array(source.shape) - patch + 1, (CANDIDATES, 2)).T
            cuts = windows[tops, lefts]
            misfit = sum((each.sum(axis=(1, 2), dtype=np.int64) for each in _differ(cuts, there, over, sides)), 0)
            best = cuts[np.argmin(misfit) if sides else 0]
            plane[place] = np.where(_choose_pixels(best, there, over, sides), best, there)
    return plane


def _differ(cuts: Integers, there: Integers, over: int, sides: Sequence[int]) -> Iterator[Integers]:
    """Squared differences of patches (n, rows, columns) from what is laid along each side, turned to be to the left."""
    for turn in sides:
        yield (np.rot90(cuts, turn, (1, 2))[:, :, :over] - np.rot90(there, turn)[:, :over]) ** 2


def _choose_pixels(cut: Integers, there: Integers, over: int, sides: Sequence[int]) -> Flags:
    """The pixels of a patch that are laid, beyond the paths on which it differs least from what is there."""
    chosen = np.ones(cut.shape, bool)
    for turn, (difference,) in zip(sides, _differ(cut[None], there, over, sides), strict=True):
        np.rot90(chosen, turn)[:, :over] &= _cut_along(difference)
    return chosen


def _cut_along(difference: Integers) -> Flags:
    """What lies to the right of the path from the first row to the last with the least difference."""
    cost = np.pad(difference.astype(np.int64), ((0, 0), (1, 1)), constant_values=np.iinfo(np.int64).max // 2)
    for before, row in itertools.pairwise(cost):
        row[1:-1] += np.minimum(np.minimum(before[:-2], before[1:-1]), before[2:])
    costs = cost[:, 1:-1].tolist()
    path = [costs[-1].index(min(costs[-1]))]
    for row in reversed(costs[:-1]):
        first = max(0, path[-1] - 1)
        near = row[first : path[-1] + 2]
        path.append(first + near.index(min(near)))
    return np.asarray(np.arange(difference.shape[1])[None] > np.array(path[::-1])[:, None])
