"""The object cut out of its picture, and pasted, repainted or moved over a background."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.fill import find_hole
from counterfoil.edits.matting import estimate_foreground, repeat_channels
from counterfoil.errors import Unusable
from counterfoil.object_mask import hard_object, object_share
from counterfoil.types import Picture

OBJECT_NEEDED = 0.001  # share of the picture; smaller objects are not used
FINEST_SUPERSAMPLING = 16
FINEST_IN_PERSPECTIVE = 4
LEFT = "the object would leave the picture"
BAND = 1_000_000  # pixels that are mixed at a time, in floating point
LARGEST_MOVED = 16_000_000  # pixels of an object's window; moving it takes up to 100 bytes per pixel

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Window = tuple[slice, slice]  # rows and columns
Matrix = NDArray[np.float64]  # (2, 3) or, in perspective, (3, 3): maps points of the old picture to the new one


class Cutout(NamedTuple):
    """The object alone; both planes are read-only, since several edits share them."""

    image: Bytes  # (height, width, 3), the object's own colours, extended a little beyond its edge
    alpha: Bytes  # (height, width)
    background_share: float  # of the picture, clear of the object and its margin


def cut_out(image: Bytes, alpha: Bytes) -> Cutout:
    """The object of a picture with a soft alpha; raises `Unusable` where it is too small."""
    share = object_share(alpha)
    if share < OBJECT_NEEDED:
        raise Unusable(f"the object covers {share:.2%} of the picture, {OBJECT_NEEDED:.1%} is needed")
    left = 1 - np.count_nonzero(find_hole(alpha)) / alpha.size
    return Cutout(copy_read_only(estimate_foreground(image, alpha)), alpha, left)


def copy_read_only(plane: Bytes) -> Bytes:
    """A read-only copy, for planes that several edits share."""
    plane = plane.copy()
    plane.flags.writeable = False
    return plane


def paste(cut: Cutout, background: Bytes) -> Bytes:
    """The object over the background: alpha 255 shows the object's pixel and 0 the background's, exactly."""
    image = np.array(background)
    for band in split_bands(object_window(cut.alpha)):
        behind = background[band].astype(np.float32)
        image[band] = np.rint((cut.image[band] - behind) * repeat_channels(_share(cut.alpha[band])) + behind)
    return image


def split_bands(window: Window) -> Iterator[Window]:
    """The window cut into bands of rows, to bound the memory of floating point mixing."""
    rows, columns = window
    step = max(1, BAND // max(1, columns.stop - columns.start))
    for top in range(rows.start, rows.stop, step):
        yield slice(top, min(top + step, rows.stop)), columns


def repaint(image: Bytes, cut: Cutout, colours: Bytes) -> Bytes:
    """The picture with its object in other colours, (height, width, 3) of its window; no background is filled."""
    result, window = np.array(image), object_window(cut.alpha)
    for band in split_bands(window):
        rows = slice(band[0].start - window[0].start, band[0].stop - window[0].start)
        # Each pixel is a mixture; only the object's part is replaced.
        change = np.subtract(colours[rows], cut.image[band], dtype=np.float32) * repeat_channels(
            _share(cut.alpha[band])
        )
        result[band] = np.rint(np.clip(result[band] + change, 0, 255))
    return result


def place(cut: Cutout, matrix: Matrix, background: Bytes) -> Picture:
    """The object moved by an affine map or in perspective and pasted; it is sampled once, from the original."""
    move = plan_move(cut.alpha, matrix, background.shape)
    share, window = _share(cut.alpha[move.source]), move.target
    colours, new_alpha = _sample_object(cut.image[move.source], share, move.matrix, window)
    new_alpha = np.rint(np.clip(new_alpha, 0, 1) * np.float32(255))
    if not hard_object(new_alpha).any():
        raise Unusable(LEFT)
    # Cubic sampling overshoots: premultiplied colour is clipped to what the alpha allows.
    clipped = cv2.min(cv2.threshold(colours, 0, 0, cv2.THRESH_TOZERO)[1], repeat_channels(new_alpha))
    behind = cv2.multiply(background[window], repeat_channels(1 - new_alpha / np.float32(255)), dtype=cv2.CV_32F)
    result, alpha = np.array(background), np.zeros(background.shape[:2], np.uint8)
    cv2.add(clipped, behind, dst=result[window], dtype=cv2.CV_8U)
    alpha[window] = new_alpha
    return Picture(result, alpha)


class Move(NamedTuple):
    """Where an object comes from and to, and how it is sampled."""

    source: Window  # of the object in the old picture
    target: Window  # of the new picture, where it comes to lie
    matrix: Matrix  # (3, 3), from the one window to the other
    samples: int  # per pixel along a side: one, cubic, or several, linear


def plan_move(alpha: Bytes, matrix: Matrix, shape: tuple[int, ...]) -> Move:
    """The move of an object into a picture of this shape; raises `Unusable` where it is too large."""
    rows, columns = object_window(alpha)
    size = rows.stop - rows.start, columns.stop - columns.start
    if size[0] * size[1] > LARGEST_MOVED:
        raise Unusable(
            f"the object's box has {size[0] * size[1] / 1e6:.0f} megapixels, {LARGEST_MOVED / 1e6:.0f} can be moved:"
            " set a working size in the recipe or reduce the photo"
        )
    target, local = _find_target(size, matrix, (columns.start, rows.start), shape)
    return Move((rows, columns), target, local, _count_samples(local, size))


def place_alpha(alpha: Bytes, matrix: Matrix) -> Bytes:
    """The alpha that `place` would give."""
    rows, columns = object_window(alpha)
    share = _share(alpha[rows, columns])
    window, local = _find_target(share.shape, matrix, (columns.start, rows.start), alpha.shape)
    result = np.zeros(alpha.shape, np.uint8)
    result[window] = np.rint(np.clip(_sample_layer(share, local, window), 0, 1) * np.float32(255))
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


def object_window(alpha: Bytes) -> Window:
    """The rows and columns of the object, with one more pixel on each side."""
    left, top, width, height = cv2.boundingRect(alpha)
    rows = slice(max(0, top - 1), min(top + height + 1, alpha.shape[0]))
    return rows, slice(max(0, left - 1), min(left + width + 1, alpha.shape[1]))


def _share(alpha: Bytes) -> Floats:
    """Alpha as a share of 1."""
    return np.asarray(alpha / np.float32(255), np.float32)


def _size_of(window: Window) -> tuple[int, int]:
    """Width and height."""
    return window[1].stop - window[1].start, window[0].stop - window[0].start


def _find_target(
    size: tuple[int, ...], matrix: Matrix, origin: tuple[int, int], shape: tuple[int, ...]
) -> tuple[Window, Matrix]:
    """The window of the new picture that a layer of a size at `origin` maps to, and the map between the two."""
    height, width = size
    local = matrix @ _shift(*origin) if len(matrix) == 3 else np.vstack([matrix, (0, 0, 1)]) @ _shift(*origin)
    corners = map_points(local, [(x, y) for x in (0, width) for y in (0, height)])
    limits = (shape[1], shape[0])
    left, top = np.clip(np.floor(corners.min(axis=0)).astype(int) - 2, 0, limits).tolist()
    right, bottom = np.clip(np.ceil(corners.max(axis=0)).astype(int) + 2, (left, top), limits).tolist()
    return (slice(top, bottom), slice(left, right)), _shift(-left, -top) @ local


def map_points(matrix: Matrix, points: Sequence[tuple[float, float]]) -> Matrix:
    """The points, (points, 2) across and down, under a (3, 3) map."""
    ends = np.array([(x, y, 1) for x, y in points], np.float64) @ matrix.T
    return np.asarray(ends[:, :2] / ends[:, 2:], np.float64)


def _shift(across: float, down: float) -> Matrix:
    return np.array([[1, 0, across], [0, 1, down], [0, 0, 1]], np.float64)


def _sample_object(image: Bytes, share: Floats, matrix: Matrix, window: Window) -> tuple[Floats, Floats]:
    """Colours, weighted by alpha so that pixels beyond the edge do not count, and alpha, moved as one layer."""
    if 0 in _size_of(window):
        raise Unusable(LEFT)
    samples = _warp(np.asarray(cv2.merge([image * repeat_channels(share), share]), np.float32), matrix, window)
    means = _average(samples, window)
    colours = _average_in_turn(samples) if len(samples) == 2 * len(means) else means
    return np.asarray(cv2.cvtColor(colours, cv2.COLOR_RGBA2RGB), np.float32), np.asarray(cv2.extractChannel(means, 3))


def _sample_layer(layer: Floats, matrix: Matrix, window: Window) -> Floats:
    """Cubic sampling; a shrinking object is sampled several times per pixel and averaged, against aliasing."""
    size = _size_of(window)
    if 0 in size:
        return np.zeros((size[1], size[0]), np.float32)
    return _average(_warp(layer, matrix, window), window)


def _warp(layer: Floats, matrix: Matrix, window: Window) -> Floats:
    """The samples of a layer: one per pixel of the window, or a block of several."""
    size = _size_of(window)
    times = _count_samples(matrix, layer.shape)
    fine = refine(matrix, times)
    method = cv2.INTER_CUBIC if times == 1 else cv2.INTER_LINEAR
    fine_size = (size[0] * times, size[1] * times)
    if _is_affine(matrix):
        return np.asarray(cv2.warpAffine(layer, fine[:2], fine_size, flags=method), np.float32)
    return np.asarray(cv2.warpPerspective(layer, fine, fine_size, flags=method), np.float32)


def refine(matrix: Matrix, times: int) -> Matrix:
    """The map to a grid of `times` samples per pixel along a side."""
    # Pixel centres lie at whole coordinates, so the finer grid is shifted by half a fine pixel.
    return np.asarray(_shift((times - 1) / 2, (times - 1) / 2) @ np.diag((times, times, 1.0)) @ matrix, np.float64)


def _average(samples: Floats, window: Window) -> Floats:
    """The mean of each pixel's samples."""
    size = _size_of(window)
    if len(samples) == size[1]:
        return samples
    return np.asarray(cv2.resize(samples, size, interpolation=cv2.INTER_AREA), np.float32)


