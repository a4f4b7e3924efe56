"""The page of quality control: what was removed beside what it repeats, and the nearest pictures of a reference."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.report.gallery import small_jpeg
from counterfoil.report.html import page_environment

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
    return page_environment().get_template("quality.html").render(content=content)


def thumbnail(image: NDArray[np.uint8]) -> str:
    """A picture as the data address of a small JPEG."""
    return f"data:image/jpeg;base64,{base64.b64encode(small_jpeg(image, _SIDE, quality=80)).decode('ascii')}"
