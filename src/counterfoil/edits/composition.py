"""A picture as data: planes made once per photo, and the operations that make the picture of them.

An edit that returns its picture so need not make it: `Composition.draw` makes it here with OpenCV, which is the exact
way, and `counterfoil.device_rendering` makes many at once with torch. Planes that several pictures share, such as the
cut-out and the filled background, are the same array in each, so that they are sent to a device once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import Cutout, Matrix, Move, Window, object_window, paste, place, plan_move, repaint
from counterfoil.edits.matting import repeat_channels
from counterfoil.types import Picture

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
HUES = 180  # OpenCV counts hue in steps of two degrees, 0..179


class PictureLayer(ABC):
    """Colours, (height, width, 3): a plane, or an operation on other layers. Compared by identity."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Height and width."""

    @property
    def inputs(self) -> tuple[PictureLayer, ...]:
        """The layers that it is made of."""
        return ()

    @abstractmethod
    def draw(self) -> Bytes:
        """The colours, by OpenCV; an array that other pictures may share."""


@dataclass(frozen=True, eq=False)
class Plane(PictureLayer):
    """Colours that were made before."""

    pixels: Bytes

    @property
    def shape(self) -> tuple[int, int]:
        """Of the pixels."""
        return self.pixels.shape[0], self.pixels.shape[1]

    def draw(self) -> Bytes:
        """The pixels themselves."""
        return self.pixels


@dataclass(frozen=True, eq=False)
class Flat(PictureLayer):
    """One colour everywhere."""

    colour: tuple[int, int, int]
    size: tuple[int, int]  # height, width

    @property
    def shape(self) -> tuple[int, int]:
        """As given."""
        return self.size

    def draw(self) -> Bytes:
        """A new plane."""
        return np.full((*self.size, 3), self.colour, np.uint8)


@dataclass(frozen=True, eq=False)
class LayerOfOne(PictureLayer):
    """An operation on one layer, of whose size the result is."""

    of: PictureLayer

    @property
    def shape(self) -> tuple[int, int]:
        """As the layer's."""
        return self.of.shape

    @property
    def inputs(self) -> tuple[PictureLayer, ...]:
        """The one."""
        return (self.of,)


@dataclass(frozen=True, eq=False)
class LayerPart(LayerOfOne):
    """A window of a layer."""

    window: Window

    @property
    def shape(self) -> tuple[int, int]:
        """Of the window."""
        rows, columns = self.window
        return rows.stop - rows.start, columns.stop - columns.start

    def draw(self) -> Bytes:
        """A view."""
        return self.of.draw()[self.window]


@dataclass(frozen=True, eq=False)
class Levelled(LayerOfOne):
    """Every level exchanged for another, by a table of (256,) or, for each channel, (256, 3) levels."""

    table: Bytes

    def draw(self) -> Bytes:
        """By `cv2.LUT`."""
        table = self.table if self.table.ndim == 1 else self.table[None]
        return np.asarray(cv2.LUT(self.of.draw(), table), np.uint8)


@dataclass(frozen=True, eq=False)
class Grey(LayerOfOne):
    """The luma alone: 0.299 red + 0.587 green + 0.114 blue."""

    def draw(self) -> Bytes:
        """By OpenCV's whole numbers."""
        grey = cv2.cvtColor(self.of.draw(), cv2.COLOR_RGB2GRAY)
        return np.asarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2RGB), np.uint8)


@dataclass(frozen=True, eq=False)
class HueTurned(LayerOfOne):
    """Every hue turned by an angle, in floating point; saturation and value stay."""

    degrees: float

    def draw(self) -> Bytes:
        """In floating point: OpenCV's eight-bit hue would round each colour."""
        hsv = cv2.cvtColor(self.of.draw() / np.float32(255), cv2.COLOR_RGB2HSV)
        hsv[..., 0] = (hsv[..., 0] + np.float32(self.degrees)) % 360
        turned = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
        return np.asarray(np.rint(np.clip(turned, 0, 1) * 255), np.uint8)


