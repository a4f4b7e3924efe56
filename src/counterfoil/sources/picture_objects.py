"""Pictures and masks given as arrays, tensors, Pillow pictures, bytes or paths, turned into pixels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.errors import Unusable
from counterfoil.sources.pixels import (
    decode_mask,
    decode_photo,
    grade_mask,
    mask_from_picture,
    read_mask,
    read_photo,
    turn_upright,
)

_CHANNELS = (1, 3, 4)
_NORMALISED = (
    "its values are {low:.2f} to {high:.2f}, expected levels 0 to 255 as uint8 or 0 to 1 as float; if a transform"
    " normalises them, give it to the model instead of the data set"
)


def convert_image(given: Any) -> NDArray[np.uint8]:
    """The picture, (height, width, 3), RGB; raises `Unusable` where it is none."""
    if isinstance(given, Image.Image):
        return turn_upright(given)
    if isinstance(given, str | Path):
        return read_photo(Path(given))
    if isinstance(given, bytes):
        return decode_photo(given)
    if isinstance(given, Mapping) and ("bytes" in given or "path" in given):  # Hugging Face, not decoded
        return decode_photo(given["bytes"]) if given.get("bytes") else read_photo(Path(given["path"]))
    return _levels_to_rgb(_to_levels(_to_array(given)))


def convert_mask(given: Any) -> NDArray[np.uint8]:
    """The mask, (height, width), 255 on the object; raises `Unusable` where it is none."""
    if isinstance(given, Image.Image):
        return mask_from_picture(given)
    if isinstance(given, str | Path):
        return read_mask(Path(given))
    if isinstance(given, bytes):
        return decode_mask(given)
    if isinstance(given, Mapping) and ("bytes" in given or "path" in given):
        return decode_mask(given["bytes"]) if given.get("bytes") else read_mask(Path(given["path"]))
    values = _to_array(given)
    values = values[0] if values.ndim == 3 and values.shape[0] == 1 else values
    values = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if values.ndim != 2:
        raise Unusable(f"its mask has the shape {values.shape}, expected (height, width)")
    return grade_mask(_to_levels(values) if values.dtype != np.bool_ else values.astype(np.uint8) * 255)


def _to_array(given: Any) -> NDArray[Any]:
    """An array or tensor; torch's go through `numpy`, from whichever device."""
    if hasattr(given, "detach") and hasattr(given, "cpu"):
        given = given.detach().cpu()
        given = given.float() if given.is_floating_point() else given  # NumPy has no bfloat16
    if given is None or not hasattr(given, "__array__"):
        raise Unusable(f"it is a {type(given).__name__}, expected an array, a tensor, a Pillow picture or a path")
    return np.asarray(given)


def _to_levels(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Levels 0..255; floats must be shares 0..1, since normalised values cannot be told back."""
    if values.dtype == np.uint8 or not values.size:
        return np.asarray(values, np.uint8)
    if values.dtype.kind not in "biuf":
        raise Unusable(f"its values are of type {values.dtype}, expected levels 0 to 255 as uint8 or 0 to 1 as float")
    low, high = float(values.min()), float(values.max())
    if values.dtype.kind == "f" and low >= -1e-6 and high <= 1 + 1e-6:
        return np.asarray(np.clip(np.rint(values * 255), 0, 255), np.uint8)
    if values.dtype.kind in "iu" and low >= 0 and high <= 255:
        return values.astype(np.uint8)
    raise Unusable(_NORMALISED.format(low=low, high=high))


def _levels_to_rgb(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey, RGB or RGBA with the channels last or first."""
    if values.ndim == 2:
        return np.repeat(values[:, :, None], 3, axis=2)
    if values.ndim == 3 and values.shape[2] not in _CHANNELS and values.shape[0] in _CHANNELS:
        values = np.ascontiguousarray(values.transpose(1, 2, 0))
    if values.ndim != 3 or values.shape[2] not in _CHANNELS or not values.size:
        raise Unusable(f"it has the shape {values.shape}, expected (height, width, 3) or (3, height, width)")
    if values.shape[2] == 1:
        return np.repeat(values, 3, axis=2)
    return turn_upright(Image.fromarray(values)) if values.shape[2] == 4 else np.ascontiguousarray(values)
