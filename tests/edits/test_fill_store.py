"""Fills that the workers of a run share: the same choice as without them, and nothing made twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from counterfoil.edits import fill_choice
from counterfoil.edits.fill import fill_visible_hole
from counterfoil.edits.fill_choice import Fills
from counterfoil.edits.fill_store import FillStore
from counterfoil.edits.subject import Subject, Tools
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


def subject_with(store: FillStore | None, picture: Picture | None = None) -> Subject:
    return Subject(picture or make_picture(), tools=Tools(fills=Fills(judged=True), store=store))


def open_store(folder: Path, kind: str = "exemplar, judged", workers: int = 1) -> FillStore:
    store = FillStore(kind)
    store.open(folder, workers)
    return store


def test_another_worker_takes_the_fill_that_the_first_made(tmp_path: Path, made: list[str]) -> None:
    expected = subject_with(None).fill
    made.clear()
    first = subject_with(open_store(tmp_path)).fill
    assert len(made) == 1
    second = subject_with(open_store(tmp_path)).fill
    assert len(made) == 1  # not made again
    for fill in (first, second):
        assert fill.name == expected.name
        assert fill.quality == expected.quality
        assert np.array_equal(fill.image, expected.image)


def test_another_picture_or_other_kinds_of_fills_share_nothing(tmp_path: Path, made: list[str]) -> None:
    _ = subject_with(open_store(tmp_path)).fill
    _ = subject_with(open_store(tmp_path), make_picture(1)).fill
    _ = subject_with(open_store(tmp_path, "exemplar or MI-GAN, judged")).fill
    assert len(made) == 3


def test_a_closed_or_full_store_keeps_nothing(tmp_path: Path, made: list[str]) -> None:
    closed, full = FillStore("exemplar, judged"), open_store(tmp_path)
    full.room = 100
    for store in (closed, full, closed, full):
        _ = subject_with(store).fill
    assert len(made) == 4
    assert list(tmp_path.iterdir()) == []
