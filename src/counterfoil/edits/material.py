"""The object made of another material: wood, metal, glass, fabric or stone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, Plane
from counterfoil.edits.edit_protocol import ComposedEdit, Supplied
from counterfoil.edits.matting import repeat_channels
from counterfoil.edits.subject import Subject
from counterfoil.edits.texture import Surface, TextureImage, estimate_surface, sample_plane, tile_texture
from counterfoil.edits.texture_patterns import SIDE, draw_pattern, fractal, grid, noise, stretch
from counterfoil.types import Attribute

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Name = Literal["wood", "metal", "glass", "fabric", "stone"]
METALS = ((0.9, 0.97, 1.06), (1.08, 0.9, 0.55), (1.08, 0.76, 0.62))  # steel, brass, copper
BRIGHT = np.float32(150)  # levels above which reflections in metal are compressed
ROOM = 255 - BRIGHT
DYES = ((150, 45, 50), (45, 75, 140), (60, 110, 70), (170, 130, 60), (110, 70, 120), (190, 185, 175))


@dataclass(frozen=True)
class Material(ComposedEdit):
    """Make the object of wood, metal, glass, fabric or stone; its outline stays, and so does its shading."""

    attribute: ClassVar[Attribute] = "material"
    version: ClassVar[int] = 3  # 3: even contrast of the shading; 2: the outline is inflated, edges are darker
    material: Name = "metal"

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        return f"the object made of {level}" if level else "another material"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Paint the object in that material."""
        colours = MATERIALS[self.material](subject, subject.once(estimate_surface), rng)
        return subject.compose_repainted(Plane(np.rint(np.clip(colours, 0, 255)).astype(np.uint8)))


def _paint_wood(subject: Subject, surface: Surface, rng: np.random.Generator) -> Floats:
    return _shade(_tile(_draw_wood(), 1.2, surface, rng), surface, 1.0)


def _paint_stone(subject: Subject, surface: Surface, rng: np.random.Generator) -> Floats:
    return _shade(_tile(_draw_stone(), 0.9, surface, rng), surface, 1.0)


def _paint_fabric(subject: Subject, surface: Surface, rng: np.random.Generator) -> Floats:
    dye = np.array(DYES[rng.integers(len(DYES))], np.float32)
    weave = _tile(_draw_cloth(), 0.6, surface, rng) / np.float32(255)
    return _shade(weave * dye * np.float32(1.35), surface, 0.9)


def _paint_metal(subject: Subject, surface: Surface, rng: np.random.Generator) -> Floats:
    """Polished metal, which reflects a bright sky and a dark ground."""
    tint = np.array(METALS[rng.integers(len(METALS))], np.float32)
    shading = np.clip(surface.shading, 0.4, 1.5)
    polished = _reflect(surface) * shading
    glint = np.clip(shading - 1.15, 0, 0.4) * 220  # light places become highlights
    lit = repeat_channels(polished) * tint + repeat_channels(glint.astype(np.float32))
    # Bright reflections near white by degrees, so that light objects keep their form.
    return np.where(lit > BRIGHT, BRIGHT + ROOM * np.tanh((lit - BRIGHT) / ROOM), lit).astype(np.float32)


def _paint_glass(subject: Subject, surface: Surface, rng: np.random.Generator) -> Floats:
    """Clear glass: refracts the background, darkens towards its rim and has highlights."""
    behind = subject.background
    rows, columns = surface.window
    height, width = surface.light.shape
    down, across = np.mgrid[rows.start : rows.start + height, columns.start : columns.start + width].astype(np.float32)
    bent = np.dstack([across, down]) - surface.facing * np.float32(0.35 * surface.size)
    through = sample_plane(behind, bent, cv2.BORDER_REFLECT)
    away = np.clip((surface.facing**2).sum(axis=2), 0, 1)
    clear = 0.92 - 0.5 * away**2
    gloss = np.clip((_reflect(surface) - 150) / 105, 0, 1) ** 2 * (0.25 + 0.75 * away)
    own = np.clip((surface.shading - 1) * 60, -45, 45)  # the old shading as thickness, so that features stay visible
    tinted = through * repeat_channels(clear.astype(np.float32)) * np.array((0.93, 1.0, 0.98), np.float32)
    return np.asarray(tinted + repeat_channels((own + 200 * gloss).astype(np.float32)), np.float32)


