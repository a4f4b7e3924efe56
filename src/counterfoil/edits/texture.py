"""The object covered with a texture that follows its shading and form, and the textures to choose from."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from counterfoil.assets.cache import fetch_asset
from counterfoil.edits.composition import Composition, Plane
from counterfoil.edits.cutout import Window, object_window
from counterfoil.edits.edit_protocol import ComposedEdit, Supplied
from counterfoil.edits.matting import repeat_channels
from counterfoil.edits.subject import Subject
from counterfoil.edits.texture_patterns import PATTERNS, draw_colours, draw_pattern
from counterfoil.errors import UserError
from counterfoil.types import Attribute

PHOTOGRAPHED: Mapping[str, tuple[float, float, float]] = {  # scikit-image's grey photos, and their tint
    "brick": (1.05, 0.72, 0.6),
    "grass": (0.72, 1.0, 0.5),
    "gravel": (1.0, 0.96, 0.9),
}
RANDOM = "random"
SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
LARGEST = 1024  # pixels along the longer side that a user's texture keeps


class LightRange(NamedTuple):
    """How much of a change of light is kept, in logarithms."""

    spread: float  # that the object gets, where the gains allow it
    gains: tuple[float, float]
    limit: float  # of the change at any one place


FLOOR = np.float32(0.08)  # added to the light before division, so that a black object's noise is not amplified
SMOOTH = 0.06  # scale of the shading, as a share of the object's size
ROUNDNESS = 0.7  # depth of the inflated outline; 1 makes half a ball of a disc
RELIEF = 0.8  # how much of the relief comes from shading
RELIEF_DEPTH = 0.25  # of the relief by shading, as a share of the object's size
EDGE_DARKNESS = 0.55  # share of the light that is lost where the surface turns away from the viewer
WRAP = 0.3  # how far a texture is bent by the form, as a share of the object's size
INFLATION_SIDES = (12, 24, 48, 96)  # pixels of the longer side at which the outline is inflated, coarse to fine
INFLATION_ROUNDS = 60
BROAD = LightRange(0.24, (0.45, 1.6), 0.45)
FINE = LightRange(0.12, (0.3, 1.0), 0.3)
_NEIGHBOURS = np.array([[0, 0.25, 0], [0.25, 0, 0.25], [0, 0.25, 0]], np.float32)

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Texture(ComposedEdit):
    """Cover the object with a texture; its outline and shading stay, and the texture bends with its form."""

    attribute: ClassVar[Attribute] = "texture"
    version: ClassVar[int] = 3  # 3: even contrast of the shading; 2: the outline is inflated, edges are darker
    words: ClassVar[str] = "another texture on it"
    texture: str = RANDOM  # a name from the pool, or "random" for any drawn texture
    folder: str | None = None  # a folder of textures, named by their file stems
    strength: float = 1.0  # 1 keeps only the shading of the old surface, 0 keeps all of it

    def __post_init__(self) -> None:
        check_texture(self.texture, self.folder)
        if not 0 <= self.strength <= 1:
            raise UserError(f"strength: expected 0 to 1, got {self.strength:g}")

    @property
    def level(self) -> str:
        """The texture, with the strength where it is not full: "striped", "striped@0.5"."""
        return self.texture if self.strength == 1 else f"{self.texture}@{self.strength:g}"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Lay the texture on the object's surface and shade it as the object was."""
        surface = subject.once(estimate_surface)
        swatch = choose_texture(self.texture, self.folder, rng)
        painted = np.clip(tile_texture(swatch, surface.places, surface.size) * repeat_channels(surface.shading), 0, 255)
        if self.strength < 1:
            old = subject.cutout.image[surface.window]
            painted = old + (painted - old) * np.float32(self.strength)
        return subject.compose_repainted(Plane(np.rint(painted).astype(np.uint8)))


class TextureImage(NamedTuple):
    """A swatch of texture: a picture to tile with."""

    image: Bytes  # (height, width, 3), RGB
    seamless: bool  # whether it tiles without seams; if not, it is mirrored


def check_texture(name: str, folder: str | None) -> None:
    """Raises `UserError` where the pool does not hold the texture."""
    known = list_textures(folder)
    if name != RANDOM and name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or list(known)[:5]
        where = "the pool" if folder is None else f"the folder {folder}"
        raise UserError(f"texture: {where} holds no {name!r}; did you mean {' or '.join(near)}?")


def list_textures(folder: str | None) -> tuple[str, ...]:
    """The names in the pool, or the stems of the pictures in a folder."""
    return (*PATTERNS, *PHOTOGRAPHED) if folder is None else tuple(_list_files(folder))


