"""Files decoded to pixels: photos rotated upright by EXIF, masks, and pictures of archives as stored."""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from counterfoil.errors import Unusable
from counterfoil.object_mask import as_mask, object_trace
from counterfoil.sources.bounded_reads import read_user_file


def decode_picture(encoded: bytes, name: str) -> NDArray[np.uint8]:
    """The pixels of a picture, (height, width, 3), RGB."""
    try:
        with open_bounded_picture(
            encoded, _ARCHIVE_FORMATS, "the file is no picture"
        ):  # OpenCV's own bound is a thousand million
            image = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR)
    except Unusable as error:
        raise Unusable(f"{name} is no picture that can be used: {error}") from error
    except cv2.error:  # too large for OpenCV
        image = None
    if image is None:
        raise Unusable(f"{name} is no picture")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)


def hash_pixels(image: NDArray[np.uint8]) -> str:
    """SHA-256 of the pixels, row by row, as in the manifest of a workspace."""
    return hashlib.sha256(np.ascontiguousarray(image).data).hexdigest()


MAX_PIXELS = 100_000_000  # beyond this a file counts as a decompression bomb
_ARCHIVE_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF")  # the formats that ImageNet's .JPEG files really have


def decode_archive_picture(encoded: bytes) -> NDArray[np.uint8]:
    """The picture, (height, width, 3), RGB; transparent places become white."""
    try:
        with open_bounded_picture(encoded, _ARCHIVE_FORMATS, "the file is no picture") as picture:
            return _decode_plain(picture, encoded)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise Unusable(f"the picture is broken: {' '.join(str(error).split()) or type(error).__name__}") from error


def _decode_plain(picture: Image.Image, encoded: bytes) -> NDArray[np.uint8]:
    if picture.format == "JPEG" and picture.mode == "RGB" and _is_whole_jpeg(encoded):
        flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION  # twice as fast as Pillow, with the same pixels
        fast = cv2.imdecode(np.frombuffer(encoded, np.uint8), flags)
        if fast is not None:
            return np.asarray(fast, np.uint8)
    picture.load()
    if "A" in picture.getbands() or "transparency" in picture.info:
        return np.array(_on_white(picture.convert("RGBA")).convert("RGB"))
    return np.array(picture.convert("RGB"))


_FORMATS = ("JPEG", "PNG", "WEBP")

# We check our own limit; `catch_warnings` around each file would not be thread-safe.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


def read_photo(path: Path) -> NDArray[np.uint8]:
    """The photo, upright, (height, width, 3), RGB."""
    return decode_photo(read_user_file(path))


def read_as_stored(path: Path) -> NDArray[np.uint8]:
    """The photo without EXIF rotation, for masks drawn on the pixels as stored."""
    with _open_picture(read_user_file(path)) as picture:
        _load_picture(picture)
        return _convert_to_rgb(picture)


def decode_photo(encoded: bytes) -> NDArray[np.uint8]:
    """The same from the bytes of a file."""
    with _open_picture(encoded) as picture:
        plain = picture.format == "JPEG" and picture.mode == "RGB" and picture.getexif().get(0x0112, 1) == 1
        if not plain:
            return turn_upright(picture)
    # decodes a plain JPEG twice as fast as Pillow, with the same pixels
    fast = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
    return _check_whole(fast, encoded)


def read_mask(path: Path) -> NDArray[np.uint8]:
    """The mask, (height, width): 255 on the object, 0 off it, graded at soft edges; 128 is "unknown" in a trimap."""
    return decode_mask(read_user_file(path))


def decode_mask(encoded: bytes) -> NDArray[np.uint8]:
    """The same from the bytes of a file."""
    with _open_picture(encoded) as picture:
        return mask_from_picture(picture)


def mask_from_picture(picture: Image.Image) -> NDArray[np.uint8]:
    """The same from an opened picture."""
    try:
        picture.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise Unusable(f"the mask is broken: {_describe_error(error)}") from error
    return grade_mask(_choose_channel(picture))


