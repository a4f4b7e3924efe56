"""Fills and measures that are kept on disk: the same choice as without them, and nothing made twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from counterfoil.edits import fill_choice
from counterfoil.edits.fill import fill_visible_hole
from counterfoil.edits.fill_choice import Fills
from counterfoil.edits.subject import Subject, Tools
from counterfoil.errors import Unusable
from counterfoil.store.result_cache import NO_CACHE, ResultCache
from counterfoil.types import Picture


def make_picture(seed: int = 0) -> Picture:
    rng = np.random.default_rng(seed)
    image = rng.integers(90, 160, (96, 120, 3), np.uint8)
    mask = np.zeros((96, 120), np.uint8)
    mask[30:60, 40:75] = 255
    return Picture(image, mask)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One member for each hole that patches filled."""
    calls: list[str] = []

    def count(*arguments: object, **settings: object) -> object:
        calls.append("filled")
        return fill_visible_hole(*arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(fill_choice, "fill_visible_hole", count)
    return calls


def find_top_salience(image: np.ndarray) -> np.ndarray:
    salience = np.zeros((32, 40), np.float32)
    salience[:6] = 1
    return salience


def subject_with(cache: ResultCache, picture: Picture | None = None, judged: bool = True) -> Subject:
    fills = Fills(judged=judged, find_salience=find_top_salience if judged else None)
    return Subject(picture or make_picture(), tools=Tools(fills=fills, cache=cache))


def test_another_process_takes_every_fill_that_the_first_made(tmp_path: Path, made: list[str]) -> None:
    hole, avoid = np.zeros((96, 120), bool), np.zeros((96, 120), bool)
    hole[70:84, 10:30], avoid[30:60, 40:75] = True, True

    def fill_all(cache: ResultCache) -> list[object]:
        subject = subject_with(cache)
        fills = [subject.fill, subject.with_second_fill.fill, subject.with_grown_mask.fill]
        fills += [subject.fill_elsewhere(hole, avoid), subject.with_second_fill.fill_elsewhere(hole, avoid)]
        return [(fill.name, fill.quality, fill.image.tobytes()) for fill in fills] + [
            subject.background.tobytes(), subject.attachments.region.tobytes(), subject.attachments.share
        ]  # fmt: skip

    expected = fill_all(NO_CACHE)
    count = len(made)
    assert fill_all(ResultCache(tmp_path)) == expected
    assert len(made) == 2 * count
    assert fill_all(ResultCache(tmp_path)) == expected
    assert len(made) == 2 * count  # none made again


def test_another_picture_or_other_fills_share_nothing(tmp_path: Path, made: list[str]) -> None:
    _ = subject_with(ResultCache(tmp_path)).fill
    _ = subject_with(ResultCache(tmp_path), make_picture(1)).fill
    _ = subject_with(ResultCache(tmp_path), judged=False).fill
    assert len(made) == 3


def test_a_reason_why_there_is_no_second_fill_is_kept(tmp_path: Path, made: list[str]) -> None:
    image = np.full((96, 120, 3), 120, np.uint8)
    image[:, ::9] = (250, 30, 30)
    picture = Picture(image, make_picture().alpha)
    reasons = []
    for _ in range(2):
        with pytest.raises(Unusable) as refused:
            _ = subject_with(ResultCache(tmp_path), picture).with_second_fill.fill
        reasons.append(str(refused.value))
        made.append("|")
    assert reasons[0] == reasons[1]
    assert made[-2:] == ["|", "|"]  # nothing made the second time
