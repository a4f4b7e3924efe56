"""The photos that the background model learns from: unpacked once, then cut, pasted and masked on the device."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

SIDE = 256  # of the photos
HELD_OUT = 128  # photos that no training sees; the same ones as the prototype's
WHOLE_SHARE = 0.6  # of the photos keep every pixel as it is: resampling softens what the model shall learn
KIND_SHARES = (0.45, 0.35, 0.2)  # an object is known; the background around a hole is known; nothing is known
FILLED_SHARE = 0.5  # of the photos have their object replaced by a smooth fill
FILL_WEIGHT, EDGE_WEIGHT = 0.02, 0.1  # in the loss; real background has 1


class Batch(NamedTuple):
    """What one step of training sees; pictures from -1 to 1."""

    pictures: Tensor  # (n, 3, SIDE, SIDE)
    known: Tensor  # (n, 1, SIDE, SIDE), 1 where the model is told the colours
    weights: Tensor  # (n, 1, SIDE, SIDE), how much the loss cares


class Photos(NamedTuple):
    """The pack on the device."""

    images: Tensor  # (n, 3, SIDE, SIDE), bytes
    filled: Tensor  # the same without their objects
    backgrounds: Tensor  # (n, 1, 64, 64), 1 on sure background
    objects: Tensor  # (n, 1, 64, 64), 1 well inside of the object

    def batch(self, count: int) -> Batch:
        """Pictures of three kinds, their objects pasted or their holes cut at random places."""
        device = self.images.device
        chosen, others = (torch.randint(len(self.images), (count,), device=device) for _ in range(2))
        frames, other_frames = _frames(count, device), _pasting_frames(count, device)
        is_filled = _chance(count, FILLED_SHARE, device)
        pictures = _seen(torch.where(is_filled, self.filled[chosen], self.images[chosen]).float(), frames) / 127.5 - 1
        background = _seen(self.backgrounds[chosen].float(), frames)
        own = (_seen(self.objects[chosen].float(), frames) > 0.5) & ~is_filled
        weights = torch.where(is_filled, background.clamp(min=FILL_WEIGHT), background.clamp(min=EDGE_WEIGHT))
        shape = functional.grid_sample(self.objects[others].float(), other_frames, align_corners=False) > 0.5
        colours = _seen(self.images[others].float(), other_frames) / 127.5 - 1
        draw = torch.rand(count, 1, 1, 1, device=device)
        pasted, holed = draw < KIND_SHARES[0], draw >= 1 - KIND_SHARES[1]
        pictures = torch.where(pasted & shape, colours, pictures)
        around = (background > 0.99) & ~_grown(shape)
        known = torch.where(pasted, shape | own, torch.where(holed, around | own, torch.zeros_like(own))).float()
        return Batch(pictures.clamp(-1, 1), known, weights * (1 - known))


def load_photos(pack: Path, left_out: Path | None, device: str, limit: int | None = None) -> Photos:
    """Unpack every photo that may be learnt from; `left_out` holds the numbers of more that may not."""
    with np.load(pack) as stored:
        offsets, blob, packed = stored["off"], stored["blob"], stored["mask"]
    numbers = learnt_from(len(packed), left_out)[:limit]
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda i: _decoded(blob[offsets[i] : offsets[i + 1]].tobytes()), numbers))
    images = torch.from_numpy(np.stack(found)).permute(0, 3, 1, 2).contiguous().to(device)
    flat = np.unpackbits(packed[numbers], axis=1).reshape(-1, 1, 64, 64)
    backgrounds = torch.from_numpy(flat).to(device)
    objects = 1 - functional.max_pool2d(backgrounds.float(), 3, stride=1, padding=1)
    parts = zip(images.split(256), backgrounds.split(256), strict=True)
    return Photos(images, torch.cat([_without_object(*part) for part in parts]), backgrounds, objects.byte())


def learnt_from(count: int, left_out: Path | None) -> NDArray[np.int64]:
    """The numbers of the photos to train on."""
    # The old generator, since the prototype drew its held-out photos with it.
    numbers = np.random.RandomState(0).permutation(count)[HELD_OUT:]
    return numbers if left_out is None else numbers[~np.isin(numbers, np.load(left_out))]


def _decoded(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def _without_object(images: Tensor, backgrounds: Tensor) -> Tensor:
    """The photos with their objects filled by the colours around them, in bytes."""
    enlarged = functional.interpolate(backgrounds.float(), size=(SIDE, SIDE), mode="bilinear")
    known = (enlarged > 0.999).float()
    return smooth_fill(images.float(), known).round().clamp(0, 255).byte()


def smooth_fill(images: Tensor, known: Tensor) -> Tensor:
    """Unknown pixels from the mean of known ones, taken at the finest scale that has any."""
    levels = [(images * known, known)]
    while levels[-1][0].shape[-1] > 2:
        colours, share = (functional.avg_pool2d(plane, 2) for plane in levels[-1])
        there = (share > 0).float()
        levels.append((colours / share.clamp(min=1e-6) * there, there))
    result = levels[-1][0] / levels[-1][1].clamp(min=1e-6)
    for colours, there in reversed(levels[:-1]):
        coarse = functional.interpolate(result, size=colours.shape[-2:], mode="bilinear", align_corners=False)
        result = colours * there + coarse * (1 - there)
    return result


def _frames(count: int, device: torch.device) -> Tensor:
    """Which part of each photo is seen: the whole one moved by whole pixels, or a larger or smaller part."""
    whole = torch.rand(count, device=device) < WHOLE_SHARE
    scale = torch.where(whole, torch.ones(count, device=device), torch.empty(count, device=device).uniform_(0.85, 1.3))
    moves = torch.randint(-40, 41, (2, count), device=device) / (SIDE / 2)
    return _grid(scale, moves, _flips(count, device))


def _pasting_frames(count: int, device: torch.device) -> Tensor:
    """Where another photo's object lands: smaller or larger, anywhere."""
    scale = torch.empty(count, device=device).uniform_(0.8, 2.2)
    moves = torch.empty(2, count, device=device).uniform_(-0.8, 0.8)
    return _grid(scale, moves, _flips(count, device))


def _flips(count: int, device: torch.device) -> Tensor:
    return torch.where(torch.rand(count, device=device) < 0.5, -1.0, 1.0)


def _grid(scale: Tensor, moves: Tensor, flips: Tensor) -> Tensor:
    maps = torch.zeros(len(scale), 2, 3, device=scale.device)
    maps[:, 0, 0], maps[:, 1, 1] = scale * flips, scale
    maps[:, 0, 2], maps[:, 1, 2] = moves[0], moves[1]
    return functional.affine_grid(maps, [len(scale), 3, SIDE, SIDE], align_corners=False)


def _seen(planes: Tensor, frames: Tensor) -> Tensor:
    how = "bicubic" if planes.shape[-1] == SIDE else "bilinear"
    return functional.grid_sample(planes, frames, mode=how, padding_mode="reflection", align_corners=False)


def _grown(flags: Tensor) -> Tensor:
    return functional.max_pool2d(flags.float(), 9, stride=1, padding=4) > 0.5


def _chance(count: int, share: float, device: torch.device) -> Tensor:
    return torch.rand(count, 1, 1, 1, device=device) < share
