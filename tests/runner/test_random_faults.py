"""A few dozen classifiers with random faults through the whole pipeline; bench/faults.py has hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest

import counterfoil as cf
from random_faults import KINDS, RECIPE, Planted, compare_with_plan, write_scenes


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Planted]:
    folder: Path = tmp_path_factory.mktemp("faults")
    images, masks = write_scenes(folder, 64, 0)
    (folder / "recipe.yaml").write_text(RECIPE)
    models = [f"python:random_faults:fault_{number}" for number in range(2 * len(KINDS))]
    result = cf.run(images, models, masks=masks, recipe=str(folder / "recipe.yaml"), out=folder / "out")
    return compare_with_plan(result.study)


def test_faults_that_the_photos_can_show_are_named(rows: list[Planted]) -> None:
    clear = [row for row in rows if row.multiple >= 1.2]
    assert len(clear) >= 8
    assert sum(row.found for row in clear) >= 0.9 * len(clear)


def test_faults_of_two_attributes_together_are_named_as_interactions(rows: list[Planted]) -> None:
    shown = [row for row in rows if row.subject == "interaction" and row.multiple >= 1]  # at 1, four of five are found
    clear = [row for row in shown if row.multiple >= 1.2]
    assert clear
    assert all(row.found for row in clear)
    assert sum(row.found for row in shown) >= len(shown) / 2
    assert {row.kind for row in rows if row.subject == "interaction" and row.found} <= {
        kind for kind in KINDS if len(kind) == 2
    }


def test_hardly_any_table_names_a_fault_that_was_not_planted(rows: list[Planted]) -> None:
    assert len({row.model for row in rows if row.false}) <= 1
    assert not any(row.found for row in rows if not row.kind)
