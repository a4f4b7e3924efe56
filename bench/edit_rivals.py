"""The same small steps by our functions and by common libraries: moving, pasting and recolouring an object.

torchvision samples a moved object once per pixel and linearly, with colours that are not weighted by alpha: it is less
exact at edges and where the object shrinks. `ALIKE` is the same library taken to our quality, and `exact_move` tells
how far each is from the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from skimage import data
from torchvision.transforms import v2

from counterfoil.edits.composition import HueStepped, Plane
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


def _moved_finely_by_torchvision() -> Any:
    """As ours: colours weighted by alpha, two by two samples per pixel."""
    share = torch.from_numpy(ALPHA) / 255
    layer = torch.cat([COLOURS * share, TENSOR[3:].float()])
    wide = torch.nn.functional.pad(layer, [SIDE // 2] * 4)  # twice the side, since an output is as large as its input
    moved = v2.functional.affine(
        wide, angle=-DEGREES, translate=[2 * step for step in SHIFT], scale=2 * SCALE, shear=[0.0, 0.0],
        interpolation=v2.InterpolationMode.BILINEAR,
    )  # fmt: skip
    moved = torch.nn.functional.avg_pool2d(moved, 2)
    behind = torch.from_numpy(BEHIND).permute(2, 0, 1) * (1 - moved[3:] / 255)
    return (moved[:3] + behind).round().to(torch.uint8).permute(1, 2, 0).numpy()


def exact_move(samples: int = 8) -> NDArray[np.float64]:
    """The moved object over the background in f64: so many by so many cubic samples per pixel, by Keys' kernel."""
    layer = np.dstack([OBJECT * (ALPHA[..., None] / 255), ALPHA.astype(np.float64)])
    back, steps = cv2.invertAffineTransform(_matrix()), (np.arange(samples) + 0.5) / samples - 0.5
    total = np.zeros((SIDE, SIDE, 4))
    for step_down in steps:
        for step_across in steps:
            places = [row[0] * (ACROSS + step_across) + row[1] * (DOWN + step_down) + row[2] for row in back]
            total += _sample_by_keys(layer, *places)
    moved = total / samples**2
    alpha = np.clip(moved[..., 3:], 0, 255)
    return np.asarray(np.clip(moved[..., :3], 0, alpha) + BEHIND * (1 - alpha / 255))


def _sample_by_keys(layer: NDArray[np.float64], across: Any, down: Any) -> NDArray[np.float64]:
    padded = np.pad(layer, ((3, 3), (3, 3), (0, 0)))
    left, top = (np.clip(np.floor(places).astype(int), -2, SIDE) for places in (across, down))
    result = np.zeros((SIDE, SIDE, 4))
    for row in range(-1, 3):
        for column in range(-1, 3):
            weight = _keys(across - left - column) * _keys(down - top - row)
            result += weight[..., None] * padded[top + row + 3, left + column + 3]
    return result


def _keys(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    away = np.abs(distance)
    near, far = (1.5 * away - 2.5) * away**2 + 1, ((-0.5 * away + 2.5) * away - 4) * away + 2
    return np.where(away < 1, near, np.where(away < 2, far, 0))


MOVE = Pair("affine of an RGBA object, over a background", _moved_by_torchvision, lambda: place(CUT, _matrix(), BEHIND))
ALIKE = Pair("the same, torchvision at our quality", _moved_finely_by_torchvision, MOVE.ours)
PASTE = Pair("composite", lambda: np.asarray(Image.composite(*PICTURES)), lambda: paste(CUT, BEHIND))
HUE = Pair(
    "hue", lambda: v2.functional.adjust_hue(COLOURS, HUE_SHARE), lambda: HueStepped(Plane(OBJECT), HUE_STEP).draw()
)
