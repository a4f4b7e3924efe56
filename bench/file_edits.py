"""The usual script for comparison: the same twenty edits with Pillow, each picture written to a file.

The object is pasted with its mask, softened by a pixel; what was behind it is inpainted once per photo. Simpler than
our edits (no matting, no colours cleaned at the edge, no exact size), so the comparison favours the script.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image, ImageFilter

WORKING_SIZE = 384
INPAINT_RADIUS = 3
JPEG_QUALITY = 95  # PNG ignores it


class Task(NamedTuple):
    """One photo of the job: where everything is, and who lends it backgrounds."""

    image: Path
    mask: Path
    place: Path  # without suffix; the edits' names are appended
    donors: tuple[Path, ...]  # places
    suffix: str


class Scene(NamedTuple):
    """A photo taken apart."""

    photo: Image.Image
    mask: Image.Image
    background: Image.Image
    box: tuple[int, int, int, int]

    @property
    def cut(self) -> tuple[Image.Image, Image.Image]:
        """The object and its mask alone."""
        return self.photo.crop(self.box), self.mask.crop(self.box)


def write_background(task: Task) -> Path:
    """The first pass: the photo without its object."""
    photo, mask = _opened(task)
    hole = cv2.dilate(np.array(mask.point(lambda value: 255 * (value > 0))), np.ones((9, 9), np.uint8))
    filled = cv2.inpaint(np.array(photo), hole, INPAINT_RADIUS, cv2.INPAINT_TELEA)
    return _save(task, "removed", Image.fromarray(filled))


def write_edits(task: Task) -> list[Path]:
    """The second pass: every other edit."""
    photo, mask = _opened(task)
    with Image.open(_file(task, "removed")) as opened:
        background = opened.convert("RGB")
    box = mask.point(lambda value: 255 * (value > 127)).getbbox() or (0, 0, *photo.size)
    scene, rng = Scene(photo, mask, background, box), random.Random(str(task.image.name))
    made = [_save(task, name, edit(scene)) for name, edit in _edits(task, rng)]
    return [task.image, _file(task, "removed"), *made]


def _opened(task: Task) -> tuple[Image.Image, Image.Image]:
    with Image.open(task.image) as opened:
        photo = opened.convert("RGB")
    with Image.open(task.mask) as opened:
        mask = opened.convert("L")
    scale = min(1.0, WORKING_SIZE / min(photo.size))
    size = (round(photo.width * scale), round(photo.height * scale))
    smooth = mask.resize(size, Image.Resampling.BILINEAR).filter(ImageFilter.GaussianBlur(1))
    return photo.resize(size, Image.Resampling.LANCZOS), smooth


def _file(task: Task, name: str) -> Path:
    return task.place.with_name(f"{task.place.name}-{name}.{task.suffix}")


def _save(task: Task, name: str, picture: Image.Image) -> Path:
    picture.save(_file(task, name), quality=JPEG_QUALITY)
    return _file(task, name)


def _edits(task: Task, rng: random.Random) -> Iterator[tuple[str, Callable[[Scene], Image.Image]]]:
    yield "control", lambda scene: _before(scene, scene.background)
    for number, donor in enumerate(task.donors):
        yield f"swap-{number}", partial(_swapped, donor=donor.with_name(f"{donor.name}-removed.{task.suffix}"))
    for grey in (0, 128, 255):
        yield f"plain-{grey}", partial(_plain, grey=grey)
    for sigma in (1.5, 3.0, 6.0):
        yield f"blur-{sigma}", partial(_blurred, sigma=sigma)
    yield "size-full", _cropped
    for rate in (0.3, 0.2, 0.1, 0.05):
        yield f"size-{rate}", partial(_zoomed, rate=rate)
    yield "position", partial(_moved, rate=None, rng=rng)
    yield "position-0.05", partial(_moved, rate=0.05, rng=rng)
    for number in range(3):
        yield f"direction-{number}", partial(_turned, angle=rng.randint(-45, 45))


def _before(scene: Scene, background: Image.Image) -> Image.Image:
    result = background.copy()
    result.paste(scene.photo, (0, 0), scene.mask)
    return result


def _swapped(scene: Scene, donor: Path) -> Image.Image:
    with Image.open(donor) as opened:
        return _before(scene, opened.convert("RGB").resize(scene.photo.size, Image.Resampling.BICUBIC))


def _plain(scene: Scene, grey: int) -> Image.Image:
    return _before(scene, Image.new("RGB", scene.photo.size, (grey, grey, grey)))


def _blurred(scene: Scene, sigma: float) -> Image.Image:
    return _before(scene, scene.background.filter(ImageFilter.GaussianBlur(sigma)))


def _cropped(scene: Scene) -> Image.Image:
    return scene.photo.crop(scene.box).resize(scene.photo.size, Image.Resampling.BICUBIC)


def _zoomed(scene: Scene, rate: float) -> Image.Image:
    cut, mask = _at_rate(scene, rate)
    return _pasted(scene, cut, mask, _centred(scene, cut))


def _moved(scene: Scene, rate: float | None, rng: random.Random) -> Image.Image:
    cut, mask = scene.cut if rate is None else _at_rate(scene, rate)
    room = (max(0, scene.photo.width - cut.width), max(0, scene.photo.height - cut.height))
    return _pasted(scene, cut, mask, (rng.randint(0, room[0]), rng.randint(0, room[1])))


def _turned(scene: Scene, angle: int) -> Image.Image:
    cut, mask = (plane.rotate(angle, Image.Resampling.BICUBIC, expand=True) for plane in scene.cut)
    return _pasted(scene, cut, mask, _centred(scene, cut))


def _at_rate(scene: Scene, rate: float) -> tuple[Image.Image, Image.Image]:
    cut, mask = scene.cut
    current = np.count_nonzero(np.asarray(mask) > 127) / (scene.photo.width * scene.photo.height)
    factor = (rate / max(current, 1e-6)) ** 0.5
    size = (max(1, round(cut.width * factor)), max(1, round(cut.height * factor)))
    return cut.resize(size, Image.Resampling.BICUBIC), mask.resize(size, Image.Resampling.BICUBIC)


def _centred(scene: Scene, cut: Image.Image) -> tuple[int, int]:
    left, top, right, bottom = scene.box
    return (left + right - cut.width) // 2, (top + bottom - cut.height) // 2


def _pasted(scene: Scene, cut: Image.Image, mask: Image.Image, corner: tuple[int, int]) -> Image.Image:
    result = scene.background.copy()
    result.paste(cut, corner, mask)
    return result
