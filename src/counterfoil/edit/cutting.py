"""Cut the object out, fill what was behind it, paste it anywhere: what every edit is made of."""

from __future__ import annotations

import math
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.filling import check_background, filled_background, hole_of
from counterfoil.edit.matting import foreground_colours, per_channel, soft_alpha
from counterfoil.edit.memory import PerPicture
from counterfoil.errors import Unusable
from counterfoil.types import Picture

__all__ = [
    "Cutout", "alpha_of", "background_of", "cover", "cutout", "filled_background", "foreground_colours",
    "on_background", "paste", "place", "placed_alpha", "soft_alpha",
]  # fmt: skip

OBJECT_NEEDED = 0.001  # share of the picture; less is a speck that no model could be asked about
FINEST_SUPERSAMPLING = 16

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Window = tuple[slice, slice]  # rows and columns
Matrix = NDArray[np.float64]  # (2, 3), takes points of the old picture to the new one


class Cutout(NamedTuple):
    """The object alone; both planes are read-only, since several edits share them."""

    image: Bytes  # (height, width, 3), the object's own colours, carried on a little beyond its edge
    alpha: Bytes  # (height, width)
    background_share: float  # of the picture, clear of the object and its margin


def _alpha(picture: Picture) -> Bytes:
    return _frozen(soft_alpha(picture.image, picture.alpha))


def _cutout(picture: Picture) -> Cutout:
    alpha = alpha_of(picture)
    share = np.count_nonzero(alpha > 127) / alpha.size
    if share < OBJECT_NEEDED:
        raise Unusable(f"the object covers {share:.2%} of the picture, {OBJECT_NEEDED:.1%} is needed")
    left = 1 - np.count_nonzero(hole_of(alpha)) / alpha.size
    return Cutout(_frozen(foreground_colours(picture.image, alpha)), alpha, left)


def _background(picture: Picture) -> Bytes:
    return _frozen(filled_background(picture.image, alpha_of(picture)))


alpha_of = PerPicture(_alpha)
cutout = PerPicture(_cutout)
background_of = PerPicture(_background)


def _frozen(plane: Bytes) -> Bytes:
    """A read-only copy."""
    plane = plane.copy()
    plane.flags.writeable = False
    return plane


def on_background(picture: Picture, background: Bytes) -> Picture:
    """The picture's object where it was, before another background."""
    cut = cutout(picture)
    check_background(cut.background_share)
    return Picture(paste(cut, background), cut.alpha.copy())


def paste(cut: Cutout, background: Bytes) -> Bytes:
    """The object over the background: alpha 255 shows the object's pixel and 0 the background's, exactly."""
    rows, columns = _extent(cut.alpha)
    behind = background[rows, columns].astype(np.float32)
    mixed = (cut.image[rows, columns] - behind) * per_channel(_share(cut.alpha[rows, columns])) + behind
    result = np.array(background)
    result[rows, columns] = np.rint(mixed)
    return result


def place(cut: Cutout, matrix: Matrix, background: Bytes) -> Picture:
    """The object moved by an affine map and pasted; it is sampled once, from the original."""
    rows, columns = _extent(cut.alpha)
    share = _share(cut.alpha[rows, columns])
    # Colours weighted by alpha before sampling: pixels beyond the edge then lend the object no colour.
    weighted = cut.image[rows, columns] * per_channel(share)
    window, local = _window(share, matrix, (columns.start, rows.start), background.shape)
    colours, new_alpha = (_sampled(layer, local, window) for layer in (weighted, share))
    new_alpha = np.rint(np.clip(new_alpha, 0, 1) * np.float32(255))
    if not (new_alpha > 127).any():
        raise Unusable("the object would leave the picture")
    # A cubic overshoots: a pixel must not get more colour than its alpha can carry, and none where that is 0.
    colours = np.clip(colours, 0, per_channel(new_alpha))
    result, alpha = np.array(background), np.zeros(background.shape[:2], np.uint8)
    result[window] = np.rint(colours + background[window] * per_channel(1 - new_alpha / np.float32(255)))
    alpha[window] = new_alpha
    return Picture(result, alpha)


def placed_alpha(alpha: Bytes, matrix: Matrix) -> Bytes:
    """The alpha that `place` would give."""
    rows, columns = _extent(alpha)
    share = _share(alpha[rows, columns])
    window, local = _window(share, matrix, (columns.start, rows.start), alpha.shape)
    result = np.zeros(alpha.shape, np.uint8)
    result[window] = np.rint(np.clip(_sampled(share, local, window), 0, 1) * np.float32(255))
    return result


def cover(image: Bytes, shape: tuple[int, int]) -> Bytes:
    """The picture scaled to cover `shape` (height, width), its middle kept."""
    height, width = image.shape[:2]
    scale = max(shape[0] / height, shape[1] / width)
    size = (max(shape[1], round(width * scale)), max(shape[0], round(height * scale)))
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    scaled = np.asarray(cv2.resize(image, size, interpolation=method)) if scale != 1 else image
    top, left = (size[1] - shape[0]) // 2, (size[0] - shape[1]) // 2
    return np.ascontiguousarray(scaled[top : top + shape[0], left : left + shape[1]])


def _extent(alpha: Bytes) -> Window:
    """Rows and columns that hold any of the object, one pixel more on each side."""
    left, top, width, height = cv2.boundingRect(alpha)
    return slice(max(0, top - 1), top + height + 1), slice(max(0, left - 1), left + width + 1)


def _share(alpha: Bytes) -> Floats:
    """Alpha as a share of 1."""
    return np.asarray(alpha / np.float32(255), np.float32)


def _window(layer: Floats, matrix: Matrix, origin: tuple[int, int], shape: tuple[int, ...]) -> tuple[Window, Matrix]:
    """The window of the new picture that a layer from `origin` falls into, and the map between the two."""
    height, width = layer.shape
    local = matrix.copy()
    local[:, 2] += matrix[:, :2] @ np.array(origin, np.float64)
    corners = np.array([[x, y, 1] for x in (0, width) for y in (0, height)], np.float64) @ local.T
    limits = (shape[1], shape[0])
    left, top = np.clip(np.floor(corners.min(axis=0)).astype(int) - 2, 0, limits).tolist()
    right, bottom = np.clip(np.ceil(corners.max(axis=0)).astype(int) + 2, (left, top), limits).tolist()
    local[:, 2] -= (left, top)
    return (slice(top, bottom), slice(left, right)), local


def _sampled(layer: Floats, matrix: Matrix, window: Window) -> Floats:
    """Cubic sampling; an object that shrinks is sampled several times per pixel and averaged, lest details alias."""
    size = (window[1].stop - window[1].start, window[0].stop - window[0].start)
    if min(size) == 0:
        return np.zeros((size[1], size[0], *layer.shape[2:]), np.float32)
    scale = math.sqrt(abs(float(np.linalg.det(matrix[:, :2]))))
    times = 1 if scale > 0.99 else min(FINEST_SUPERSAMPLING, math.ceil(1 / scale))
    # Pixel centres lie at whole coordinates, so the finer grid is shifted by half a fine pixel.
    fine = matrix * times
    fine[:, 2] += (times - 1) / 2
    method = cv2.INTER_CUBIC if times == 1 else cv2.INTER_LINEAR
    warped = cv2.warpAffine(layer, fine, (size[0] * times, size[1] * times), flags=method)
    return np.asarray(warped if times == 1 else cv2.resize(warped, size, interpolation=cv2.INTER_AREA), np.float32)
