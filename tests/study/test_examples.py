"""Which pictures of a run the report shows as examples."""

from __future__ import annotations

from pathlib import Path

from counterfoil.study.examples import Example, choose_examples
from counterfoil.study.runs import open_runs
from run_folders import Right, breaks_on, write_run


def examples_of(folder: Path, models: dict[str, Right]) -> list[Example]:
    run = write_run(folder, models)
    return list(choose_examples(open_runs([run]), lambda variant, pixels: None))


def flips(examples: list[Example]) -> list[Example]:
    return [row for row in examples if any(reply.outcome(row.label) == "flipped" for reply in row.replies)]


def test_a_flip_is_a_picture_that_was_right_and_became_wrong(tmp_path: Path) -> None:
    examples = examples_of(tmp_path, {"net": breaks_on({"original": 1, "background-swap": 3})})
    assert {row.sample_id for row in flips(examples)} == {"fish/001.jpg", "fish/002.jpg"}


def test_an_attribute_shows_four_failures_models_and_edits_in_turn(tmp_path: Path) -> None:
    models = {"weak": breaks_on({"background-swap": 40, "size": 40}), "strong": breaks_on({"background-swap": 30})}
    shown = flips(examples_of(tmp_path, models))
    background, size = ([row for row in shown if row.attribute == name] for name in ("background", "size"))
    assert [row.model for row in background] == ["weak", "strong", "weak", "strong"]
    assert [row.level for row in size] == [
        "0.05",
        "0.2",
        "0.05",
        "0.2",
    ]  # the last level of the first edit is the main one
    assert {row.model for row in size} == {"weak"}


def test_a_photo_is_shown_again_only_where_no_other_is_left(tmp_path: Path) -> None:
    everywhere = breaks_on({"background-swap": 40, "size": 40})
    shown = [example.sample_id for example in examples_of(tmp_path, {"net": everywhere})]
    assert len(shown) == 8
    assert len(set(shown)) == 8


def test_an_attribute_without_a_failure_shows_pictures_that_held(tmp_path: Path) -> None:
    shown = examples_of(tmp_path, {"net": breaks_on({"size": 40})})
    background = [row for row in shown if row.attribute == "background"]
    assert [row.replies[0].outcome(row.label) for row in background] == ["held", "held"]
