"""The resize, crop and normalisation before a network, compared with the library's own transform.

Preprocessing that is almost right moves accuracy by a point without notice. So when a model is loaded, ours is
compared with the library's own transform on trial pictures. Only where the two agree within two levels of 255 is our
faster one used; otherwise the library's transform runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.models.pillow_resize import Interpolation, ResizedCrop, resize_cropped
from counterfoil.plugins import import_extra
from counterfoil.types import Model, PhotoInput, Preprocessing


def compute_resized_size(width: int, height: int, shorter: int) -> tuple[int, int]:
    """Width and height with the shorter side as wanted; the longer is rounded down, as in torchvision."""
    if width <= height:
        return shorter, int(shorter * height / width)
    return int(shorter * width / height), shorter


class InputGeometry(NamedTuple):
    """How a picture comes to the size of a network."""

    size: tuple[int, int]  # height, width
    resize: int | None
    interpolation: Interpolation

    @classmethod
    def of(cls, wanted: Preprocessing) -> InputGeometry:
        """That of a preprocessing."""
        return cls(wanted.size, wanted.resize, wanted.interpolation)

    def place(self, width: int, height: int) -> ResizedCrop:
        """The size that a picture is resized to, and the part of it that is kept."""
        rows, columns = self.size
        if self.resize is None:
            return ResizedCrop(columns, rows, 0, 0, columns, rows)
        width, height = compute_resized_size(width, height, self.resize)
        return ResizedCrop(width, height, round((width - columns) / 2), round((height - rows) / 2), columns, rows)


def list_geometries(models: Sequence[Model]) -> tuple[InputGeometry, ...]:
    """The sizes that models' pictures come to by our own code, each once."""
    own = [model.preprocessing for model in models if type(model.preprocessing) is Preprocessing]
    return tuple(dict.fromkeys(map(InputGeometry.of, own)))


def resize_and_crop(image: NDArray[np.uint8], wanted: Preprocessing) -> NDArray[np.uint8]:
    """The picture at the network's size, in levels 0..255; bit for bit as Pillow and torchvision give it.

    A picture of the batch is resized once for all models; what a device made of it at that size is taken.
    """
    geometry = InputGeometry.of(wanted)
    place = geometry.place(image.shape[1], image.shape[0])
    if id(image) not in _SHARED.pictures:
        return resize_cropped(image, place, wanted.interpolation)
    key = id(image), geometry
    if key not in _SHARED.levels:
        _SHARED.levels[key] = resize_cropped(image, place, wanted.interpolation)
    return _SHARED.levels[key]


@lru_cache(maxsize=64)
def _normalised_levels(mean: float, std: float) -> NDArray[np.float32]:
    """A lookup table of the 256 normalised levels, five times as fast as computing them."""
    scaled = np.multiply(np.arange(256, dtype=np.uint8), 1 / np.float32(std), dtype=np.float32)
    return np.asarray(scaled - np.float32(mean) / np.float32(std), np.float32)


class _SharedInputs(threading.local):
    """The inputs that this thread prepared of the pictures of one batch, by picture and preprocessing."""

    pictures: frozenset[int] = frozenset()  # ids of arrays that live as long as the batch
    inputs: dict[tuple[int, str], NDArray[np.float32]]
    levels: dict[tuple[int, InputGeometry], NDArray[np.uint8]]  # resized, here or by a device


_SHARED = _SharedInputs()
MadeInputs: TypeAlias = Mapping[InputGeometry, Sequence[NDArray[np.uint8]]]  # of the pictures of a batch, in order


@contextmanager
def share_inputs(images: Sequence[NDArray[np.uint8]], made: MadeInputs = MappingProxyType({})) -> Iterator[None]:
    """Inside the block, a picture that several models of this thread take alike is resized and prepared once.

    What a device `made` of the pictures at a network's size is not made again.
    """
    _SHARED.pictures, _SHARED.inputs = frozenset(map(id, images)), {}
    _SHARED.levels = {
        (id(image), geometry): levels
        for geometry, rows in made.items()
        for image, levels in zip(images, rows, strict=True)
    }
    try:
        yield
    finally:
        _SHARED.pictures, _SHARED.inputs, _SHARED.levels = frozenset(), {}, {}


