"""The object's form as far as one photo tells it: its shading, which way it faces, where a texture lies on it."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.base import Subject
from counterfoil.edit.cutting import Window, object_window

FLOOR = np.float32(0.08)  # added to light before it is divided: a black object has no shading worth amplifying
SMOOTH = 0.06  # scale of the shading, as a share of the object's size
ROUNDNESS = 0.9  # how steep the surface is at the outline, before shading adds its part
RELIEF = 0.8  # how much of the relief comes from shading

Floats = NDArray[np.float32]


class Surface(NamedTuple):
    """Planes over the object's window; read-only, since several edits share them."""

    window: Window
    size: float  # side of a square as large as the object, in pixels
    light: Floats  # (height, width), 0..1, as photographed
    shading: Floats  # (height, width), 1 where the object is as light as on the whole
    facing: Floats  # (height, width, 2), how far the surface turns right and down: below 1, 0 towards the viewer
    places: Floats  # (height, width, 2), across and down on the surface laid flat, in pixels


def surface_of(subject: Subject) -> Surface:
    """The object's form; edits ask by `subject.once(surface_of)`, so that it is worked out once."""
    cut = subject.cutout
    window = object_window(cut.alpha)
    share = cut.alpha[window] / np.float32(255)
    size = float(share.sum()) ** 0.5
    light = np.asarray(cv2.cvtColor(cut.image[window], cv2.COLOR_RGB2GRAY), np.float32) / np.float32(255)
    usual = float((light * share).sum() / share.sum())
    smooth = _inside_mean(light, share, max(1.0, SMOOTH * size))
    # The broad change of light is form; the fine one is mostly paint or fur, of which a trace keeps the object alive.
    broad = ((smooth + FLOOR) / np.float32(usual + FLOOR)) ** np.float32(0.7)
    fine = ((light + FLOOR) / (smooth + FLOOR)) ** np.float32(0.65)
    facing = _facing(share, smooth, size)
    shading = np.clip(broad, 0.35, 1.6) * np.clip(fine, 0.45, 1.6) * _rounded(facing)
    planes = (light, shading.astype(np.float32), facing, _places(facing, size))
    for plane in planes:
        plane.flags.writeable = False
    return Surface(window, size, *planes)


def _blurred(plane: Floats, sigma: float) -> Floats:
    """A Gaussian of any width at the price of a narrow one."""
    step = max(1, int(sigma / 3))
    height, width = plane.shape
    if step == 1:
        return np.asarray(cv2.GaussianBlur(plane, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE), np.float32)
    small = cv2.resize(plane, (-(-width // step), -(-height // step)), interpolation=cv2.INTER_AREA)
    small = cv2.GaussianBlur(small, (0, 0), sigma / step, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)


def _inside_mean(plane: Floats, share: Floats, sigma: float) -> Floats:
    """The local mean over the object alone."""
    weight = _blurred(share, sigma)
    return np.asarray(_blurred(plane * share, sigma) / np.maximum(weight, np.float32(1e-3)), np.float32)


def _facing(share: Floats, smooth: Floats, size: float) -> Floats:
    """A cushion over the outline, with the shading as relief upon it: light from above means it faces up."""
    height = np.zeros_like(share)
    for scale in (0.03, 0.06, 0.12, 0.24):
        height += _blurred(share, max(1.0, scale * size)) * np.float32(scale * size)
    relief = _blurred(smooth, max(1.0, 0.03 * size)) * np.float32(0.12 * size)
    slopes = [
        -np.float32(ROUNDNESS) * _slope(height, axis) - np.float32(RELIEF) * _slope(relief, axis) for axis in (1, 0)
    ]
    steepness = np.sqrt(1 + slopes[0] ** 2 + slopes[1] ** 2)
    return np.dstack([slope / steepness for slope in slopes]).astype(np.float32)


def _rounded(facing: Floats) -> Floats:
    """A little less light where the surface turns away: a flat pattern would hide the form."""
    return np.asarray(1.06 - 0.3 * (facing**2).sum(axis=2), np.float32)


def _slope(plane: Floats, axis: int) -> Floats:
    """The change from pixel to pixel, down (0) or across (1)."""
    kernel = (1, 0) if axis == 1 else (0, 1)
    return np.asarray(cv2.Sobel(plane, cv2.CV_32F, *kernel, ksize=3, scale=1 / 8, borderType=cv2.BORDER_REPLICATE))


def _places(facing: Floats, size: float) -> Floats:
    """Where each pixel lies on the surface laid flat: a texture is squeezed where the surface turns away."""
    height, width = facing.shape[:2]
    down, across = np.mgrid[:height, :width].astype(np.float32)
    return np.asarray(np.dstack([across, down]) + facing * np.float32(0.2 * size), np.float32)