@dataclass(frozen=True, eq=False)
class HueStepped(LayerOfOne):
    """Every hue in OpenCV's steps of two degrees turned by some steps, or set to one."""

    turn: NDArray[np.uint16] | int  # steps of each pixel, (height, width) or (1, 1)
    keep: bool = True  # whether the old hue is the start; else every hue becomes `turn`

    def draw(self) -> Bytes:
        """By OpenCV's eight-bit HSV."""
        colours = np.asarray(cv2.cvtColor(self.of.draw(), cv2.COLOR_RGB2HSV), np.uint8)
        old = colours[..., 0].astype(np.uint16)  # a sum of bytes would begin again at 256
        colours[..., 0] = (old + self.turn) % HUES if self.keep else self.turn
        return np.asarray(cv2.cvtColor(colours, cv2.COLOR_HSV2RGB), np.uint8)


@dataclass(frozen=True, eq=False)
class Smoothed(LayerOfOne):
    """A Gaussian blur of `kernel` x `kernel` pixels, mirrored at the border."""

    kernel: int
    sigma: float

    def draw(self) -> Bytes:
        """By OpenCV's whole numbers."""
        return np.asarray(cv2.GaussianBlur(self.of.draw(), (self.kernel, self.kernel), self.sigma))


@dataclass(frozen=True, eq=False)
class Noisy(LayerOfOne):
    """Noise added to every value and the sum rounded."""

    noise: Floats  # (height, width, 3)

    def draw(self) -> Bytes:
        """By `cv2.add`."""
        return np.asarray(cv2.add(self.of.draw(), self.noise, dtype=cv2.CV_8U), np.uint8)


@dataclass(frozen=True, eq=False)
class Covered(LayerOfOne):
    """A box of one colour before a layer; the pixels at its edges are covered in part."""

    rows: Floats  # (height,), the share of each row that the box covers
    columns: Floats  # (width,)
    colour: tuple[float, float, float]

    def draw(self) -> Bytes:
        """Mixed in floating point."""
        behind = self.of.draw()
        hidden = np.outer(self.rows, self.columns)[..., None]
        surface = np.broadcast_to(np.array(self.colour, np.float32), behind.shape)
        return np.rint(behind + hidden * (surface - behind)).astype(np.uint8)


class FootShadow(NamedTuple):
    """The shadow where an object touches the ground: how dark it is in each column, and around which row."""

    touch: Floats  # (1, width), 0..1
    middle: Floats  # (1, width), rows
    spread: float  # rows over which it fades

    def draw(self, height: int) -> Floats:
        """The shadow over a picture, (height, width), 0..1."""
        rows = np.arange(height, dtype=np.float32)[:, None]
        profile = np.exp(-(((rows - self.middle) / self.spread) ** 2))
        return np.asarray(profile * self.touch, np.float32)


@dataclass(frozen=True, eq=False)
class FootShaded(LayerOfOne):
    """A background with a contact shadow."""

    shadow: FootShadow
    strength: float  # share of the light that it takes

    def draw(self) -> Bytes:
        """A new plane."""
        light = 1 - np.float32(self.strength) * self.shadow.draw(self.shape[0])
        return np.asarray(np.rint(self.of.draw() * repeat_channels(np.ascontiguousarray(light))), np.uint8)


class ObjectLayer(NamedTuple):
    """An object alone, as `Cutout`, whose colours may be those of an operation."""

    colours: PictureLayer
    alpha: Bytes  # (height, width)
    background_share: float

    @classmethod
    def of(cls, cut: Cutout) -> ObjectLayer:
        """The object with its own colours."""
        return cls(Plane(cut.image), cut.alpha, cut.background_share)

    @property
    def window(self) -> Window:
        """The rows and columns of the object."""
        return object_window(self.alpha)

    def draw(self) -> Cutout:
        """With its colours made."""
        return Cutout(self.colours.draw(), self.alpha, self.background_share)


