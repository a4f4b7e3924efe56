"""The background that a surrogate handles worst."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import counterfoil as cf
from counterfoil.run_result import Result
from counterfoil.store.parquet import read_table
from planted import write_photos

SURROGATE = "python:planted:reads_the_background"
RECIPE = """
working_size: 384
judge_fills: false
edits:
  - edit: background-swap
  - {edit: background-worst, settings: {candidates: 6, surrogate: "%s"}}
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("worst")
    images, masks = write_photos(folder, 16)
    (folder / "recipe.yaml").write_text(RECIPE % SURROGATE)
    return cf.run(images, [SURROGATE], masks=masks, recipe=str(folder / "recipe.yaml"), out=folder / "out")


def true_scores(result: Result, edit: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    table = read_table(next((result.folder / "predictions").iterdir()))
    return np.asarray(table["true_score"][table["edit"] == edit], np.float64)


def test_the_worst_of_six_is_worse_than_a_random_one(result: Result) -> None:
    worst, random = true_scores(result, "background-worst"), true_scores(result, "background-swap")
    assert (worst <= random + 1e-3).mean() > 0.8
    assert worst.mean() < random.mean()


def test_the_chosen_donor_stands_in_the_manifest_and_rebuilds_without_the_surrogate(result: Result) -> None:
    import hashlib

    table = read_table(result.folder / "variants.parquet")
    rows = np.flatnonzero(table["edit"] == "background-worst")
    assert len(rows) == 16
    assert all(table["donor_id"][rows])
    for row in rows[:4]:
        picture = cf.rebuild(result.folder, table["id"][row])
        assert hashlib.sha256(picture.image.tobytes()).hexdigest() == table["sha256"][row]


def test_a_surrogate_that_does_not_know_the_labels_is_refused(result: Result, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE % "embedded:efficientnet-lite0")
    images = result.folder.parent / "images"
    with pytest.raises(cf.UserError, match="no column for"):
        cf.run(images, [SURROGATE], masks=images.parent / "masks", recipe=str(recipe))