def choose_texture(name: str, folder: str | None, rng: np.random.Generator) -> TextureImage:
    """The texture of this name, or one at random; drawn ones get two colours at random."""
    if name == RANDOM:
        # Random choice leaves out photographs, which would have to be fetched.
        names = sorted(PATTERNS) if folder is None else sorted(_list_files(folder))
        name = names[rng.integers(len(names))]
    if folder is not None:
        return TextureImage(_read(_list_files(folder)[name]), seamless=False)
    if name in PHOTOGRAPHED:
        return TextureImage(_read_photographed(name), seamless=False)
    dark, light = draw_colours(rng)
    colours = dark + np.arange(256, dtype=np.float32)[:, None] / 255 * (light - dark)
    return TextureImage(
        np.asarray(cv2.LUT(_draw_tones(name), np.rint(colours).astype(np.uint8)[None]), np.uint8), seamless=True
    )


@lru_cache(maxsize=len(PATTERNS))
def _draw_tones(name: str) -> Bytes:
    """A drawn pattern in greys, (512, 512, 3)."""
    return np.asarray(cv2.cvtColor(np.rint(draw_pattern(name) * 255).astype(np.uint8), cv2.COLOR_GRAY2RGB), np.uint8)


def _list_files(folder: str) -> dict[str, Path]:
    """The pictures of a folder by their stems, sorted."""
    path = Path(folder)
    if not path.is_dir():
        raise UserError(f"folder: expected a folder of textures, got {folder}, which is none")
    files = {file.stem: file for file in sorted(path.iterdir()) if file.suffix.lower() in SUFFIXES}
    if not files:
        raise UserError(f"folder: expected pictures ({', '.join(SUFFIXES)}) in {folder}, found none")
    return files


@lru_cache(maxsize=16)
def _read(file: Path) -> Bytes:
    try:
        with Image.open(file) as opened:
            opened.thumbnail((LARGEST, LARGEST))
            return np.asarray(opened.convert("RGB"), np.uint8)
    except (OSError, UnidentifiedImageError) as error:
        raise UserError(f"folder: {file} cannot be read as a picture: {error}") from error


@lru_cache(maxsize=len(PHOTOGRAPHED))
def _read_photographed(name: str) -> Bytes:
    gray = _read(fetch_asset("textures-scikit-image") / f"{name}.png").astype(np.float32)
    return np.clip(np.rint(gray * np.array(PHOTOGRAPHED[name], np.float32)), 0, 255).astype(np.uint8)


def tile_texture(swatch: TextureImage, places: NDArray[np.float32], width: float) -> Bytes:
    """The texture at places (..., 2) given in pixels, one swatch `width` pixels wide."""
    wide = max(4, round(width))
    tall = max(4, round(swatch.image.shape[0] * wide / swatch.image.shape[1]))
    # Resized first, which averages: sampling a fine texture sparsely would alias.
    method = cv2.INTER_AREA if wide < swatch.image.shape[1] else cv2.INTER_LINEAR
    sized = cv2.resize(swatch.image, (wide, tall), interpolation=method)
    border = cv2.BORDER_WRAP if swatch.seamless else cv2.BORDER_REFLECT
    return np.asarray(sample_plane(np.asarray(sized, np.uint8), places, border), np.uint8)


def sample_plane(plane: NDArray[Any], places: NDArray[np.float32], border: int) -> NDArray[Any]:
    """The plane's values at places (..., 2), across and down, in pixels."""
    across, down = (np.ascontiguousarray(places[..., axis]) for axis in (0, 1))
    return np.asarray(cv2.remap(plane, across, down, cv2.INTER_LINEAR, borderMode=border))


class Surface(NamedTuple):
    """Planes over the object's window; read-only, since several edits share them."""

    window: Window
    size: float  # side of a square as large as the object, in pixels
    light: Floats  # (height, width), 0..1, as photographed
    shading: Floats  # (height, width), 1 where the object has its mean lightness
    facing: Floats  # (height, width, 2), turn of the surface right and down: below 1, 0 towards the viewer
    places: Floats  # (height, width, 2), across and down on the surface laid flat, in pixels


def estimate_surface(subject: Subject) -> Surface:
    """The object's form; edits call it through `subject.once`, so that it is computed once."""
    cut = subject.cutout
    window = object_window(cut.alpha)
    share = cut.alpha[window] / np.float32(255)
    size = float(share.sum()) ** 0.5
    light = np.asarray(cv2.cvtColor(cut.image[window], cv2.COLOR_RGB2GRAY), np.float32) / np.float32(255)
    usual = float((light * share).sum() / share.sum())
    smooth = _inside_mean(light, share, max(1.0, SMOOTH * size))
    # Broad changes of light are form; fine ones are mostly paint or fur, of which a little is kept.
    broad = np.log((smooth + FLOOR) / np.float32(usual + FLOOR))
    fine = np.log((light + FLOOR) / (smooth + FLOOR))
    facing = _estimate_facing(share, smooth, size)
    shading = np.exp(_even_out(broad, share, BROAD) + _even_out(fine, share, FINE)) * _shade_rounding(facing)
    planes = (light, shading.astype(np.float32), facing, _unroll_places(facing, size))
    for plane in planes:
        plane.flags.writeable = False
    return Surface(window, size, *planes)