MATERIALS: Mapping[str, Callable[[Subject, Surface, np.random.Generator], Floats]] = {
    "wood": _paint_wood,
    "metal": _paint_metal,
    "glass": _paint_glass,
    "fabric": _paint_fabric,
    "stone": _paint_stone,
}


def _shade(colours: Bytes | Floats, surface: Surface, strength: float) -> Floats:
    return np.asarray(colours * repeat_channels(surface.shading ** np.float32(strength)), np.float32)


def _tile(swatch: Bytes, width: float, surface: Surface, rng: np.random.Generator) -> Bytes:
    """The swatch tiled over the surface from a random offset; its width is a multiple of the object's size."""
    places = surface.places + rng.uniform(0, surface.size, 2).astype(np.float32)
    return tile_texture(TextureImage(swatch, seamless=True), places, width * surface.size)


def _reflect(surface: Surface) -> Floats:
    """The reflection in a mirror of the object's form, 0..255."""
    # The photo's shading counts as relief too, so that features stay visible in the reflection.
    ends = (surface.facing * np.float32(0.98) + 1) * np.float32((SIDE - 1) / 2)
    lift = np.clip(surface.shading - 1, -0.5, 0.5) * np.float32(-0.3 * SIDE)
    ends = np.dstack([ends[..., 0], ends[..., 1] + lift])
    return np.asarray(sample_plane(_draw_surroundings(), ends, cv2.BORDER_REPLICATE), np.float32)


@lru_cache(maxsize=1)
def _draw_surroundings() -> Floats:
    """The surroundings as seen in a mirror ball: sky above, a dark horizon, ground below, two windows."""
    across, down = (2 * plane - 1 for plane in grid())
    bent = down + 0.15 * np.sin(3 * across)
    room = 150 - 85 * np.tanh(bent / 0.28) + 75 * np.clip(bent, 0, 1) ** 0.8
    room -= 50 * np.exp(-((bent - 0.2) ** 2) / 0.025)
    for x, y, wide in ((-0.5, -0.5, 0.2), (0.55, -0.3, 0.13), (0.35, 0.7, 0.16)):
        room += 110 * np.exp(-(((across - x) / wide) ** 2) - ((down - y) / (1.6 * wide)) ** 2)
    return np.clip(room, 0, 255).astype(np.float32)


@lru_cache(maxsize=1)
def _draw_wood() -> Bytes:
    """Boards cut along the grain: stretched rings, fine pores."""
    across, _ = grid()
    bend = 0.55 * noise(3, 5, tall=2) + 0.06 * noise(24, 6, tall=4)
    rings = (3 * across + 4 * bend) % 1
    pores = stretch(noise(128, 7, tall=8) + noise(256, 8, tall=12))
    grain = 0.65 * (1 - rings**1.5) + 0.35 * pores
    return _mix_colours((74, 42, 22), (206, 152, 96), np.clip(grain, 0, 1))


@lru_cache(maxsize=1)
def _draw_stone() -> Bytes:
    """Granite: grey clouds, crystals of three sizes, a few dark veins."""
    clouds, crystals = fractal(4, 15), stretch(noise(64, 16) + noise(128, 17) + noise(200, 18))
    veins = np.clip(np.abs(2 * fractal(3, 19) - 1) * 14, 0, 1)
    return _mix_colours((58, 57, 60), (206, 202, 194), (0.45 * clouds + 0.55 * crystals) * (0.6 + 0.4 * veins))


@lru_cache(maxsize=1)
def _draw_cloth() -> Bytes:
    """A plain weave of threads that differ a little."""
    threads = np.asarray(0.55 + 0.45 * draw_pattern("woven") * (0.75 + 0.25 * noise(14, 25)), np.float32)
    return _mix_colours((0, 0, 0), (255, 255, 255), threads)


def _mix_colours(dark: tuple[int, int, int], light: tuple[int, int, int], tone: Floats) -> Bytes:
    """Colours from dark (0) to light (1)."""
    low, high = np.array(dark, np.float32), np.array(light, np.float32)
    return np.rint(low + tone[..., None] * (high - low)).astype(np.uint8)
