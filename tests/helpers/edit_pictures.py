"""Small pictures for the tests of edits: drawn ones with known object and background, and scikit-image's photos."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray
from skimage import data

from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.types import Picture

Bytes = NDArray[np.uint8]


def ellipse(shape: tuple[int, int], centre: tuple[float, float], axes: tuple[float, float]) -> Bytes:
    """A hard mask: an ellipse given by its centre (down, across) and half axes."""
    down, across = np.mgrid[: shape[0], : shape[1]]
    inside = ((down - centre[0]) / axes[0]) ** 2 + ((across - centre[1]) / axes[1]) ** 2 <= 1
    return np.where(inside, 255, 0).astype(np.uint8)


def texture(name: str, size: int = 200) -> Bytes:
    """One of scikit-image's textures in colour."""
    gray = np.asarray(getattr(data, name)(), np.float32)[: 2 * size, : 2 * size]
    small = cv2.resize(gray, (size, size), interpolation=cv2.INTER_AREA)
    return np.clip(np.dstack([small * 0.8, small, small * 0.6]), 0, 255).astype(np.uint8)


def blob_on_grass(shape: tuple[int, int] = (160, 200)) -> Picture:
    """An orange striped ellipse with a hard mask on grass."""
    background = texture("grass", max(shape))[: shape[0], : shape[1]]
    alpha = ellipse(shape, (shape[0] * 0.55, shape[1] * 0.45), (shape[0] * 0.22, shape[1] * 0.15))
    stripes = np.where(np.arange(shape[1]) // 5 % 2, 255, 190)[None, :]
    colours = np.dstack([np.broadcast_to(stripes, shape), np.full(shape, 120), np.full(shape, 30)])
    return Picture(np.where(alpha[..., None] > 0, colours, background).astype(np.uint8), alpha)


def cat() -> Picture:
    """Scikit-image's cat, its head roughly outlined, as a trimap."""
    image = cv2.resize(data.chelsea(), (225, 150), interpolation=cv2.INTER_AREA)
    sure, possible = (ellipse((150, 225), (68, 110), axes) for axes in ((48, 56), (58, 68)))
    return Picture(
        np.asarray(image, np.uint8), np.where(sure > 0, sure, np.where(possible > 0, 128, 0)).astype(np.uint8)
    )


def cup() -> Picture:
    """Scikit-image's coffee cup with a graded mask."""
    image = cv2.resize(data.coffee(), (180, 120), interpolation=cv2.INTER_AREA)
    hard = ellipse((120, 180), (62, 92), (50, 62))
    return Picture(np.asarray(image, np.uint8), np.asarray(cv2.GaussianBlur(hard, (9, 9), 2), np.uint8))


def rocket() -> Picture:
    """Scikit-image's rocket, tall and thin, with a hard mask."""
    image = cv2.resize(data.rocket(), (192, 128), interpolation=cv2.INTER_AREA)
    return Picture(np.asarray(image, np.uint8), ellipse((128, 192), (64, 98), (50, 9)))


def lender(shape: tuple[int, int] = (160, 200)) -> Picture:
    """Grass with an orange ellipse in a corner: the rest can lend a scene."""
    alpha = ellipse(shape, (0.15 * shape[0], 0.85 * shape[1]), (0.09 * shape[0], 0.06 * shape[1]))
    grass = texture("grass", max(shape))[: shape[0], : shape[1]]
    return Picture(np.where(alpha[..., None] > 0, (255, 120, 30), grass).astype(np.uint8), alpha)


def edited(edit: Edit, picture: Picture, seed: int = 3) -> Picture:
    """The edited picture, with a donor for edits that need one; equal pictures share a subject."""
    donor = lender() if edit.needs.scene else blob_on_grass((90, 70))
    supplied = Supplied(label="cup", donors=(subject_of(donor),), donor_labels=("blob",))
    return edit.apply(subject_of(picture), np.random.default_rng(seed), supplied)


def subject_of(picture: Picture) -> Subject:
    """One subject for all pictures of these pixels, so that the fill is made once for many tests."""
    return _subject(picture.alpha.shape, picture.image.tobytes(), picture.alpha.tobytes())


@lru_cache(maxsize=64)
def _subject(shape: tuple[int, int], image: bytes, alpha: bytes) -> Subject:
    pixels = np.frombuffer(image, np.uint8).reshape(*shape, 3)  # read-only: an edit that changed it would fail
    return Subject(Picture(pixels, np.frombuffer(alpha, np.uint8).reshape(shape)))


PICTURES = {"blob": blob_on_grass, "cat": cat, "cup": cup, "rocket": rocket}