def prepare_input(image: NDArray[np.uint8], wanted: Preprocessing) -> NDArray[np.float32]:
    """The network's input, normalised: (3, height, width) or (height, width, 3); or the photo, where it takes that."""
    if id(image) not in _SHARED.pictures:
        return _prepare(image, wanted)
    key = id(image), repr(wanted)
    if key not in _SHARED.inputs:
        _SHARED.inputs[key] = _prepare(image, wanted)
    return _SHARED.inputs[key]


def _prepare(image: NDArray[np.uint8], wanted: Preprocessing) -> NDArray[np.float32]:
    if isinstance(wanted, PhotoInput):
        return np.ascontiguousarray(image.transpose(2, 0, 1), np.float32)
    levels = resize_and_crop(image, wanted)
    if wanted.colour_order == "BGR":
        levels = levels[:, :, ::-1]
    ready = np.empty((3, *levels.shape[:2]), np.float32)
    for plane, channel, mean, std in zip(ready, cv2.split(levels), wanted.mean, wanted.std, strict=True):
        cv2.LUT(channel, _normalised_levels(mean, std), plane)
    return ready if wanted.layout == "NCHW" else np.ascontiguousarray(ready.transpose(1, 2, 0))


LEVELS_ALLOWED = 2.0
_SIZES = ((375, 500), (500, 333), (640, 640), (120, 97))  # (height, width): landscape, portrait, square, small

Transform = Callable[[Image.Image], NDArray[np.float32]]  # a picture to (3, height, width), normalised
Fit = Callable[[Sequence[NDArray[np.uint8]], Preprocessing], NDArray[np.uint8]]  # pictures to (n, height, width, 3)


def resize_one_by_one(images: Sequence[NDArray[np.uint8]], wanted: Preprocessing) -> NDArray[np.uint8]:
    """The pictures at the network's size, side by side."""
    return np.stack([resize_and_crop(image, wanted) for image in images])


@dataclass(frozen=True)
class LibraryTransform(Preprocessing):
    """Preprocessing done by the library's own transform; size and the rest come from its configuration."""

    transform: str = ""


