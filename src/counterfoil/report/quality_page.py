"""The page of quality control: what was removed beside what it repeats, and the nearest pictures of a reference."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from numpy.typing import NDArray

_PAGE = Path(__file__).parent / "page"
_SIDE = 160  # pixels of the longer side of a thumbnail


@dataclass(frozen=True)
class Shown:
    """One picture, and what people call it."""

    name: str  # of its class
    about: str  # what was done to it
    file: str
    picture: str  # data address; empty where it cannot be read


@dataclass(frozen=True)
class Pair:
    """A picture, what is said of it, and the picture it is held against, where there is one."""

    said: str
    picture: Shown
    beside: Shown | None = None


@dataclass(frozen=True)
class QualityPage:
    """Everything that the page shows."""

    title: str
    looked_at: int
    counts: Mapping[str, int]
    removed: bool  # whether the pictures left the manifest, or were only looked at
    pairs: Sequence[Pair]
    nearest: Sequence[Pair]
    reference: str
    embedding: str


def quality_page(content: QualityPage) -> str:
    """The page as text; it asks nothing of any network."""
    environment = Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("quality.html").render(content=content)


def thumbnail(image: NDArray[np.uint8]) -> str:
    """A picture as the data address of a small JPEG."""
    height, width = image.shape[:2]
    scale = min(1.0, _SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(cv2.cvtColor(image, cv2.COLOR_RGB2BGR), size, interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 80])
    return f"data:image/jpeg;base64,{base64.b64encode(data.tobytes()).decode('ascii')}"
