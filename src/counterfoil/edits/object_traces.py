"""What an object leaves on the ground: its contact shadow and its reflection, found beside and below it."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import object_window
from counterfoil.edits.geometry import object_box
from counterfoil.edits.matting import distance_to, repeat_channels
from counterfoil.edits.smooth_fill import fill_unknown
from counterfoil.object_mask import hard_object, object_trace

SOFTNESS = 0.02  # of a shadow's edge, as a share of the picture's shorter side
REACH = 0.15  # how far beside and below the object a shadow is looked for, as a share of the shorter side
DEEPEST = (1.8, 2.6)  # gains: up to the first a dark place is a shadow, beyond the second it is something dark
GRAIN = 200  # shorter side in pixels at which the light is computed; it is soft, so more would not show
TINGE = 0.06  # how far a shadow's share of red or blue may be from that of the ground around it
DARKER = 1.12  # the gain from which a place belongs to the shadow; less is the ground's own variation
TOUCHING = 0.03  # of the shorter side: a shadow lies this near to the object, or it is another's
LARGEST_SHADOW = 0.6  # of the object's area; more is the scene's own darkness
LIKENESS = 0.5  # correlation of the ground with the mirrored object from which it is a reflection
LONGEST_REFLECTION = 0.6  # of the object's height
SHORTEST_REFLECTION = 10  # rows, below which a likeness may be chance
DARK = 9.0  # levels of L* by which a reflection without details is darker than most of the ground beside it
LIGHTER = 65  # percentile of the ground's L* that stands for most of it
ABOVE, BELOW = 0.1, 1.0  # of the object's height: where it is looked for, from above the foot to below it
BESIDE = 0.5  # of the object's width, on either side
OVERLAP = 0.42  # of a dark place with the mirrored outline, as a share of both: then it is its reflection
LEAST_REFLECTED = 0.15  # of the object's area
WIDEST = 1.5  # of the object's width: what is wider is the ground's own
MIRROR_LINES = tuple(step / 50 - 0.08 for step in range(10))  # of the object's height below the foot

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


def find_traces(image: Bytes, alpha: Bytes) -> Flags:
    """The contact shadow and the reflection of the object, where there is one; nothing of the object itself."""
    if not hard_object(alpha).any():
        return np.zeros(alpha.shape, bool)
    small, small_alpha = reduce_to_grain(image), reduce_to_grain(alpha)
    found = _find_shadow(small, small_alpha) | _find_reflection(small, small_alpha)
    return _enlarge(found, alpha)


def find_dark_reflection(image: Bytes, alpha: Bytes) -> Flags:
    """A dark place below the foot in the shape of the mirrored object: ripples and gloss leave no more of it."""
    if not hard_object(alpha).any():
        return np.zeros(alpha.shape, bool)
    return _enlarge(_find_dark_reflection(reduce_to_grain(image), reduce_to_grain(alpha)), alpha)


def _enlarge(found: Flags, alpha: Bytes) -> Flags:
    """What was found on a small copy, without the object."""
    if found.shape != alpha.shape:
        size = alpha.shape[::-1]
        found = np.asarray(cv2.resize(found.astype(np.uint8), size, interpolation=cv2.INTER_LINEAR)) > 0
    return np.asarray(found & ~object_trace(alpha))


def _find_shadow(image: Bytes, alpha: Bytes) -> Flags:
    """The darker ground that touches the object's lower part."""
    gain = estimate_missing_light(image, alpha).max(axis=2)
    dark = (gain > DARKER) & ~object_trace(alpha)
    count, labels = cv2.connectedComponents(dark.astype(np.uint8))
    near = distance_to(hard_object(alpha)) <= max(2.0, TOUCHING * min(alpha.shape))
    touching = np.isin(np.arange(count), np.unique(labels[near & dark]))
    touching[0] = False
    shadow = touching[labels]
    if np.count_nonzero(shadow) > LARGEST_SHADOW * np.count_nonzero(hard_object(alpha)):
        return np.zeros_like(dark)
    return np.asarray(shadow)


def _find_reflection(image: Bytes, alpha: Bytes) -> Flags:
    """The object's mirror image below its foot, where the ground is like it."""
    box, none = object_box(alpha), np.zeros(alpha.shape, bool)
    foot = box.top + box.height
    rows = min(int(LONGEST_REFLECTION * box.height), alpha.shape[0] - foot)
    if rows < SHORTEST_REFLECTION:
        return none
    gray = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.float32)
    fine = gray - cv2.GaussianBlur(gray, (0, 0), max(2.0, 0.1 * box.height))
    mirrored, below = fine[foot - rows : foot][::-1], fine[foot : foot + rows]
    shape = hard_object(alpha)[foot - rows : foot][::-1]
    if shape.sum() < rows * SHORTEST_REFLECTION:
        return none
    first, second = (plane[shape] - plane[shape].mean() for plane in (mirrored, below))
    likeness = float((first * second).sum() / max(1e-6, float(np.sqrt((first**2).sum() * (second**2).sum()))))
    if likeness < LIKENESS:
        return none
    none[foot : foot + rows] = shape
    return none


