"""What a result gives to Python: tables, a comparison, a gate, a sheet, and what a notebook shows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import counterfoil as cf
from counterfoil.testing import assert_robust
from planted import LABELS, AnswersByBackground, Planted, write_photos

NAMES = ["background-swap", "object-grayscale"]
EDITS = [cf.edits.BackgroundSwap(), "object-grayscale"]  # grounded ones are refused where no ground is shown


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, str, Any]]:
    images, masks = write_photos(tmp_path_factory.mktemp("photos"), 12)
    return [
        (np.asarray(Image.open(file)), file.parent.name, np.asarray(Image.open(masks / file.relative_to(images))))
        for file in sorted(images.rglob("*.png"))
    ]


@pytest.fixture(scope="module")
def result(photos: list[tuple[Any, str, Any]]) -> cf.Result:
    return cf.run(photos, {"background": AnswersByBackground(), "honest": Planted()}, edits=EDITS)


def test_the_table_of_answers_has_one_row_per_model_and_picture(result: cf.Result) -> None:
    frame, table = result.to_pandas(), result.to_arrow()
    assert len(frame) == table.num_rows == 2 * 12 * 4
    assert list(frame.columns) == table.column_names
    assert set(frame["edit"]) == {"original", "control", *NAMES}
    assert (frame["correct"].to_numpy() == np.array(table["correct"].to_pylist())).all()


def test_the_table_of_photos_has_the_answers_before_and_after_side_by_side(result: cf.Result) -> None:
    rows = result.photos()
    assert len(rows) == 2 * 12 * 3
    swapped = rows[(rows["model"] == "background") & (rows["edit"] == "background-swap")]
    assert swapped["original_right"].all()
    assert not swapped["right"].any()
    (drop,) = [drop for drop in result.drops if (drop.model, drop.edit) == ("background", "background-swap")]
    assert drop.drop == 100 * (swapped["original_right"].mean() - swapped["right"].mean())
    assert (swapped["original_answer"] == swapped["label"]).all()
    assert (swapped["answer"] != swapped["label"]).all()


def test_a_notebook_shows_the_verdict_a_chart_and_failures(result: cf.Result) -> None:
    html = result._repr_html_()
    assert len(html) < 400_000
    assert html.count("data:image/svg+xml") == 1
    assert 1 <= html.count("<figure") <= 3
    assert "<script" not in html
    assert len(repr(result)) < 300
    assert "12 photos, background, honest" in repr(result)


def test_two_models_are_compared_photo_by_photo(result: cf.Result) -> None:
    compared = cf.compare(result, result, first_model="background", second_model="honest")
    rows = compared.to_pandas()
    assert set(rows[rows["attribute"] == "background"]["difference"]) == {100}
    assert compared.sentence
    page = compared._repr_html_()
    assert "background" in page
    assert f"points lost by {compared.first}" in page
    assert compared.to_json()["conclusion"] == compared.sentence


def test_two_runs_of_models_of_one_name_are_told_apart(photos: list[tuple[Any, str, Any]], result: cf.Result) -> None:
    new = cf.run(photos, {"honest": AnswersByBackground()}, edits=EDITS)
    compared = cf.compare(new, result, second_model="second: honest")
    assert compared.first != compared.second
    judged = cf.gate(new, against=result, margin=2, against_model="honest")
    assert judged.verdict == "violated"
    assert not judged
    assert judged.exit_status == 1
    assert "background" in judged.lines[0]
    assert "violated" in judged._repr_html_()
    assert cf.gate(new, against=result, against_model="honest").lines == judged.lines  # 2 points where none are given


def test_a_gate_takes_limits_as_a_number_or_by_name(result: cf.Result) -> None:
    everywhere = cf.gate(result, max_drop=5, bound="point", model="background")
    by_name = cf.gate(result, max_drop={"colour": 5}, bound="point", model="background")
    assert (everywhere.verdict, by_name.verdict) == ("violated", "holds")
    with pytest.raises(cf.UserError, match="expected a bound, got none"):
        cf.gate(result)
    with pytest.raises(cf.UserError, match="expected a result or the folder of a run, got int"):
        cf.gate(3, max_drop=5)  # type: ignore[arg-type]


def test_a_sheet_shows_failures_and_is_written_as_a_picture(result: cf.Result, tmp_path: Path) -> None:
    sheet = cf.show(result, attribute="background", limit=2)
    assert len(sheet.sheet.pictures) == 4
    assert sheet._repr_html_().lstrip().startswith("<svg")
    assert repr(sheet) == "PictureSheet(4 pictures); save('sheet.png') writes it"
    assert Image.open(sheet.save(tmp_path / "sheet.png")).width > 200
    with pytest.raises(cf.UserError, match="expected a file that ends in"):
        sheet.save(tmp_path / "sheet.doc")


def test_a_test_suite_can_assert_robustness(photos: list[tuple[Any, str, Any]]) -> None:
    model = {"background": AnswersByBackground()}
    assert assert_robust(model, photos, attribute="object-grayscale", max_drop=5).drops
    with pytest.raises(AssertionError, match="violated: background, background-grayscale"):
        assert_robust(model, photos, attribute="background", edits=["background-grayscale"], max_drop=5)


def test_the_whole_way_works_with_objects(photos: list[tuple[Any, str, Any]], tmp_path: Path) -> None:
    workspace = cf.build(photos, tmp_path / "work", edits=EDITS)
    surrogates = {"first": AnswersByBackground()}
    mined = cf.mine(workspace, surrogates, {"held out": Planted()})
    assert len(mined.mined.kept) == 12
    assert "12 pictures" in mined._repr_html_()
    benchmark = cf.freeze(workspace, tmp_path / "bench", name="Hues", version="1.0.0", licence="CC0-1.0")
    assert "Hues 1.0.0" in benchmark._repr_html_()
    scored = cf.evaluate(benchmark, {"mine": AnswersByBackground()})
    frame = scored.to_pandas()
    assert not frame[frame["edit"] == "background-swap"]["correct"].any()
    assert set(LABELS) == set(frame["label"])
