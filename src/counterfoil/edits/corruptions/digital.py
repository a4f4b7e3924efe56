"""ImageNet-C's digital corruptions: brightness, contrast, elastic transform, pixelate, JPEG."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from counterfoil.edits.corruptions.severity import Bytes, Corruption, Floats, truncate_levels, work_in_bands
from counterfoil.edits.matting import repeat_channels

BRIGHTNESS = (0.1, 0.2, 0.3, 0.4, 0.5)  # added to the value of HSV, of the range from black to white
CONTRAST = (0.4, 0.3, 0.2, 0.1, 0.05)  # share of the contrast that is left
ELASTIC = (12.5, 16.25, 21.25, 25.0, 30.0)  # times the smoothed displacement
ELASTIC_SIGMA, ELASTIC_REACH = 0.01, 0.005  # of the height and width
PIXELATE = (0.6, 0.5, 0.4, 0.3, 0.25)  # share of the pixels that is left each way
QUALITY = (25, 18, 15, 10, 7)


@dataclass(frozen=True)
class Brightness(Corruption):
    """Raise the value of every pixel in HSV, its hue and saturation kept."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The brighter picture; black becomes gray."""
        added = 255 * BRIGHTNESS[self.severity - 1]
        values = np.arange(256)
        # At a given hue and saturation all three channels are proportional to the value.
        factors = (np.minimum(values + added, 255) / np.maximum(values, 1)).astype(np.float32)

        def work(band: Bytes) -> Bytes:
            value = np.asarray(cv2.max(cv2.max(band[..., 0], band[..., 1]), band[..., 2]), np.uint8)
            factor = np.asarray(cv2.LUT(value, factors), np.float32)
            bright = truncate_levels(np.asarray(band * repeat_channels(factor), np.float32))
            bright[value == 0] = int(added)
            return bright

        return work_in_bands(image, 0, work)


@dataclass(frozen=True)
class ContrastCorruption(Corruption):
    """Draw every channel towards its mean."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The flatter picture."""
        left = CONTRAST[self.severity - 1]
        mean = np.array(cv2.mean(image)[:3])
        table = truncate_levels(((np.arange(256)[:, None] - mean) * left + mean).astype(np.float32))
        return np.asarray(cv2.LUT(image, table[None]), np.uint8)


@dataclass(frozen=True)
class ElasticTransform(Corruption):
    """Push pixels about by a smooth random field."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The distorted picture."""
        height, width = image.shape[:2]
        across, down = (self._draw_field((height, width), rng) for _ in range(2))
        across += np.arange(width, dtype=np.float32)
        down += np.arange(height, dtype=np.float32)[:, None]
        moved = cv2.remap(image, across, down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
        return np.asarray(moved, np.uint8)

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
