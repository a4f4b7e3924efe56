"""A painter without a model: prompt and seed determine the picture, and certain words trigger each fault."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.painters.painter_protocol import Painted, PaintRefused, PaintRequest

SIDE = 48


class WordPainter:
    """Smooth colours drawn from prompt and seed; around an object, its whole picture is painted over."""

    settings = {"steps": 3}  # noqa: RUF012
    digest = "words-1"

    def paint(self, requests: Sequence[PaintRequest]) -> list[Painted]:
        return [self.one(request) for request in requests]

    def one(self, request: PaintRequest) -> Painted:
        if "fire" in request.prompt:
            return PaintRefused("held back")
        if "sky" in request.prompt:
            return np.zeros((SIDE, SIDE, 3), np.uint8)
        height, width = (SIDE, SIDE) if request.around is None else request.around.alpha.shape
        return drawn(f"{request.prompt}|{request.negative}|{request.seed}", (height, width))


class KilledPainter(WordPainter):
    """Dies by kill -9 at its third call, unless it already did."""

    calls = 0

    def paint(self, requests: Sequence[PaintRequest]) -> list[Painted]:
        self.calls += 1
        mark = Path(os.environ["COUNTERFOIL_TEST_MARK"])
        if self.calls == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().paint(requests)


class PlainPainter:
    """Pictures of one size, regardless of the request."""

    def __init__(self, side: int) -> None:
        self.side = side

    def paint(self, requests: Sequence[PaintRequest]) -> list[Painted]:
        return [np.zeros((self.side, self.side, 3), np.uint8) for _ in requests]


def drawn(text: str, shape: tuple[int, int]) -> NDArray[np.uint8]:
    """A smooth picture that only this text gives."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
    coarse = rng.integers(0, 256, (6, 6, 3)).astype(np.uint8)
    return np.asarray(cv2.resize(coarse, shape[::-1], interpolation=cv2.INTER_CUBIC), np.uint8)


def words() -> WordPainter:
    return WordPainter()


def killed() -> KilledPainter:
    return KilledPainter()


def empty() -> PlainPainter:
    return PlainPainter(0)


def small() -> PlainPainter:
    return PlainPainter(9)