@dataclass(frozen=True, eq=False)
class SmoothedObject(PictureLayer):
    """The colours of an object in its window, blurred without those around it."""

    cut: ObjectLayer
    kernel: int
    sigma: float

    @property
    def shape(self) -> tuple[int, int]:
        """Of the window."""
        rows, columns = self.cut.window
        return rows.stop - rows.start, columns.stop - columns.start

    @property
    def inputs(self) -> tuple[PictureLayer, ...]:
        """The object's colours."""
        return (self.cut.colours,)

    def draw(self) -> Bytes:
        """Weighted by alpha, so that only the object's own colours are averaged."""
        cut, window = self.cut.draw(), self.cut.window
        share = cut.alpha[window] / np.float32(255)
        sums = self._blur(cut.image[window] * repeat_channels(share))
        weight = np.maximum(self._blur(share), np.float32(1e-6))
        return np.asarray(np.rint(sums / repeat_channels(weight)), np.uint8)

    def _blur(self, plane: Floats) -> Floats:
        return np.asarray(cv2.GaussianBlur(plane, (self.kernel, self.kernel), self.sigma), np.float32)


class _BeforeBackground(PictureLayer):
    """An object before a background."""

    cut: ObjectLayer
    behind: PictureLayer

    @property
    def shape(self) -> tuple[int, int]:
        """Of the background."""
        return self.behind.shape

    @property
    def inputs(self) -> tuple[PictureLayer, ...]:
        """The object's colours, and the background."""
        return self.cut.colours, self.behind


@dataclass(frozen=True, eq=False)
class Pasted(_BeforeBackground):
    """An object at its place before a background."""

    cut: ObjectLayer
    behind: PictureLayer

    def draw(self) -> Bytes:
        """A new plane."""
        return paste(self.cut.draw(), self.behind.draw())


@dataclass(frozen=True, eq=False)
class Repainted(PictureLayer):
    """A photo whose object has other colours, those of its window; the background stays."""

    photo: PictureLayer
    cut: ObjectLayer
    colours: PictureLayer

    @property
    def shape(self) -> tuple[int, int]:
        """Of the photo."""
        return self.photo.shape

    @property
    def inputs(self) -> tuple[PictureLayer, ...]:
        """The photo, the object's colours, and the new ones."""
        return self.photo, self.cut.colours, self.colours

    def draw(self) -> Bytes:
        """A new plane."""
        return repaint(self.photo.draw(), self.cut.draw(), self.colours.draw())


@dataclass(frozen=True, eq=False)
class Placed(_BeforeBackground):
    """An object moved by an affine map or in perspective, before a background; it takes its alpha with it."""

    cut: ObjectLayer
    matrix: Matrix  # (2, 3) or (3, 3)
    behind: PictureLayer

    @property
    def move(self) -> Move:
        """Where the object goes and how it is sampled; raises `Unusable` where it is too large."""
        return plan_move(self.cut.alpha, self.matrix, self.shape)

    def place(self) -> Picture:
        """The picture, and the object's alpha at its new place."""
        return place(self.cut.draw(), self.matrix, self.behind.draw())

    def draw(self) -> Bytes:
        """A new plane."""
        return self.place().image


@dataclass(frozen=True, eq=False)
class Composition:
    """A picture as data: its colours, and the alpha of its object."""

    image: PictureLayer
    alpha: Bytes | None = None  # (height, width); None: of the object that `image`, a `Placed`, moves

    @classmethod
    def of(cls, picture: Picture) -> Composition:
        """A picture that is made already."""
        return cls(Plane(picture.image), picture.alpha)

    def check(self) -> None:
        """Raises `Unusable` where the object is too large to move; a device makes many pictures at once."""
        if isinstance(self.image, Placed):
            _ = self.image.move

    def draw(self) -> Picture:
        """The picture by OpenCV, which is the exact way; raises `Unusable` where the object would leave it."""
        if self.alpha is None:
            assert isinstance(self.image, Placed)
            return self.image.place()
        image = self.image.draw()
        return Picture(image.copy() if isinstance(self.image, Plane) else image, self.alpha.copy())
