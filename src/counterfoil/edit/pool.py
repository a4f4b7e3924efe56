"""Textures to choose from: drawn ones, three photographed ones, or the pictures in a user's folder."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from counterfoil.edit.patterns import PATTERNS, drawn_colours, pattern
from counterfoil.embedded.fetch import asset
from counterfoil.errors import UserError

PHOTOGRAPHED: Mapping[str, tuple[float, float, float]] = {  # scikit-image's grey photos, and the colour they get
    "brick": (1.05, 0.72, 0.6),
    "grass": (0.72, 1.0, 0.5),
    "gravel": (1.0, 0.96, 0.9),
}
RANDOM = "random"
SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
LARGEST = 1024  # pixels along the longer side that a user's texture keeps

Bytes = NDArray[np.uint8]


class Swatch(NamedTuple):
    """A piece of texture."""

    image: Bytes  # (height, width, 3), RGB
    seamless: bool  # whether its edges fit together; if not, it is mirrored where it ends


def check_texture(name: str, folder: str | None) -> None:
    """Refuse a texture that the pool does not hold."""
    known = textures(folder)
    if name != RANDOM and name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or list(known)[:5]
        where = "the pool" if folder is None else f"the folder {folder}"
        raise UserError(f"texture: {where} holds no {name!r}; did you mean {' or '.join(near)}?")


def textures(folder: str | None) -> tuple[str, ...]:
    """The names in the pool, or the stems of the pictures in a folder."""
    return (*PATTERNS, *PHOTOGRAPHED) if folder is None else tuple(_files(folder))


def swatch(name: str, folder: str | None, rng: np.random.Generator) -> Swatch:
    """The texture of this name, or one at random; drawn ones get two colours at random."""
    if name == RANDOM:
        # At random no photographed one is taken: those have to be fetched first.
        names = sorted(PATTERNS) if folder is None else sorted(_files(folder))
        name = names[rng.integers(len(names))]
    if folder is not None:
        return Swatch(_read(_files(folder)[name]), seamless=False)
    if name in PHOTOGRAPHED:
        return Swatch(_photographed(name), seamless=False)
    dark, light = drawn_colours(rng)
    colours = dark + np.arange(256, dtype=np.float32)[:, None] / 255 * (light - dark)
    return Swatch(np.asarray(cv2.LUT(_tones(name), np.rint(colours).astype(np.uint8)[None]), np.uint8), seamless=True)


@lru_cache(maxsize=len(PATTERNS))
def _tones(name: str) -> Bytes:
    """A drawn pattern in greys, (512, 512, 3)."""
    return np.asarray(cv2.cvtColor(np.rint(pattern(name) * 255).astype(np.uint8), cv2.COLOR_GRAY2RGB), np.uint8)


def _files(folder: str) -> dict[str, Path]:
    """The pictures of a folder by their stems, sorted."""
    path = Path(folder)
    if not path.is_dir():
        raise UserError(f"folder: expected a folder of textures, got {folder}, which is none")
    found = {file.stem: file for file in sorted(path.iterdir()) if file.suffix.lower() in SUFFIXES}
    if not found:
        raise UserError(f"folder: expected pictures ({', '.join(SUFFIXES)}) in {folder}, found none")
    return found


@lru_cache(maxsize=16)
def _read(file: Path) -> Bytes:
    try:
        with Image.open(file) as opened:
            opened.thumbnail((LARGEST, LARGEST))
            return np.asarray(opened.convert("RGB"), np.uint8)
    except (OSError, UnidentifiedImageError) as error:
        raise UserError(f"folder: {file} cannot be read as a picture: {error}") from error


@lru_cache(maxsize=len(PHOTOGRAPHED))
def _photographed(name: str) -> Bytes:
    gray = _read(asset("textures-scikit-image") / f"{name}.png").astype(np.float32)
    return np.clip(np.rint(gray * np.array(PHOTOGRAPHED[name], np.float32)), 0, 255).astype(np.uint8)


def laid(piece: Swatch, places: NDArray[np.float32], width: float) -> Bytes:
    """The texture at places (..., 2) given in pixels, one swatch `width` pixels wide."""
    wide = max(4, round(width))
    tall = max(4, round(piece.image.shape[0] * wide / piece.image.shape[1]))
    # Brought to its size first, where shrinking averages: sampling a fine texture sparsely would alias.
    method = cv2.INTER_AREA if wide < piece.image.shape[1] else cv2.INTER_LINEAR
    sized = cv2.resize(piece.image, (wide, tall), interpolation=method)
    border = cv2.BORDER_WRAP if piece.seamless else cv2.BORDER_REFLECT
    return np.asarray(looked_up(np.asarray(sized, np.uint8), places, border), np.uint8)


def looked_up(plane: NDArray[Any], places: NDArray[np.float32], border: int) -> NDArray[Any]:
    """The plane's values at places (..., 2), across and down, in pixels."""
    across, down = (np.ascontiguousarray(places[..., axis]) for axis in (0, 1))
    return np.asarray(cv2.remap(plane, across, down, cv2.INTER_LINEAR, borderMode=border))