def _find_dark_reflection(image: Bytes, alpha: Bytes) -> Flags:
    box, hard, none = object_box(alpha), hard_object(alpha), np.zeros(alpha.shape, bool)
    foot, beside = box.top + box.height, round(BESIDE * box.width)
    if alpha.shape[0] - foot < max(SHORTEST_REFLECTION, LEAST_REFLECTED * box.height):
        return none
    ground = none.copy()
    rows = slice(foot - round(ABOVE * box.height), foot + round(BELOW * box.height))
    ground[rows, max(0, box.left - beside) : box.left + box.width + beside] = True
    ground &= ~object_trace(alpha)
    smooth = np.asarray(cv2.GaussianBlur(image, (0, 0), 1.5), np.float32) / np.float32(255)
    light = cv2.cvtColor(smooth, cv2.COLOR_RGB2LAB)[..., 0]
    dark = ground & (light < float(np.percentile(light[ground], LIGHTER)) - DARK) if ground.any() else none
    opened = cv2.morphologyEx(dark.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    count, labels = cv2.connectedComponents(np.asarray(opened))
    mirrored = [_mirror_below(hard, foot + share * box.height) & ground for share in MIRROR_LINES]
    for place in (labels == number for number in range(1, count)):
        suits = np.count_nonzero(place) >= LEAST_REFLECTED * np.count_nonzero(hard)
        suits &= np.ptp(np.nonzero(place)[1]) <= WIDEST * box.width
        if suits and any(_overlap(place, outline) >= OVERLAP for outline in mirrored):
            none |= place
    return none


def _mirror_below(hard: Flags, line: float) -> Flags:
    """The outline mirrored at a row."""
    sources = np.rint(2 * line - 1 - np.arange(len(hard))).astype(np.intp)
    inside = (sources >= 0) & (sources < len(hard))
    return np.asarray(hard[np.clip(sources, 0, len(hard) - 1)] & inside[:, None])


def _overlap(one: Flags, other: Flags) -> float:
    return float(np.count_nonzero(one & other)) / max(1, int(np.count_nonzero(one | other)))


def reduce_to_grain(plane: Bytes) -> Bytes:
    """The plane reduced to the size at which light is computed, if it is larger."""
    height, width = plane.shape[:2]
    scale = min(1.0, GRAIN / min(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.uint8) if scale < 1 else plane


def estimate_missing_light(image: Bytes, alpha: Bytes) -> Floats:
    """The gain, at least 1, that makes the ground near the object's feet as light as further away."""
    near = _weigh_surroundings(alpha)
    clear = (~object_trace(alpha)).astype(np.float32)
    softness = max(1.0, SOFTNESS * min(alpha.shape))
    here = _weighted_mean(image, clear, softness)
    beyond = fill_unknown(here, clear * (near == 0))
    light, usual = here.sum(axis=2) + 3, beyond.sum(axis=2) + 3
    ratio = usual / light
    shadow = np.clip((DEEPEST[1] - ratio) / (DEEPEST[1] - DEEPEST[0]), 0, 1)
    tinge = np.abs(here / light[..., None] - beyond / usual[..., None]).max(axis=2)
    shadow *= np.clip(2 - tinge / TINGE, 0, 1) * near
    # Each channel by itself, since the light in a shadow has another tint.
    gain = np.where(ratio > 1, 1, 0)[..., None] * ((beyond + 1) / (here + 1) - 1) * np.clip(shadow, 0, 1)[..., None] + 1
    return np.asarray(cv2.GaussianBlur(gain.astype(np.float32), (0, 0), softness), np.float32)


def _weighted_mean(image: Bytes, weight: Floats, sigma: float) -> Floats:
    """The local mean colour over the pixels that have weight."""
    sums = cv2.GaussianBlur(image * repeat_channels(weight), (0, 0), sigma)
    return np.asarray(sums / repeat_channels(np.maximum(cv2.GaussianBlur(weight, (0, 0), sigma), 1e-3)), np.float32)


def _weigh_surroundings(alpha: Bytes) -> Floats:
    """1 beside and below the lower half of the object, fading to 0."""
    rows, _ = object_window(alpha)
    reach = max(2, round(REACH * min(alpha.shape)))
    lower = alpha.copy()
    lower[: (rows.start + rows.stop) // 2] = 0  # shadows lie near the feet, seldom near the head
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, reach + 1))
    grown = np.asarray(cv2.dilate(lower, kernel), np.float32) / np.float32(255)
    soft = np.asarray(cv2.blur(grown, (reach | 1, (reach // 2) | 1)), np.float32)
    return np.asarray(np.clip(1.8 * soft, 0, 1), np.float32)
