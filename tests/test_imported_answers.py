"""Answers made elsewhere become a run: the formats that others publish, what reads runs, and what is refused."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from answer_files import write_csv, write_imagenet_x, write_plain_answers, write_trials
from command_line import counterfoil
from counterfoil.errors import UserError
from counterfoil.imported_answers import ImportConfig, import_answers
from counterfoil.store.parquet import read_table, write_table
from counterfoil.types import Drop

TWO = {"a": {"original": 0.9, "size 0.05": 0.5, "fog": 0.8}, "b": {"original": 0.8, "size 0.05": 0.5, "fog": 0.8}}


def drops_of(run: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    with (run / "drops.csv").open(encoding="utf-8") as file:
        return {(row["model"], row["edit"], row["level"]): row for row in csv.DictReader(file)}


def one_line(result: object) -> str:
    text = str(result)
    assert "\n" not in text
    return text


def test_a_plain_table_becomes_a_run_with_drops_and_report(tmp_path: Path) -> None:
    table = write_plain_answers(tmp_path / "answers.csv", TWO)
    done = counterfoil("import", table, "--out", tmp_path / "run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "360 answers of 2 models to 60 photos" in done.stdout
    rows = drops_of(tmp_path / "run")
    assert {key: float(row["drop"]) for key, row in rows.items()} == pytest.approx({
        ("a", "size", "0.05"): 40, ("a", "fog", ""): 10, ("b", "size", "0.05"): 30, ("b", "fog", ""): 0,
    }, abs=1e-3)  # fmt: skip
    assert rows["a", "size", "0.05"]["attribute"] == "size"
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["run"]["models"] == ["a", "b"]


def test_everything_that_reads_runs_reads_an_import(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_plain_answers(tmp_path / f"{name}.csv", {name: TWO[name]})
        assert counterfoil("import", tmp_path / f"{name}.csv", "--out", tmp_path / name).returncode == 0
    compared = counterfoil("compare", tmp_path / "a", tmp_path / "b")
    assert (compared.returncode, compared.stderr) == (0, "")
    assert "first a, second b" in compared.stdout
    assert counterfoil("gate", tmp_path / "a", "--max-drop", "size=90").returncode == 0
    assert counterfoil("gate", tmp_path / "a", "--max-drop", "size=5").returncode == 1
    both = counterfoil("report", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "both", "--export", "csv")
    assert (both.returncode, both.stderr) == (0, "")
    assert {key[0] for key in drops_of(tmp_path / "both")} == {"a", "b"}


def test_a_bound_on_position_is_not_about_the_size_at_which_it_was_moved(tmp_path: Path) -> None:
    table = write_plain_answers(
        tmp_path / "a.csv", {"a": {"original": 1.0, "size 0.05": 0.6, "position random@0.05": 0.6}}, photos=200
    )
    counterfoil("import", table, "--out", tmp_path / "run")
    done = counterfoil("gate", tmp_path / "run", "--max-drop", "position=5")
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "holds")
    assert "drop 0.0 points" in done.stdout
    assert "against size 0.05" in done.stdout
    assert counterfoil("gate", tmp_path / "run", "--max-drop", "size=5").returncode == 1


def test_imports_of_other_photos_are_not_compared(tmp_path: Path) -> None:
    for photos in (40, 60):
        write_plain_answers(tmp_path / f"{photos}.csv", {f"m{photos}": TWO["a"]}, photos=photos)
        counterfoil("import", tmp_path / f"{photos}.csv", "--out", tmp_path / str(photos))
    done = counterfoil("compare", tmp_path / "40", tmp_path / "60")
    assert done.returncode == 2
    assert "another collection" in one_line(done.stderr.strip())


def test_several_rows_of_one_photo_and_condition_are_replicates(tmp_path: Path) -> None:
    table = write_plain_answers(tmp_path / "answers.csv", {"a": TWO["a"]}, replicates=3)
    study = import_answers(ImportConfig(answers=(table,)), tmp_path / "run")
    assert set(study.answers.replicate) == {0, 1, 2}
    assert [row.n for row in study.drops] == [60, 60]


def test_right_and_wrong_follow_from_prediction_and_label(tmp_path: Path) -> None:
    rows = [
        ("m", f"p{photo}", condition, "cat" if photo < right else "dog", "cat", 0.5)
        for condition, right in (("original", 18), ("fog", 9))
        for photo in range(20)
    ]
    header = ("model", "sample", "condition", "prediction", "label", "confidence")
    study = import_answers(ImportConfig(answers=(write_csv(tmp_path / "t.csv", header, rows),)), tmp_path / "run")
    (row,) = study.drops
    assert (row.accuracy_original, row.accuracy, row.n) == (90, 45, 20)
    assert set(study.details.top_score) == {0.5}


def test_parquet_gives_the_same_run_as_csv(tmp_path: Path) -> None:
    table = write_plain_answers(tmp_path / "answers.csv", TWO)
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in ("model", "sample", "condition")}
    correct = np.array([row["correct"] == "1" for row in rows])
    kinds = {"model": "text", "sample": "text", "condition": "text", "correct": "bool"}
    write_table(tmp_path / "answers.parquet", kinds, {**columns, "correct": correct})  # type: ignore[arg-type]
    drops: list[list[Drop]] = [
        import_answers(ImportConfig(answers=(tmp_path / name,)), tmp_path / f"run-{name}").drops
        for name in ("answers.csv", "answers.parquet")
    ]
    assert repr(drops[0]) == repr(drops[1])


def test_imagenet_x_predictions_are_read_with_their_annotations(tmp_path: Path) -> None:
    files, annotations = write_imagenet_x(tmp_path, {"ResNet50": 0.8, "ViT": 0.9})
    names = [option for model in ("ResNet50", "ViT") for option in ("--model", model)]
    done = counterfoil(
        "import", *files, *names, "--annotations", annotations, "--sample-column", "file_name",
        "--prediction-column", "predicted_class", "--label-column", "class",
        "--confidence-column", "predicted_probability", "--out", tmp_path / "run",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    factors = read_table(tmp_path / "run" / "factors.parquet")
    marked = set(factors["sample_id"][factors["factor"] == "smaller"])
    assert set(factors["factor"]) == {"", "pose", "background", "smaller", "texture"}
    answers = read_table(tmp_path / "run" / "predictions" / "ResNet50.parquet")
    inside = np.isin(answers["sample_id"], sorted(marked))
    assert answers["correct"][inside].mean() < 0.6 < answers["correct"][~inside].mean()


def test_trials_of_people_and_networks_are_read_by_their_columns(tmp_path: Path) -> None:
    shares = {"subject-01": {"cr": 0.9, "bw": 0.85}, "resnet50": {"cr": 0.9, "bw": 0.6}}
    done = counterfoil(
        "import", write_trials(tmp_path / "trials.csv", shares), "--model-column", "subj",
        "--sample-column", "imagename", "--sample-pattern", r"([^_]+_[^_]+)\.png$",
        "--prediction-column", "object_response", "--label-column", "category", "--original", "cr",
        "--attribute", "colour", "--no-answer", "na", "--out", tmp_path / "run",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    rows = drops_of(tmp_path / "run")
    assert {key: float(row["drop"]) for key, row in rows.items()} == pytest.approx(
        {("subject-01", "colour", "bw"): 5, ("resnet50", "colour", "bw"): 30}
    )


def test_an_answer_that_was_not_given_is_not_scored(tmp_path: Path) -> None:
    rows = [
        ("m", f"p{photo}", condition, "na" if photo < 5 and condition == "fog" else "cat", "cat")
        for condition in ("original", "fog")
        for photo in range(20)
    ]
    table = write_csv(tmp_path / "t.csv", ("model", "sample", "condition", "prediction", "label"), rows)
    study = import_answers(ImportConfig(answers=(table,), no_answer="na"), tmp_path / "run")
    assert study.answers.unscored == {"m": 5}
    assert [row.n for row in study.drops] == [15]


def test_pictures_without_an_original_are_said_to_have_no_drop(tmp_path: Path) -> None:
    rows = [("m", f"{condition}-{photo}", condition, 1) for condition in ("original", "fog") for photo in range(12)]
    table = write_csv(tmp_path / "t.csv", ("model", "sample", "condition", "correct"), rows)
    done = counterfoil("import", table, "--out", tmp_path / "run")
    assert done.returncode == 0
    assert "No photo of fog has an unedited picture" in done.stdout


HEADER = ("model", "sample", "condition", "correct")
GOOD: list[tuple[object, ...]] = [("m", "p1", "original", 1), ("m", "p1", "fog", 0)]
REFUSED: dict[str, tuple[tuple[str, ...], list[tuple[object, ...]], tuple[str, ...], str]] = {
    "no sample": (("model", "picture", "condition", "correct"), GOOD, (), "expected a column 'sample'"),
    "no model": (("net", "sample", "condition", "correct"), GOOD, (), "--model NAME where the file holds one model"),
    "neither correct nor prediction": (("model", "sample", "condition", "score"), GOOD, (), "'correct', or 'predic"),
    "no label": (("model", "sample", "condition", "prediction"), GOOD, (), "expected a column 'label' with the true"),
    "no original": (HEADER, [("m", "p", "fog", 1)], (), "expected the condition 'original'"),
    "unknown original": (HEADER, GOOD, ("--original", "orginal"), "did you mean 'original'"),
    "no rows": (HEADER, [], (), "expected rows of answers"),
    "not true or false": (HEADER, [*GOOD, ("m", "p2", "fog", "maybe")], (), "got 'maybe' in row 3 of"),
    "empty cell": (HEADER, [*GOOD, ("m", "", "fog", 1)], (), "got an empty one in row 3"),
    "a short row": (HEADER, [*GOOD, ("m", "p2")], (), "as many cells in every row"),
    "a column twice": (("model", "sample", "sample", "correct"), GOOD, (), "got 'sample' twice"),
    "bad pattern": (HEADER, GOOD, ("--sample-pattern", "("), "expected a regular expression"),
    "pattern of nothing": (HEADER, GOOD, ("--sample-pattern", "x"), "to be found in every sample, got 'p1'"),
    "a name of our own checks": (HEADER, [*GOOD, ("m", "p1", "grown-mask", 1)], (), "than 'grown-mask' for the cond"),
    "an attribute of our own checks": (HEADER, GOOD, ("--attribute", "second-fill"), "than 'second-fill' for the cond"),
    "an optional column": (HEADER, GOOD, ("--level-column", "strength"), "expected a column 'strength'"),
    "two names for one file": (HEADER, GOOD, ("--model", "a", "--model", "b"), "expected --model once per file"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_read_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    header, rows, options, words = REFUSED[name]
    table = write_csv(tmp_path / "t.csv", header, rows)
    done = counterfoil("import", table, "--out", tmp_path / "run", *options)
    assert done.returncode == 2
    assert words in one_line(done.stderr.strip())
    assert not (tmp_path / "run").exists()


def test_a_photo_with_two_classes_is_refused(tmp_path: Path) -> None:
    rows = [("m", "p1", "original", "cat", "cat"), ("m", "p1", "fog", "cat", "dog")]
    table = write_csv(tmp_path / "t.csv", ("model", "sample", "condition", "prediction", "label"), rows)
    with pytest.raises(UserError, match=r"expected one class per photo.*'cat' and 'dog' for 'p1' in row 2"):
        import_answers(ImportConfig(answers=(table,)), tmp_path / "run")


def test_predictions_in_other_words_than_the_classes_are_refused(tmp_path: Path) -> None:
    rows = [("m", "p1", "original", "3", "cat"), ("m", "p1", "fog", "4", "cat")]
    table = write_csv(tmp_path / "t.csv", ("model", "sample", "condition", "prediction", "label"), rows)
    with pytest.raises(UserError, match="expected predictions in the words of the classes, got '3'"):
        import_answers(ImportConfig(answers=(table,)), tmp_path / "run")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00bad", b"PAR1 damaged"])
def test_a_file_that_is_no_table_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / ("answers.parquet" if content.startswith(b"PAR1") else "answers.csv")
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"expected a (table|header line|whole Parquet)"):
        import_answers(ImportConfig(answers=(path,)), tmp_path / "run")
    with pytest.raises(UserError, match="which is no file"):
        import_answers(ImportConfig(answers=(tmp_path / "nothing.csv",)), tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", "model;sample;condition;correct\nm;p1;original;1\n", "expected cells separated by commas in"),
        ("t.csv", "model\tsample\tcondition\tcorrect\nm\tp1\toriginal\t1\n", "by tabs in a .tsv"),
        (
            "t.jsonl",
            '{"model": "m", "sample": "p1", "condition": "original", "correct": 1}\n',
            "as CSV or Parquet, got",
        ),
    ],
)
def test_a_table_in_another_format_is_named_as_such(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(words)):
        import_answers(ImportConfig(answers=(tmp_path / name,)), tmp_path / "run")


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "t.csv", HEADER, GOOD)
    with pytest.raises(UserError, match=r"expected every file of answers once, got .*t\.csv twice"):
        import_answers(ImportConfig(answers=(table, table)), tmp_path / "run")


def test_what_needs_pictures_says_that_an_import_has_none(tmp_path: Path) -> None:
    import_answers(ImportConfig(answers=(write_csv(tmp_path / "t.csv", HEADER, GOOD),)), tmp_path / "run")
    for command in (("show", "--out", tmp_path / "sheet.png"), ("masks", "review", "--no-browser", "--port", "0")):
        done = counterfoil(*command, tmp_path / "run")
        assert done.returncode == 2
        assert "its answers were imported from a table" in one_line(done.stderr.strip())


def test_annotations_of_other_photos_are_refused(tmp_path: Path) -> None:
    table = write_plain_answers(tmp_path / "answers.csv", TWO)
    other = write_csv(tmp_path / "factors.csv", ("sample", "pose"), [("elsewhere", 1)])
    with pytest.raises(UserError, match="expected annotations of the photos"):
        import_answers(ImportConfig(answers=(table,), annotations=other), tmp_path / "run")
    no_factor = write_csv(tmp_path / "none.csv", ("sample", "remark"), [("photo-00001", "fine")])
    with pytest.raises(UserError, match="expected columns of 0 and 1"):
        import_answers(ImportConfig(answers=(table,), annotations=no_factor), tmp_path / "run")
    twice = write_csv(tmp_path / "twice.csv", ("sample", "pose"), [(GOOD[0][1], 1), (GOOD[0][1], 0)])
    few = write_csv(tmp_path / "few.csv", HEADER, GOOD)
    with pytest.raises(UserError, match=r"expected one row per photo in .*twice\.csv, got 2 for 'p1'"):
        import_answers(ImportConfig(answers=(few,), annotations=twice), tmp_path / "run")
    no_row = write_csv(tmp_path / "header.csv", ("sample", "pose"), [])
    with pytest.raises(UserError, match=r"expected a row per photo in .*header\.csv, got only a header"):
        import_answers(ImportConfig(answers=(table,), annotations=no_row), tmp_path / "run")


def test_class_numbers_written_as_floats_are_the_same_classes(tmp_path: Path) -> None:
    rows = [("m", f"p{p}", condition, f"{p}.0", p) for condition in ("original", "fog") for p in range(12)]
    table = write_csv(tmp_path / "t.csv", ("model", "sample", "condition", "prediction", "label"), rows)
    assert import_answers(ImportConfig(answers=(table,)), tmp_path / "run").answers.correct.all()


def test_files_with_other_columns_are_not_mixed(tmp_path: Path) -> None:
    one = write_csv(tmp_path / "1.csv", HEADER, GOOD)
    two = write_csv(tmp_path / "2.csv", (*HEADER, "level"), [(*row, "x") for row in GOOD])
    with pytest.raises(UserError, match="expected the same columns in all files"):
        import_answers(ImportConfig(answers=(one, two)), tmp_path / "run")


def test_more_attributes_than_the_corrections_are_made_for_are_said(tmp_path: Path) -> None:
    shares = {"original": 0.9, **{f"condition-{place}": 0.8 for place in range(13)}}
    table = write_plain_answers(tmp_path / "answers.csv", {"m": shares}, photos=12)
    many = import_answers(ImportConfig(answers=(table,)), tmp_path / "many")
    one = import_answers(ImportConfig(answers=(table,), attribute="weather"), tmp_path / "one")
    assert any("13 attributes" in note for note in many.run.notes)
    assert not any("attributes" in note for note in one.run.notes)
