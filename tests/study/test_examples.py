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


def test_flips_are_limited_by_attribute_and_the_same_for_any_order_of_models(tmp_path: Path) -> None:
    models = {"weak": breaks_on({"background-swap": 40, "size": 2}), "strong": breaks_on({"background-swap": 30})}
    shown = flips(examples_of(tmp_path / "one", models))
    attributes = [row.attribute for row in shown]
    assert (attributes.count("background"), attributes.count("size")) == (18, 4)
    turned = flips(examples_of(tmp_path / "other", dict(reversed(models.items()))))
    assert [(row.sample_id, row.level) for row in turned] == [(row.sample_id, row.level) for row in shown]


def test_a_photo_is_shown_again_only_where_no_other_is_left(tmp_path: Path) -> None:
    everywhere = breaks_on({"background-swap": 40, "size": 40})
    shown = [example.sample_id for example in examples_of(tmp_path, {"net": everywhere})]
    flipped = shown[: len(shown) - 4]  # the last four are of the control, which held
    assert len(flipped) == 36
    assert len(set(flipped)) == 36
    assert len(set(shown)) == 40
