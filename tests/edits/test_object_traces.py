"""The shadow and the reflection that an object leaves on the ground."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.object_traces import find_dark_reflection, find_traces
from counterfoil.edits.subject import Subject
from counterfoil.types import Picture
from edit_pictures import ellipse

Bytes = NDArray[np.uint8]


def scene() -> tuple[Bytes, Bytes]:
    """Pale sand and a red block that stands on it."""
    rng = np.random.default_rng(0)
    image = (np.array([190, 180, 160]) + rng.normal(0, 3, (160, 200, 1))).astype(np.uint8)
    alpha = np.zeros((160, 200), np.uint8)
    alpha[40:100, 80:120] = 255
    image[alpha > 0] = (170, 60, 50)
    return image, alpha


def test_ground_without_shadow_has_no_traces() -> None:
    assert find_traces(*scene()).mean() < 0.002


def test_a_contact_shadow_is_found_and_leaves_with_the_object() -> None:
    image, alpha = scene()
    image[98:110, 76:132] = (image[98:110, 76:132] * 0.65).astype(np.uint8)
    image[alpha > 0] = (170, 60, 50)
    traces = find_traces(image, alpha)
    assert traces[102:108, 82:126].mean() > 0.9
    assert traces.mean() < 0.06
    assert not traces[alpha > 0].any()
    removed = Subject(Picture(image, alpha)).visible_background
    assert removed[100:109, 80:128].mean() > 165  # as light as the sand


def test_something_dark_elsewhere_is_no_shadow() -> None:
    image, alpha = scene()
    image[120:150, 10:50] = 60
    assert not find_traces(image, alpha)[115:, :60].any()


def test_a_reflection_is_found_below_the_foot() -> None:
    image, alpha = scene()
    rng = np.random.default_rng(1)
    pattern = np.repeat(np.repeat(rng.integers(40, 220, (12, 8, 3), dtype=np.uint8), 5, axis=0), 5, axis=1)
    image[40:100, 80:120] = pattern
    assert find_traces(image, alpha)[101:130, 82:118].mean() < 0.5
    image[100:160, 80:120] = pattern[::-1] // 2 + 95
    assert find_traces(image, alpha)[101:130, 82:118].mean() > 0.9


def in_dark_ripples(right: int) -> tuple[Bytes, Bytes]:
    """A round object above a dark place that is its mirror image, so far to the right, broken by ripples."""
    rng = np.random.default_rng(2)
    image = np.clip(np.array([120, 125, 140]) + rng.normal(0, 3, (200, 240, 1)), 0, 255).astype(np.uint8)
    alpha = ellipse((200, 240), (70, 110), (26, 40))
    below = ellipse((200, 240), (126, 110 + right), (24, 40)) > 0
    below[::6] = False
    image[below] = (70, 66, 50)
    image[alpha > 0] = (200, 170, 120)
    return image, alpha


def test_a_dark_reflection_without_details_is_found_by_its_outline() -> None:
    found = find_dark_reflection(*in_dark_ripples(0))
    assert found[112:140, 90:130].mean() > 0.9
    assert found.mean() < 0.1
    assert not find_dark_reflection(*in_dark_ripples(70)).any()
    assert not find_dark_reflection(*scene()).any()
