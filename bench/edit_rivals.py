"""The same small steps by our functions and by common libraries: moving, pasting and recolouring an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from PIL import Image
from skimage import data
from torchvision.transforms import v2

from counterfoil.edits.background_colour import turn_hue
from counterfoil.edits.cutout import Cutout, paste, place

SIDE = 400
DEGREES, SCALE, SHIFT = 20.0, 0.8, (12, -7)
HUE_SHARE = 0.2  # of the colour circle
HUE_STEP = np.full((1, 1), round(HUE_SHARE * 180), np.uint16)


class Pair(NamedTuple):
    """One step done by both."""

    name: str
    theirs: Callable[[], Any]
    ours: Callable[[], Any]


def _square(image: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.asarray(cv2.resize(np.asarray(image, np.uint8), (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)


OBJECT, BEHIND = _square(data.astronaut()), _square(data.chelsea()[:, :300])
DOWN, ACROSS = np.mgrid[:SIDE, :SIDE]
ALPHA = np.clip((110 - np.hypot(DOWN - 190, ACROSS - 210)) * 40, 0, 255).astype(np.uint8)  # a third of the picture
CUT = Cutout(OBJECT, ALPHA, 0.7)
TENSOR = torch.from_numpy(np.dstack([OBJECT, ALPHA])).permute(2, 0, 1).contiguous()
COLOURS = TENSOR[:3].contiguous()
PICTURES = [Image.fromarray(plane) for plane in (OBJECT, BEHIND, ALPHA)]


def _matrix() -> Any:
    matrix = np.asarray(cv2.getRotationMatrix2D(((SIDE - 1) / 2, (SIDE - 1) / 2), DEGREES, SCALE))
    matrix[:, 2] += SHIFT
    return matrix


def _moved_by_torchvision() -> Any:
    """Object and alpha through the affine map, then over the background."""
    moved = v2.functional.affine(
        TENSOR, angle=-DEGREES, translate=list(SHIFT), scale=SCALE, shear=[0.0, 0.0],
        interpolation=v2.InterpolationMode.BILINEAR,
    )  # fmt: skip
    layers = moved.permute(1, 2, 0).numpy()
    return Image.composite(Image.fromarray(layers[..., :3]), PICTURES[1], Image.fromarray(layers[..., 3]))


MOVE = Pair("affine of an RGBA object, over a background", _moved_by_torchvision, lambda: place(CUT, _matrix(), BEHIND))
PASTE = Pair("composite", lambda: np.asarray(Image.composite(*PICTURES)), lambda: paste(CUT, BEHIND))
HUE = Pair("hue", lambda: v2.functional.adjust_hue(COLOURS, HUE_SHARE), lambda: turn_hue(OBJECT, HUE_STEP))