@dataclass(frozen=True)
class Preparation:
    """How a picture is prepared, and by which code."""

    preprocessing: Preprocessing
    how: str
    transform: Transform | None = None  # the library's, where ours is not equal
    fit: Fit = resize_one_by_one

    def picture(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The network's input, (3, height, width), normalised."""
        if self.transform is not None:
            return self.transform(Image.fromarray(image))
        return prepare_input(image, self.preprocessing)

    def levels(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """The pictures at the network's size in levels 0..255, (n, height, width, 3); only where ours is used."""
        geometry = InputGeometry.of(self.preprocessing)
        if _SHARED.pictures and all((id(image), geometry) in _SHARED.levels for image in images):
            return np.stack([_SHARED.levels[id(image), geometry] for image in images])
        return self.fit(images, self.preprocessing)


def accept_description(preprocessing: Preprocessing) -> Preparation:
    """The preprocessing that the user described, without a library to compare with."""
    return Preparation(preprocessing, "counterfoil, as described")


def verify_preparation(transform: Transform, guess: Preprocessing, library: str) -> Preparation:
    """Our preparation where it agrees with the library's on every trial picture, else the library's."""
    difference = measure_difference(transform, guess)
    if difference <= LEVELS_ALLOWED:
        description = f"counterfoil; differs from {library}'s own transform by at most {difference:.2f} levels of 255"
        return Preparation(guess, description)
    _, height, width = transform(Image.fromarray(make_trial_pictures()[0])).shape
    kept = LibraryTransform(
        **{**asdict(guess), "size": (height, width)}, transform=f"{library}: {_in_one_line(transform)}"
    )
    return Preparation(kept, f"{library}'s own transform; ours would differ by {difference:.1f} levels", transform)


def measure_difference(transform: Transform, guess: Preprocessing) -> float:
    """The largest difference, in levels 0..255, over trial pictures of several sizes."""
    scale = np.array(guess.std, np.float32).reshape(3, 1, 1)
    differences = []
    for image in make_trial_pictures():
        theirs = transform(Image.fromarray(image))
        if theirs.shape != (3, *guess.size) or not _crop_fits(guess):
            return float("inf")
        differences.append(float((np.abs(prepare_input(image, guess) - theirs) * scale).max()))
    return max(differences)


def _crop_fits(guess: Preprocessing) -> bool:
    """Whether the crop fits into the resized picture; else padding is needed, which only the library does."""
    return guess.resize is None or guess.resize >= max(guess.size)


def verify_faster_resize(preparation: Preparation, fit: Fit, name: str) -> Preparation:
    """The same preparation with a faster resize, where that too stays within the tolerance."""
    wanted = preparation.preprocessing
    if preparation.transform is not None:
        return preparation
    pairs = ((fit([image], wanted)[0].astype(int), resize_and_crop(image, wanted)) for image in make_trial_pictures())
    difference = max(int(np.abs(swift - exact).max()) for swift, exact in pairs)
    if difference > LEVELS_ALLOWED:
        return preparation
    return Preparation(
        wanted, f"{preparation.how}; resized by {name}, at most {difference} levels from Pillow", fit=fit
    )


def make_trial_pictures() -> Sequence[NDArray[np.uint8]]:
    """Fixed pictures with structure at every scale, which show differences of a resize better than photos."""
    rng = np.random.default_rng(20)
    return [_make_trial_picture(rng, height, width) for height, width in _SIZES]


def _make_trial_picture(rng: np.random.Generator, height: int, width: int) -> NDArray[np.uint8]:
    picture = np.zeros((height, width, 3))
    for cells in (4, 16, 64, 256):
        grid = rng.uniform(-1, 1, (cells, cells, 3))
        picture += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(127 + 60 * picture, 0, 255).astype(np.uint8)


def _in_one_line(transform: Transform) -> str:
    return " ".join(str(transform).split())


def resize_with_torch(images: Sequence[NDArray[np.uint8]], wanted: Preprocessing) -> NDArray[np.uint8]:
    """The pictures at the network's size in levels 0..255, side by side.

    Variants of one photo have one size and are resized together: threads that call torch once for many pictures
    rarely wait for the GIL.
    """
    if wanted.interpolation == "lanczos":  # torch has no such filter
        return np.stack([resize_and_crop(image, wanted) for image in images])
    if len({image.shape for image in images}) > 1:
        return np.concatenate([_resize_block(image[None], wanted) for image in images])
    return _resize_block(np.stack(images), wanted)


def _resize_block(block: NDArray[np.uint8], wanted: Preprocessing) -> NDArray[np.uint8]:
    """Pictures of one size, (n, height, width, 3)."""
    rows, columns = wanted.size
    height, width = block.shape[1:3]
    if wanted.resize is None:
        return _interpolate(block, columns, rows, wanted.interpolation)
    whole = compute_resized_size(width, height, wanted.resize)
    resized = block if whole == (width, height) else _interpolate(block, *whole, wanted.interpolation)
    left, top = round((whole[0] - columns) / 2), round((whole[1] - rows) / 2)
    return resized[:, top : top + rows, left : left + columns]


def _interpolate(block: NDArray[np.uint8], width: int, height: int, interpolation: str) -> NDArray[np.uint8]:
    torch = import_extra("torch", "torch")
    tensor = torch.from_numpy(block).permute(0, 3, 1, 2)
    resized = torch.nn.functional.interpolate(tensor, size=(height, width), mode=interpolation, antialias=True)
    levels: NDArray[np.uint8] = resized.permute(0, 2, 3, 1).numpy()
    return levels
