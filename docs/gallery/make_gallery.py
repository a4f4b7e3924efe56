"""Make the gallery again (`make gallery`): every edit on four freely licensed photos.

With names of edits as arguments only their pictures are made again; the page is always written.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.assets.cache import fetch_asset
from counterfoil.edits.edit_protocol import Edit
from counterfoil.edits.matting import estimate_alpha
from counterfoil.edits.registry import EDITS, edit_named
from counterfoil.errors import Unusable
from counterfoil.sources.pixels import read_photo
from counterfoil.types import Picture

HERE = Path(__file__).parent
PHOTOS = ("chelsea.png", "coffee.png", "rocket.jpg", "astronaut.png")
SIDE = 256  # shorter side at which the photos are edited
ROW = 200  # height of a row of the sheet
GAP = 6
LEVELS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "background-blur": ({}, {"kernel": 41, "sigma": 10}),
    "size": ({"rate": "full"}, {"rate": 0.1}, {"rate": 0.05}),
    "background-swap": ({}, {"donors": "same"}),
    "background-texture": ({"texture": "brick"}, {"texture": "grass"}),
    "background-hue": ({"hue": "red"}, {"hue": "green"}, {"hue": "blue"}),
    "background-complexity": ({"factor": 0.5}, {"factor": 2.0}),
    "object-box": ({"fill": "black"}, {"fill": "tiled"}),
    "direction": ({}, {"angle": 90}),
    "flip": ({"axis": "left-right"}, {"axis": "upside-down"}),
    "tilt": ({"yaw": 50}, {"yaw": -35, "pitch": 40}),
    "texture": ({"texture": "striped"}, {"texture": "brick"}, {"texture": "marbled"}),
    "material": tuple({"material": name} for name in ("wood", "metal", "glass", "fabric", "stone")),
    "shadow": ({"shadow": "on"}, {"shadow": "off"}),
    "occlusion": ({"share": 0.25}, {"share": 0.5}),
    "object-motion": ({"length": 0.05}, {"length": 0.15}),
    "text": tuple({"word": "given", "text": "teapot", "place": place} for place in ("on", "beside")),
    "second-object": ({"place": "beside", "size": 0.25}, {"place": "behind"}),
    "exposure": ({"stops": -2}, {"stops": 2}),
    "white-balance": ({"kelvin": 3000}, {"kelvin": 12000}),
    "occlusion-object": ({"share": 0.2}, {"share": 0.4}),
    "segmented": ({"ground": "black"}, {"ground": "white"}),
    "edges": ({"ground": "white"}, {"ground": "photo"}),
    "position": ({}, {"rate": 0.05}),
    "scene-size": ({"rate": 0.1}, {"rate": 0.05}),
    "painted-complexity": ({"guidance": -20}, {"guidance": 0}, {"guidance": 20}),
}


def photos() -> list[Picture]:
    """The four photos with our masks, at the gallery's size."""
    folder = fetch_asset("photos-scikit-image")
    data = resources.files("counterfoil.assets").joinpath("masks.zip").read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        masks = [Image.open(io.BytesIO(archive.read(f"{Path(name).stem}.png"))) for name in PHOTOS]
        return [_small(read_photo(folder / name), np.array(mask)) for name, mask in zip(PHOTOS, masks, strict=True)]


def _small(image: NDArray[np.uint8], mask: NDArray[np.uint8]) -> Picture:
    scale = SIDE / min(mask.shape)
    size = (round(mask.shape[1] * scale), round(mask.shape[0] * scale))
    small, alpha = (
        np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.uint8) for plane in (image, mask)
    )
    return Picture(small, estimate_alpha(small, alpha))


def _cell(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The picture at the height of a row."""
    width = round(image.shape[1] * ROW / image.shape[0])
    return np.asarray(cv2.resize(image, (width, ROW), interpolation=cv2.INTER_AREA), np.uint8)


def _edited(edit: Edit, pictures: Sequence[Picture]) -> list[NDArray[np.uint8]]:
    row = []
    for i, picture in enumerate(pictures):
        made = Picture(np.full_like(picture.image, 230), picture.alpha)
        chosen = edit.choose(i) if edit.needs.scene else edit
        for step in (2, 1, 3):  # the first donor that suits the edit
            try:
                made = chosen(picture, np.random.default_rng(i + 1), pictures[(i + step) % len(pictures)])
            except Unusable:
                continue
            break
        row.append(made.image)
    return row


def sheet(rows: Sequence[Sequence[NDArray[np.uint8]]]) -> Image.Image:
    """The rows one below the other."""
    gap = np.full((ROW, GAP, 3), 255, np.uint8)
    lines = [np.hstack([part for image in row for part in (_cell(image), gap)][:-1]) for row in rows]
    widest = max(line.shape[1] for line in lines)
    lines = [np.pad(line, ((0, 0), (0, widest - line.shape[1]), (0, 0)), constant_values=255) for line in lines]
    between = np.full((GAP, widest, 3), 255, np.uint8)
    return Image.fromarray(np.vstack([part for line in lines for part in (line, between)][:-1]))


def main() -> None:
    """Write one JPEG per edit and the page that shows them."""
    pictures, wanted = photos(), sys.argv[1:] or list(EDITS)
    page = [
        "# Gallery",
        "",
        "Every edit on four photos of scikit-image (CC0 or public domain). The top row is the photo.",
        "",
    ]
    page += ["Made by `make gallery`.", ""]
    for name, kind in EDITS.items():
        # the folder is the reader's; scikit-image's textures stand for it
        folder = {"folder": str(fetch_asset("textures-scikit-image"))} if name == "background-folder" else {}
        edits = [edit_named(name, {**settings, **folder}) for settings in LEVELS.get(name, ({},))]
        if name in wanted:
            rows = [[picture.image for picture in pictures], *(_edited(edit, pictures) for edit in edits)]
            sheet(rows).save(HERE / f"{name}.jpg", quality=80, optimize=True)
        levels = ", ".join(edit.level for edit in edits)
        page += [f"## {name}", "", f"{(kind.__doc__ or '').splitlines()[0]} Levels shown: {levels}.", ""]
        page += [f"![{name}]({name}.jpg)", ""]
    (HERE / "README.md").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
