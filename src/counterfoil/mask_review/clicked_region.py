"""The region that a click means: grown onto the mask, or cut from it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.object_mask import Flags

ClickKind: TypeAlias = Literal["grow", "cut"]
_WINDOW = 0.22  # of the longer side, to each side of the click: how far a region may reach
_FRAME = 0.06  # of the window: the margin that stays as it is, so that a region ends at an edge and not at the window
_DISC = 0.012  # of the longer side: the radius around the click that surely changes
_ROUNDS = 2  # of GrabCut
_MOST_AT_ONCE = 288  # pixels of the window's longer side; larger windows are computed smaller


def change_region(image: NDArray[np.uint8], mask: Flags, point: tuple[int, int], kind: ClickKind) -> Flags:
    """The mask with the region around a click added or taken away.

    GrabCut separates the window around the click by colour: the present mask says what is probably object, the spot
    that was clicked surely is (grow) or surely is not (cut), and what has its colour probably too. Of what changes,
    only the piece that holds the click is taken, so that the rest of the mask stays as it is.

    Args:
        image: The photo, (height, width, 3), RGB.
        mask: The object so far, (height, width).
        point: Column and row of the click.
        kind: "grow" adds to the mask, "cut" takes away.

    Returns:
        The new mask.
    """
    height, width = mask.shape
    longer = max(height, width)
    column, row = min(max(point[0], 0), width - 1), min(max(point[1], 0), height - 1)
    reach = max(8, round(_WINDOW * longer))
    rows = slice(max(0, row - reach), min(height, row + reach + 1))
    columns = slice(max(0, column - reach), min(width, column + reach + 1))
    spot = np.zeros((height, width), np.uint8)
    cv2.circle(spot, (column, row), max(2, round(_DISC * longer)), 1, -1)
    seed = spot[rows, columns] == 1
    region = _separate(image[rows, columns], mask[rows, columns], seed, kind)
    changed = np.zeros((height, width), np.bool_)
    changed[rows, columns] = _hold_piece(region | seed, seed)
    return np.asarray(mask | changed if kind == "grow" else mask & ~changed)


def _separate(image: NDArray[np.uint8], mask: Flags, seed: Flags, kind: ClickKind) -> Flags:
    """The pixels of the window that GrabCut gives another side than the mask does, in the direction of the click."""
    height, width = mask.shape
    scale = min(1.0, _MOST_AT_ONCE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    spot, there = _resize(seed, size), _resize(mask, size)
    alike = _find_alike(small, spot)
    labels = np.where(there, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    if kind == "grow":
        labels[alike] = cv2.GC_PR_FGD
        labels[there | spot] = cv2.GC_FGD  # what is object stays object
    else:
        labels[alike] = cv2.GC_PR_BGD
        labels[spot] = cv2.GC_BGD
    margin = _find_margin(labels.shape) & ~spot
    labels[margin] = np.where(there[margin], cv2.GC_FGD, cv2.GC_BGD)
    object_there = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD))
    if object_there.all() or not object_there.any():
        return seed
    cv2.setRNGSeed(0)  # GrabCut's first colours are drawn at random
    cv2.grabCut(small, labels, (0, 0, 1, 1), np.zeros((1, 65)), np.zeros((1, 65)), _ROUNDS, cv2.GC_INIT_WITH_MASK)
    separated = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD))
    full = _resize(separated, (width, height))
    return np.asarray(full & ~mask if kind == "grow" else mask & ~full)


def _find_margin(shape: tuple[int, ...]) -> Flags:
    """The outermost rows and columns of a window."""
    width = max(1, round(_FRAME * max(shape)))
    margin = np.ones(shape, np.bool_)
    margin[width:-width, width:-width] = False
    return margin


def _find_alike(image: NDArray[np.uint8], spot: Flags) -> Flags:
    """The pixels whose colour is near that of the spot, by Otsu's threshold on the distance in CIELAB."""
    colours = cv2.cvtColor(image, cv2.COLOR_RGB2LAB).astype(np.float32)
    distance = np.linalg.norm(colours - colours[spot].mean(axis=0), axis=2)
    levels = np.clip(distance, 0, 255).astype(np.uint8)
    bound, _ = cv2.threshold(levels, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    return np.asarray(levels <= bound)


def _resize(flags: Flags, size: tuple[int, int]) -> Flags:
    return np.asarray(cv2.resize(flags.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) == 1)


def _hold_piece(region: Flags, seed: Flags) -> Flags:
    """The connected pieces of a region that touch the seed."""
    _, pieces = cv2.connectedComponents(region.astype(np.uint8), connectivity=4)
    touched = np.unique(pieces[seed])
    return np.asarray(np.isin(pieces, touched[touched > 0]))