def _even_out(change: Floats, share: Floats, kept: LightRange) -> Floats:
    """A change of light (logarithm) with about the same contrast in every object.

    Spots and markings, which are paint, are weakened, and the form of black or white objects is brought out.
    """
    spread = float(np.sqrt((change**2 * share).sum() / share.sum()))
    gain = float(np.clip(kept.spread / max(spread, 1e-6), *kept.gains))
    limit = np.float32(kept.limit)
    return np.asarray(limit * np.tanh(change * np.float32(gain) / limit), np.float32)


def _blur(plane: Floats, sigma: float) -> Floats:
    """A Gaussian blur of any width, computed at the cost of a narrow one."""
    step = max(1, int(sigma / 3))
    height, width = plane.shape
    if step == 1:
        return np.asarray(cv2.GaussianBlur(plane, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE), np.float32)
    small = cv2.resize(plane, (-(-width // step), -(-height // step)), interpolation=cv2.INTER_AREA)
    small = cv2.GaussianBlur(small, (0, 0), sigma / step, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC), np.float32)


def _inside_mean(plane: Floats, share: Floats, sigma: float) -> Floats:
    """The local mean over the object only."""
    weight = _blur(share, sigma)
    return np.asarray(_blur(plane * share, sigma) / np.maximum(weight, np.float32(1e-3)), np.float32)


def _estimate_facing(share: Floats, smooth: Floats, size: float) -> Floats:
    """The surface's direction: the outline inflated, with the shading as relief (lit from above)."""
    relief = _blur(smooth, max(1.0, 0.03 * size)) * np.float32(RELIEF_DEPTH * size)
    inflated = _inflate(share)
    slopes = [
        np.float32(ROUNDNESS) * inflated[..., 1 - axis] - np.float32(RELIEF) * _slope(relief, axis) for axis in (1, 0)
    ]
    steepness = np.sqrt(1 + slopes[0] ** 2 + slopes[1] ** 2)
    return np.dstack([slope / steepness for slope in slopes]).astype(np.float32)


def _inflate(share: Floats) -> Floats:
    """How steeply the outline, inflated like a balloon, falls to the right and downwards, (height, width, 2).

    The height is 2 sqrt(h) where h has the Laplacian -1 inside and is 0 outside: a half ball over a disc.
    """
    height, width = share.shape
    h = np.zeros((1, 1), np.float32)
    for side in INFLATION_SIDES:
        scale = min(1.0, side / max(height, width))
        size = (max(2, round(width * scale)), max(2, round(height * scale)))
        inside = np.asarray(cv2.resize(share, size, interpolation=cv2.INTER_AREA)) > 0.5
        # Where the photo's border cuts the object, the surface goes on; elsewhere it ends.
        mask = np.pad(inside, 1, mode="edge").astype(np.float32)
        for line, edge in (
            (mask[0], share[0]),
            (mask[-1], share[-1]),
            (mask[:, 0], share[:, 0]),
            (mask[:, -1], share[:, -1]),
        ):
            line[:] = line if (edge > 0.5).any() else 0
        growth = (mask.shape[0] / h.shape[0]) ** 2
        h = np.asarray(cv2.resize(h, mask.shape[::-1], interpolation=cv2.INTER_LINEAR), np.float32) * np.float32(growth)
        for _ in range(INFLATION_ROUNDS):
            h = (cv2.filter2D(h, -1, _NEIGHBOURS, borderType=cv2.BORDER_REPLICATE) + np.float32(0.25)) * mask
    h = _blur(np.asarray(h, np.float32), 1.0)
    root = np.sqrt(np.maximum(h, np.float32(0.3)))
    slopes = np.dstack([-_slope(h, axis) / root for axis in (1, 0)])[1:-1, 1:-1]
    return np.asarray(
        cv2.resize(np.ascontiguousarray(slopes), (width, height), interpolation=cv2.INTER_CUBIC), np.float32
    )


def _shade_rounding(facing: Floats) -> Floats:
    """The shading factor: less light where the surface turns away, more where it faces the sky."""
    away = np.clip((facing**2).sum(axis=2), 0, 1)
    return np.asarray(1.12 - EDGE_DARKNESS * away - 0.12 * facing[..., 1], np.float32)


def _slope(plane: Floats, axis: int) -> Floats:
    """The change from pixel to pixel, down (0) or across (1)."""
    kernel = (1, 0) if axis == 1 else (0, 1)
    return np.asarray(cv2.Sobel(plane, cv2.CV_32F, *kernel, ksize=3, scale=1 / 8, borderType=cv2.BORDER_REPLICATE))


def _unroll_places(facing: Floats, size: float) -> Floats:
    """The place of each pixel on the flattened surface; a texture is compressed where the surface turns away."""
    height, width = facing.shape[:2]
    down, across = np.mgrid[:height, :width].astype(np.float32)
    return np.asarray(
        np.dstack([across, down]) + np.arcsin(np.clip(facing, -0.98, 0.98)) * np.float32(WRAP * size), np.float32
    )