def _average_in_turn(samples: Floats) -> Floats:
    """The mean of each pixel's two by two samples of four channels, added one after the other.

    OpenCV adds so in three channels, but by pairs in four. Colours were averaged in three before they were moved
    together with alpha, and their pictures stay the same to the bit.
    """
    pixels = samples.view(np.complex128)[..., 0]  # four floats as one number, which is faster to slice
    total = np.ascontiguousarray(pixels[::2, ::2]).view(np.float32)
    for row, column in ((0, 1), (1, 0), (1, 1)):
        cv2.add(total, np.ascontiguousarray(pixels[row::2, column::2]).view(np.float32), dst=total)
    total *= np.float32(0.25)
    return total.reshape(len(total), -1, 4)


def _is_affine(matrix: Matrix) -> bool:
    return bool((matrix[2] == (0, 0, 1)).all())


def _count_samples(matrix: Matrix, shape: tuple[int, ...]) -> int:
    """The number of samples per pixel along a side."""
    if _is_affine(matrix):
        scale = math.sqrt(abs(float(np.linalg.det(matrix[:2, :2]))))
        return 1 if scale > 0.99 else min(FINEST_SUPERSAMPLING, math.ceil(1 / scale))
    corners = [(x, y) for x in (0, shape[1]) for y in (0, shape[0])]
    steps = [map_points(matrix, [(x, y), (x + 1, y), (x, y + 1)]) for x, y in corners]
    least = min(float(np.linalg.norm(step[1:] - step[0], axis=1).min()) for step in steps)
    # A tilted object shrinks a little even where it is nearest; cubic sampling alone keeps that sharp.
    return 1 if least > 0.7 else min(FINEST_IN_PERSPECTIVE, math.ceil(1 / least))
