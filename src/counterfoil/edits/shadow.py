"""The object's shadow cast or removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import split_bands
from counterfoil.edits.donor_scene import classify_support
from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.foot_ground import FootGround, find_fineness, measure_finer
from counterfoil.edits.geometry import object_box
from counterfoil.edits.matting import repeat_channels
from counterfoil.edits.object_traces import SOFTNESS, estimate_missing_light, reduce_to_grain
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.object_mask import object_trace
from counterfoil.types import Attribute, Picture

FLATNESS = 0.35  # height of the shadow, seen from the viewer, as a share of the object's
LEAN = 0.55  # how far the shadow of the top lies to the side, as a share of the object's height
NEEDED = 0.002  # share of the picture that a shadow must darken to count
CLEAR = 0.3  # of a cast shadow's strength: where it is seen
BELOW_FOOT = 0.05  # of the picture's shorter side: the ground that the rest is compared with
SMOOTH_PIXELS = 2.0  # of the grain at which both are
OTHER_GROUND, MOST_OTHER = 18.0, 0.5  # levels of CIE Lab by which another kind differs, and share of the shadow on it
OTHER_FINENESS = 0.7  # doublings by which it is smoother or rougher

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Shadow(Edit):
    """Cast a soft shadow of the object on the ground beside it (on), or lighten the one that lies there (off)."""

    attribute: ClassVar[Attribute] = "background"
    version: ClassVar[int] = (
        2  # 2: photos are refused in which the cast shadow would fall on something else than ground
    )
    shadow: Literal["on", "off"] = "on"
    strength: float = 0.5  # share of the light that the cast shadow takes

    def __post_init__(self) -> None:
        if not 0 < self.strength <= 1:
            raise UserError(f"strength: expected more than 0 and at most 1, got {self.strength:g}")

    @property
    def level(self) -> str:
        """The word off, or the strength: "0.5"."""
        return "off" if self.shadow == "off" else f"{self.strength:g}"

    @property
    def least_change(self) -> float:
        """Little: a shadow covers a small part of the background."""
        return 0.005

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Darken or lighten the ground; the object stays as it is."""
        subject.check_background()
        cut = subject.cutout
        if self.shadow == "off":
            gain = estimate_missing_light(reduce_to_grain(subject.picture.image), reduce_to_grain(cut.alpha))
            return Picture(_change_light(subject, gain), cut.alpha.copy())
        if classify_support(subject) == "air":
            raise Unusable("the object is in the air, which takes no shadow")
        side = 1 if rng.integers(2) else -1
        shadow = _cast_shadow(reduce_to_grain(cut.alpha), side)
        _check_ground(subject, shadow)
        light = 1 - shadow * np.float32(self.strength)
        return Picture(_change_light(subject, repeat_channels(light)), cut.alpha.copy())


def _check_ground(subject: Subject, shadow: Floats) -> None:
    """Raises `Unusable` where most of a cast shadow would fall on something else than the ground under the object.

    Another kind of ground has another colour and is smoother or rougher; the same ground in other light is not.
    """
    stands = classify_support(subject) == "ground"
    ground = FootGround.of_photo(subject).describe_under_foot(BELOW_FOOT) if stands else None
    if ground is None:
        return
    image, small = subject.picture.image, shadow.shape[::-1]
    smooth = cv2.GaussianBlur(reduce_to_grain(image), (0, 0), SMOOTH_PIXELS).astype(np.float32) / np.float32(255)
    colours = cv2.cvtColor(np.asarray(smooth, np.float32), cv2.COLOR_RGB2LAB)
    fine = np.asarray(cv2.resize(find_fineness(image), small, interpolation=cv2.INTER_AREA), np.float32)
    falls = (shadow > CLEAR) & ~object_trace(reduce_to_grain(subject.cutout.alpha))
    if not falls.any() or measure_finer(float(np.median(fine[falls])), float(ground[3])) <= OTHER_FINENESS:
        return
    other = float((np.linalg.norm(colours[falls] - ground[:3], axis=1) > OTHER_GROUND).mean())
    if other > MOST_OTHER:
        raise Unusable(f"{other:.0%} of the shadow would fall on something else than the object's ground")


def _cast_shadow(alpha: Bytes, side: int) -> Floats:
    """The shadow of a light from the front and the other side: the outline laid flat on the ground, 0..1."""
    box = object_box(alpha)
    base = box.top + box.height - 1
    lean = side * LEAN * FLATNESS
    flat = np.array([[1, -lean / FLATNESS, lean / FLATNESS * base], [0, FLATNESS, base * (1 - FLATNESS)]], np.float64)
    softness = max(1.0, SOFTNESS * min(alpha.shape))
    whole = cv2.warpAffine(alpha, flat, alpha.shape[::-1], flags=cv2.INTER_LINEAR)
    long = np.asarray(cv2.GaussianBlur(whole, (0, 0), softness), np.float32)
    # At the object's foot the shadow is darkest and a little wider than the object.
    contact = np.asarray(cv2.GaussianBlur(_flatten_foot(alpha, base), (0, 0), softness), np.float32)
    shadow = np.maximum(long * np.float32(0.85), contact) / np.float32(255)
    visible = float((shadow * (1 - alpha / np.float32(255))).mean())
    if visible < NEEDED:
        raise Unusable(f"the shadow of the object would darken {visible:.2%} of the picture, {NEEDED:.1%} is needed")
    return np.asarray(shadow, np.float32)


def _flatten_foot(alpha: Bytes, base: int) -> Bytes:
    """The lowest part of the object, flattened about the line it stands on."""
    height = max(2, round(0.04 * min(alpha.shape)))
    foot = np.zeros_like(alpha)
    foot[max(0, base - 2 * height) : base + 1] = alpha[max(0, base - 2 * height) : base + 1]
    down = np.array([[1, 0, 0], [0, 0.5, 0.5 * base + 0.25 * height]], np.float64)
    return np.asarray(cv2.warpAffine(foot, down, alpha.shape[::-1], flags=cv2.INTER_LINEAR), np.uint8)


def _change_light(subject: Subject, gain: Floats) -> Bytes:
    """The photo with more or less light, (..., 3), on everything but the object."""
    cut, result = subject.cutout, np.array(subject.picture.image)
    height, width = cut.alpha.shape
    if gain.shape != result.shape:
        gain = np.asarray(cv2.resize(gain, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)
    for band in split_bands((slice(0, height), slice(0, width))):
        # Only the background's part of each pixel changes.
        behind = np.maximum(result[band] - cut.image[band] * repeat_channels(cut.alpha[band] / np.float32(255)), 0)
        result[band] = np.rint(np.clip(result[band] + behind * (gain[band] - 1), 0, 255))
    return result
