"""Matting: a soft alpha from any kind of mask, and the object's own colours at its edge."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.object_mask import UNKNOWN, ObjectMask, hard_object, object_trace

HARD_BAND = 0.0125  # half width of the band re-estimated around a hard edge, as a share of the shorter side
SALIENCE_BAND = 0.02  # the same around the edge that a network found, which is less exact
TRACE = 8  # alpha within this of 0 or 255 counts as 0 or 255, which networks hardly ever reach
LARGEST = 4_000_000  # pixels; the edge of a larger photo is estimated on a copy of this size, which bounds memory
RIDGE = np.float32(3e-5)  # regularisation for flat colours; in squared units of 0..1

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


def soft_alpha(image: Bytes, mask: ObjectMask) -> Bytes:
    """How much of each pixel is the object, whatever the mask's origin.

    A map of salience is not an alpha: it says how sure a network is. It is hardened, and the edge estimated anew.
    """
    if mask.origin != "salience":
        return estimate_alpha(image, mask.values)
    if mask.values.size > LARGEST:
        small = soft_alpha(reduce_plane(image), ObjectMask(reduce_plane(mask.values), mask.origin))
        return np.asarray(cv2.resize(small, mask.values.shape[::-1], interpolation=cv2.INTER_LINEAR), np.uint8)
    return _alpha_from_hard(image, hard_object(mask.values), SALIENCE_BAND)


def is_graded(mask: ObjectMask) -> bool:
    """Whether a mask is an alpha with soft edges of its own, which is used as it is."""
    if mask.origin == "salience" or _is_label(mask.values):
        return False
    partial = object_trace(mask.values) & (mask.values < 255)
    return not (_is_thin(partial) or _is_mostly_unknown(mask.values, partial))


def estimate_alpha(image: Bytes, mask: Bytes) -> Bytes:
    """A soft alpha from a hard mask, a trimap (128 is unknown) or an alpha that is graded already."""
    if mask.size > LARGEST:
        # Nearest, since the values of a trimap are categories.
        small = estimate_alpha(reduce_plane(image), reduce_plane(mask, cv2.INTER_NEAREST))
        return np.asarray(cv2.resize(small, mask.shape[::-1], interpolation=cv2.INTER_LINEAR), np.uint8)
    if _is_label(mask):
        return _alpha_from_hard(image, object_trace(mask))
    partial = object_trace(mask) & (mask < 255)
    if _is_thin(partial):
        return _alpha_from_hard(image, hard_object(mask))
    if _is_mostly_unknown(mask, partial):
        return _alpha_from_trimap(image, mask, partial)
    return np.where(mask < TRACE, 0, np.where(mask > 255 - TRACE, 255, mask)).astype(np.uint8)


def estimate_foreground(image: Bytes, alpha: Bytes) -> Bytes:
    """The object's own colours: as photographed inside, with the background's share removed at its edge."""
    if not (alpha < 255).any() or not object_trace(alpha).any():
        return np.array(image)
    if alpha.size > LARGEST:
        small = estimate_foreground(reduce_plane(image), reduce_plane(alpha))
        enlarged = np.asarray(cv2.resize(small, alpha.shape[::-1], interpolation=cv2.INTER_LINEAR), np.uint8)
        return np.where((alpha == 255)[..., None], image, enlarged)
    foreground, background = _mean_colours(image, alpha)
    # Every pixel is a known mixture of two unknown colours. What their means leave unexplained goes to the object in
    # proportion to its share. Beyond the edge the mean is used.
    edge = np.nonzero(object_trace(alpha) & (alpha < 255))
    share = alpha[edge][:, None] / np.float32(255)
    unexplained = image[edge] - share * foreground[edge] - (1 - share) * background[edge]
    foreground[edge] += share * unexplained
    colours = np.clip(np.rint(foreground), 0, 255).astype(np.uint8)
    return np.where((alpha == 255)[..., None], image, colours)


def reduce_plane(plane: Bytes, method: int = cv2.INTER_AREA) -> Bytes:
    """The plane reduced to the largest size that is processed."""
    height, width = plane.shape[:2]
    scale = (LARGEST / (height * width)) ** 0.5
    size = (max(1, int(width * scale)), max(1, int(height * scale)))
    return np.asarray(cv2.resize(plane, size, interpolation=method), np.uint8)


def _mean_colours(image: Bytes, alpha: Bytes) -> tuple[Floats, Floats]:
    """Local means of the object's and of the background's colours, first over a wide window, then a narrow one."""
    height, width = alpha.shape
    wide, close = (max(1, round(share * min(alpha.shape))) for share in (0.1, 0.02))
    step = max(1, close // 4)  # means vary slowly, so a coarser grid is enough
    size = (-(-width // step), -(-height // step))
    pixels = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.float32)
    share = np.asarray(cv2.resize(alpha, size, interpolation=cv2.INTER_AREA), np.float32)[..., None] / np.float32(255)
    # Cubed, to favour pixels that are nearly all object or none; a small weight is left for hairs.
    inside, outside = share**3 + share * np.float32(1e-3), (1 - share) ** 3 + (1 - share) * np.float32(1e-3)
    foreground = background = colours = pixels
    for radius in (max(1, wide // step), max(1, close // step)):
        foreground = _mean(colours * inside, radius) / (_mean(inside, radius) + np.float32(1e-5))
        background = _mean(pixels * outside, radius) / (_mean(outside, radius) + np.float32(1e-5))
        colours = np.clip(foreground + share * (pixels - share * foreground - (1 - share) * background), 0, 255)
    return _enlarge(foreground, alpha.shape), _enlarge(background, alpha.shape)


def _is_label(mask: Bytes) -> bool:
    """Whether a mask has a single value for the whole object."""
    top = int(mask.max(initial=0))
    return top < 255 and bool(((mask == 0) | (mask == top)).all())


def _is_mostly_unknown(mask: Bytes, partial: Flags) -> bool:
    return bool(np.count_nonzero(mask == UNKNOWN) > 0.5 * np.count_nonzero(partial))


def _is_thin(partial: Flags) -> bool:
    """Whether partial values are only the antialiased rim of a hard mask, two pixels wide at most."""
    return not cv2.erode(partial.astype(np.uint8), np.ones((3, 3), np.uint8)).any()


def _alpha_from_hard(image: Bytes, inside: Flags, share: float = HARD_BAND) -> Bytes:
    """Re-estimate a band around the hard edge from the colours on both sides of it."""
    radius = max(1, round(share * min(inside.shape)))
    hard = inside.astype(np.float32)
    band = np.maximum(distance_to(inside), distance_to(~inside)) <= radius
    prior = np.asarray(cv2.GaussianBlur(hard, (0, 0), 0.4 * radius), np.float32)
    trust = np.where(band, np.float32(0.35), np.float32(1))
    return _quantise(_estimate_from_colours(image, _Prior(hard, trust, prior), 2 * radius), hard, band)


def _alpha_from_trimap(image: Bytes, mask: Bytes, unknown: Flags) -> Bytes:
    """Estimate the unknown band from the colours that are known to be object or background."""
    to_object, to_background = distance_to(mask == 255), distance_to(mask == 0)
    width = float(np.median((to_object + to_background)[unknown]))
    # Unknown areas inside the object, such as a collar, have no edge.
    unknown = unknown & (to_background <= 1.1 * width)
    sure = (object_trace(mask) & ~unknown).astype(np.float32)
    # The outline runs midway through the band. A leg thinner than the band is all unknown: there only the distance to
    # the background counts.
    halfway = to_background / np.clip(to_object + to_background, 1e-3, width)
    prior = np.clip((halfway - 0.5) * 2 + 0.5, 0, 1)
    radius = int(np.clip(np.ceil(width), 3, max(3, min(mask.shape) // 8)))
    trust = np.where(unknown, np.float32(0.02), np.float32(1))
    trust[unknown & (to_object > width) & (to_background > 0.6 * width)] = 0.5  # the middle of a leg
    first = np.where(unknown, _estimate_from_colours(image, _Prior(prior, trust, prior), radius), sure)
    # A second pass uses the pixels that the first was sure of, for a sharper edge where colours are close.
    trust = np.where(unknown, 0.02 + 0.5 * (2 * first - 1) ** 4, trust).astype(np.float32)
    return _quantise(_estimate_from_colours(image, _Prior(first, trust, first), max(2, radius // 2)), sure, unknown)


class _Prior(NamedTuple):
    object: Floats  # (height, width), 1 where the pixel is taken as object
    trust: Floats  # (height, width), weight of that label
    prior: Floats  # (height, width), the alpha where colour does not decide


def _estimate_from_colours(image: Bytes, labels: _Prior, radius: int) -> Floats:
    """Alpha by a linear rule on colour, fitted around every pixel; the prior where colour does not decide."""
    # The rule is fitted on a coarser grid, since its coefficients vary slowly, and applied at full size.
    step = max(1, min(4, radius // 4))
    height, width = labels.object.shape
    small = (max(1, width // step), max(1, height // step))
    pixels = image.astype(np.float32) / np.float32(255)
    colours, opinion, trust = (
        np.asarray(cv2.resize(plane, small, interpolation=cv2.INTER_AREA), np.float32)
        for plane in (pixels, *labels[:2])
    )
    rule = _enlarge(_fit_rule(colours, opinion, trust, max(1, round(radius / step))), labels.object.shape)
    answer = sum(pixels[..., i] * rule[..., i] for i in range(3)) + rule[..., 3]
    return np.asarray(labels.prior + rule[..., 4] * (np.clip(answer, 0, 1) - labels.prior), np.float32)


def _fit_rule(pixels: Floats, labels: Floats, trust: Floats, radius: int) -> Floats:
    """Weighted least squares of the labels on colour in a box around every pixel.

    (height, width, 5): three slopes, the offset, and the share of the labels' variance that colour explains.
    """
    planes = np.dstack([pixels, labels])  # red, green, blue, label
    pairs = [(i, j) for i in range(4) for j in range(i, 4)]
    products = [planes[..., i] * planes[..., j] for i, j in pairs]
    sums = _mean(np.dstack([trust, *(plane * trust for plane in (*np.moveaxis(planes, 2, 0), *products))]), radius)
    moments = sums[..., 1:] / (sums[..., :1] + np.float32(1e-6))
    mean = moments[..., :4]
    covariance = {pair: moments[..., 4 + k] - mean[..., pair[0]] * mean[..., pair[1]] for k, pair in enumerate(pairs)}
    slopes = _solve(covariance)
    explained = sum(slope * covariance[i, 3] for i, slope in enumerate(slopes))
    certainty = np.clip(explained / (covariance[3, 3] + np.float32(1e-3)), 0, 1)
    offset = mean[..., 3] - sum(slope * mean[..., i] for i, slope in enumerate(slopes))
    return _mean(np.dstack([*slopes, offset, certainty]), max(1, radius // 2))


def _solve(covariance: dict[tuple[int, int], Floats]) -> tuple[Floats, Floats, Floats]:
    """The slopes per pixel: the 3 x 3 system of colour covariances solved by cofactors."""
    a, b, c = covariance[0, 0] + RIDGE, covariance[0, 1], covariance[0, 2]
    d, e, f = covariance[1, 1] + RIDGE, covariance[1, 2], covariance[2, 2] + RIDGE
    aa, bb, cc = d * f - e * e, c * e - b * f, b * e - c * d
    dd, ee, ff = a * f - c * c, b * c - a * e, a * d - b * b
    x, y, z = covariance[0, 3], covariance[1, 3], covariance[2, 3]
    scale = 1 / (a * aa + b * bb + c * cc)
    return (aa * x + bb * y + cc * z) * scale, (bb * x + dd * y + ee * z) * scale, (cc * x + ee * y + ff * z) * scale


def _quantise(estimate: Floats, known: Floats, band: Flags) -> Bytes:
    """The estimate inside the band, what is known outside it, in 0..255."""
    # Below two percent is noise of the estimate; nearly opaque pixels stay as photographed.
    alpha = np.where(band, estimate * 1.04 - 0.02, known)
    return np.asarray(np.rint(np.clip(alpha, 0, 1) * 255), np.uint8)


def _enlarge(planes: Floats, shape: tuple[int, ...]) -> Floats:
    """The planes at the height and width of `shape`."""
    return np.asarray(cv2.resize(planes, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR), np.float32)


def repeat_channels(plane: Floats) -> Floats:
    """The plane once for each colour; several times faster than broadcasting."""
    return np.asarray(cv2.cvtColor(plane, cv2.COLOR_GRAY2RGB), np.float32)


def distance_to(flags: Flags) -> Floats:
    """Distance of every pixel to the nearest one that is set."""
    if not flags.any():
        return np.full(flags.shape, np.float32(sum(flags.shape)))
    return np.asarray(cv2.distanceTransform((~flags).astype(np.uint8), cv2.DIST_L2, 3), np.float32)


def _mean(planes: Floats, radius: int) -> Floats:
    """Mean over a box around every pixel."""
    size = (2 * radius + 1, 2 * radius + 1)
    return np.asarray(cv2.blur(planes, size, borderType=cv2.BORDER_REFLECT_101), np.float32).reshape(planes.shape)
