"""Make the picture of docs/paint.md about sizes again: what larger photos look like painted in three ways, at 100 %."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
from make_gallery import sheet
from numpy.typing import NDArray
from PIL import Image

from counterfoil.assets.cache import fetch_asset
from counterfoil.edits.cutout import background_of, cutout, on_background
from counterfoil.edits.painted import SURELY_OBJECT, PaintedComplexity
from counterfoil.painters.background_model import load_background_model
from counterfoil.painters.guidance import complexity_guide, fourier_complexity
from counterfoil.painters.sampler import Array, Scene, ratios, sample_background
from counterfoil.sources.pixels import read_photo
from counterfoil.types import Picture

HERE = Path(__file__).parent
SHOWN = (("coffee.png", 0.0), ("coffee.png", 20.0), ("rocket.jpg", 0.0))  # photo, guidance
CORNERS = {"coffee.png": (390, 20), "rocket.jpg": (20, 200)}  # of what is shown, across and down
CUT = 200  # pixels of what is shown
TILE, OVERLAP, PATCH = 256, 64, 32
STRENGTH, STEPS, SEED = 0.3, 10, 1


def main() -> None:
    """One row per photo and guidance: original, painted at 256 px and enlarged, in tiles, at the photo's own size."""
    rows = []
    for name, guidance in SHOWN:
        picture = _photo(name)
        enlarged, own_size = (_edited(picture, guidance, size) for size in (256, 512))
        ways = [picture.image, enlarged, _in_tiles(picture, guidance), own_size]
        left, top = CORNERS[name]
        rows.append([way[top : top + CUT, left : left + CUT] for way in ways])
    sheet(rows).save(HERE / "paint-sizes.jpg", quality=88, optimize=True)


def _photo(name: str) -> Picture:
    data = resources.files("counterfoil.assets").joinpath("masks.zip").read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        mask = Image.open(io.BytesIO(archive.read(f"{Path(name).stem}.png")))
        return Picture(read_photo(fetch_asset("photos-scikit-image") / name), np.array(mask.convert("L")))


def _edited(picture: Picture, guidance: float, size: int) -> NDArray[np.uint8]:
    edit = PaintedComplexity(guidance, STRENGTH, STEPS, size=size)
    return edit(picture, np.random.default_rng(SEED)).image


def _in_tiles(picture: Picture, guidance: float) -> NDArray[np.uint8]:
    """The way that was tried and not taken: overlapping tiles, their predictions blended at every step."""
    cut = cutout(picture)
    background, colours = (_planes(np.asarray(plane) / 127.5 - 1) for plane in (background_of(picture), cut.image))
    known = _planes((cut.alpha >= SURELY_OBJECT)[..., None])
    noise = np.random.default_rng(SEED).standard_normal(background.shape, np.float32)
    before = fourier_complexity(known * colours + (1 - known) * background)
    scene, guide = Scene(background, colours, known, noise), complexity_guide(guidance, STRENGTH, before)
    height, width = cut.alpha.shape
    made = sample_background(_tiled, scene, ratios(STRENGTH, STEPS), guide)[0, :, :height, :width].transpose(1, 2, 0)
    return on_background(picture, np.clip(np.rint((made + 1) * 127.5), 0, 255).astype(np.uint8)).image


def _planes(plane: NDArray[np.generic]) -> NDArray[np.float32]:
    height, width = plane.shape[:2]
    larger = np.pad(plane.astype(np.float32), ((0, -height % PATCH), (0, -width % PATCH), (0, 0)), "symmetric")
    return np.ascontiguousarray(larger.transpose(2, 0, 1)[None])


def _tiled(planes: Array, ratio: float) -> Array:
    total, weights = np.zeros_like(planes[:, :3]), np.zeros(planes.shape[-2:], np.float32)
    ramp = np.minimum(1, (np.arange(TILE, dtype=np.float32) + 0.5) / OVERLAP)
    window = np.outer(*[np.minimum(ramp, ramp[::-1])] * 2)
    for rows in _places(planes.shape[-2]):
        for columns in _places(planes.shape[-1]):
            tile = load_background_model()(np.ascontiguousarray(planes[..., rows, columns]), ratio)
            total[..., rows, columns] += tile * window
            weights[rows, columns] += window
    return total / weights


def _places(length: int) -> Iterator[slice]:
    count = -(-(length - OVERLAP) // (TILE - OVERLAP))
    for start in np.rint(np.linspace(0, length - TILE, count) / 4).astype(int) * 4:
        yield slice(start, start + TILE)


if __name__ == "__main__":
    main()