def check_mask_size(mask: NDArray[Any], image: NDArray[np.uint8]) -> None:
    """Raises `Unusable` where a mask is not as large as its photo."""
    if mask.shape != image.shape[:2]:
        (height, width), (rows, columns) = image.shape[:2], mask.shape
        raise Unusable(f"the mask is {columns} x {rows} pixels, the photo {width} x {height}")


def open_bounded_picture(encoded: bytes, formats: tuple[str, ...], otherwise: str) -> Image.Image:
    """The picture, not decoded yet; raises `Unusable`, `otherwise` where it has none of the formats."""
    try:
        picture = Image.open(io.BytesIO(encoded), formats=formats)
    except UnidentifiedImageError:
        raise Unusable(otherwise) from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise Unusable(f"the picture cannot be opened: {_describe_error(error)}") from error
    if picture.width * picture.height > MAX_PIXELS:
        raise Unusable(f"{picture.width} x {picture.height} pixels are more than {MAX_PIXELS:,} allowed")
    return picture


def _open_picture(encoded: bytes) -> Image.Image:
    return open_bounded_picture(encoded, _FORMATS, "the file is not a JPEG, PNG or WebP picture")


def turn_upright(picture: Image.Image) -> NDArray[np.uint8]:
    """The pixels of an opened picture, rotated by its EXIF data, (height, width, 3), RGB."""
    _load_picture(picture)
    try:
        upright = ImageOps.exif_transpose(picture)
    except (OSError, SyntaxError, ValueError) as error:
        raise Unusable(f"the picture is broken: {_describe_error(error)}") from error
    return _convert_to_rgb(upright)


def _load_picture(picture: Image.Image) -> None:
    try:
        picture.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise Unusable(f"the picture is broken: {_describe_error(error)}") from error


def _convert_to_rgb(picture: Image.Image) -> NDArray[np.uint8]:
    """Any mode as RGB of eight bits."""
    if picture.mode.startswith("I;16") or picture.mode in ("I", "F"):
        return np.repeat(_convert_to_8_bits(np.asarray(picture))[:, :, None], 3, axis=2)
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = _on_white(picture.convert("RGBA"))
    return np.array(picture.convert("RGB"))


def _on_white(picture: Image.Image) -> Image.Image:
    """Transparent places become white, as picture viewers show them."""
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)


def _convert_to_8_bits(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.clip(np.rint(values.astype(np.float64) / 257), 0, 255).astype(np.uint8)


def _check_whole(image: Any, encoded: bytes) -> NDArray[np.uint8]:
    """The pixels that OpenCV decoded; failed and truncated files are decoded again by Pillow."""
    if image is not None and _is_whole_jpeg(encoded):
        return np.asarray(image, np.uint8)
    with _open_picture(encoded) as picture:
        return turn_upright(picture)


def _is_whole_jpeg(encoded: bytes) -> bool:
    """Whether a JPEG is complete; OpenCV pads a truncated one with grey without an error."""
    return encoded.rstrip(b"\0")[-2:] == b"\xff\xd9"


def _choose_channel(picture: Image.Image) -> NDArray[np.uint8]:
    """The channel that marks the object: a varying alpha, else the brightest colour channel."""
    if picture.mode.startswith("I;16") or picture.mode == "I":
        return _sixteen_bit_mask(np.asarray(picture))
    if picture.mode == "P":
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    if picture.mode in ("1", "L"):
        return np.array(picture.convert("L"))
    channels = np.array(picture.convert("RGBA"))
    alpha = channels[:, :, 3]
    return alpha if alpha.min() < 255 else channels[:, :, :3].max(axis=2)


def _sixteen_bit_mask(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    levels = values.astype(np.int64)
    return _convert_to_8_bits(levels) if levels.max() > 255 else levels.clip(0, 255).astype(np.uint8)


def grade_mask(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Keep a graded alpha and a trimap as they are; for labels and flat colours any nonzero value is object."""
    used = np.unique(values)
    graded = len(used) > 8 and used[-1] >= 250
    if graded or as_mask(values).origin == "trimap":
        return values
    return np.where(object_trace(values), 255, 0).astype(np.uint8)


def _describe_error(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
