"""Pictures beside each other as a notebook shows them: short HTML with the pictures inside."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE = 160  # pixels of a picture
_BOX = "font-family:system-ui,sans-serif;font-size:14px;line-height:1.45;max-width:62em"


def render_strip(title: str, pictures: Sequence[tuple[str, NDArray[np.uint8]]], sentences: Sequence[str] = ()) -> str:
    """Pictures beside each other, each over its caption."""
    cells = [_picture(_encode(image), caption) for caption, image in pictures]
    return render_box([f"<h3>{escape(title)}</h3>", render_list(sentences), render_row(cells)])


def render_box(parts: Sequence[str]) -> str:
    """The frame of everything that a notebook shows."""
    return f'<div style="{_BOX}">{"".join(parts)}</div>'


def render_list(sentences: Sequence[str]) -> str:
    """Sentences as a list; nothing where there are none."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def render_row(cells: Sequence[str]) -> str:
    """Cells beside each other, in several lines where one is too short."""
    return f'<div style="display:flex;flex-wrap:wrap">{"".join(cells)}</div>' if cells else ""


def _picture(encoded: bytes, caption: str) -> str:
    data = base64.b64encode(encoded).decode("ascii")
    image = f'<img height="{SIDE}" alt="" src="data:image/jpeg;base64,{data}">'
    return f'<figure style="margin:0 1em 1em 0">{image}<figcaption>{escape(caption)}</figcaption></figure>'


def _encode(image: NDArray[np.uint8]) -> bytes:
    scale = 2 * SIDE / max(image.shape[:2])
    if scale < 1:
        image = np.asarray(cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), np.uint8)
    _, data = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 88])
    return bytes(data.tobytes())
