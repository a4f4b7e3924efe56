"""ImageNet-C's digital corruptions: brightness, contrast, elastic transform, pixelate, JPEG."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from counterfoil.edits.composition import Levelled, PictureLayer, Plane
from counterfoil.edits.corruptions.corruption_layers import Brightened, Displaced
from counterfoil.edits.corruptions.severity import Bytes, ComposedCorruption, Corruption, Floats, truncate_levels

BRIGHTNESS = (0.1, 0.2, 0.3, 0.4, 0.5)  # added to the value of HSV, of the range from black to white
CONTRAST = (0.4, 0.3, 0.2, 0.1, 0.05)  # share of the contrast that is left
ELASTIC = (12.5, 16.25, 21.25, 25.0, 30.0)  # times the smoothed displacement
ELASTIC_SIGMA, ELASTIC_REACH = 0.01, 0.005  # of the height and width
PIXELATE = (0.6, 0.5, 0.4, 0.3, 0.25)  # share of the pixels that is left each way
QUALITY = (25, 18, 15, 10, 7)


@dataclass(frozen=True)
class Brightness(ComposedCorruption):
    """Raise the value of every pixel in HSV, its hue and saturation kept."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The brighter picture; black becomes gray."""
        added = 255 * BRIGHTNESS[self.severity - 1]
        return Brightened(image, added)


@dataclass(frozen=True)
class ContrastCorruption(ComposedCorruption):
    """Draw every channel towards its mean."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The flatter picture."""
        left = CONTRAST[self.severity - 1]
        mean = np.array(cv2.mean(image.pixels)[:3])
        table = truncate_levels(((np.arange(256)[:, None] - mean) * left + mean).astype(np.float32))
        return Levelled(image, table)


@dataclass(frozen=True)
class ElasticTransform(ComposedCorruption):
    """Push pixels about by a smooth random field."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The distorted picture."""
        height, width = image.shape
        across, down = (self._draw_field((height, width), rng) for _ in range(2))
        across += np.arange(width, dtype=np.float32)
        down += np.arange(height, dtype=np.float32)[:, None]
        return Displaced(image, across, down)

    def _draw_field(self, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Displacements in pixels."""
        # A wide blur removes fine detail, so a grid `step` times as coarse will do, with noise as much weaker.
        step = max(1, int(ELASTIC_SIGMA * min(shape) / 4))
        small = (-(-shape[0] // step), -(-shape[1] // step))
        noise = rng.random(small, np.float32)
        noise -= np.float32(0.5)
        noise *= np.float32(2 * ELASTIC_REACH * shape[0] * ELASTIC[self.severity - 1] / step)
        down, across = (ELASTIC_SIGMA * length / step for length in shape)
        size = (2 * int(3 * across + 0.5) + 1, 2 * int(3 * down + 0.5) + 1)
        field = cv2.GaussianBlur(noise, size, across, sigmaY=down, borderType=cv2.BORDER_REFLECT)
        if step > 1:
            field = cv2.resize(field, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)
        return np.asarray(field, np.float32)


@dataclass(frozen=True)
class Pixelate(Corruption):
    """Reduce the picture and enlarge it again without smoothing."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The picture with large pixels."""
        share = PIXELATE[self.severity - 1]
        height, width = image.shape[:2]
        small = Image.fromarray(image).resize((int(width * share), int(height * share)), Image.Resampling.BOX)
        return np.array(small.resize((width, height), Image.Resampling.NEAREST))


@dataclass(frozen=True)
class JpegCompression(Corruption):
    """Store the picture as a JPEG of low quality."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The decoded JPEG."""
        return compress_jpeg(image, QUALITY[self.severity - 1])


def compress_jpeg(image: Bytes, quality: int) -> Bytes:
    """The picture after encoding and decoding; colours at half resolution, as most cameras store them."""
    swapped = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    _, encoded = cv2.imencode(".jpg", swapped, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR_RGB), np.uint8)
