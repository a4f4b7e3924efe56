"""Reports from folders: a run remade, several as one comparison, and runs that hold little or nothing."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage
from statsmodels.stats.proportion import proportion_confint

import counterfoil as cf
from command_line import counterfoil
from counterfoil.report.content import build_content
from counterfoil.report.headline import write_headline
from counterfoil.store.parquet import read_table
from counterfoil.store.run_checksums import record_checksums
from counterfoil.study.runs import open_runs
from counterfoil.study.thumbnails import ThumbnailCache
from planted import write_photos
from run_folders import breaks_on, write_run

BACKGROUND = "python:planted:answers_by_background"
HONEST = "python:planted:honest"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one model each over the same photos: of 12 that one model alone gets wrong, the p-value is 2^-11."""
    folder = tmp_path_factory.mktemp("finished")
    images, masks = write_photos(folder, 12)
    recipe = folder / "short.yaml"
    recipe.write_text("edits: [{edit: control}, {edit: background-swap}, {edit: size, settings: {rate: 0.08}}]")
    for name, model in (("background", BACKGROUND), ("honest", HONEST)):
        result = cf.run(images, [model], masks=masks, recipe=str(recipe), out=folder / name)
        result.report(folder / name)
    return folder


def page_words(page: Path) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.read_text()).split())


def test_a_remade_report_is_the_same_page_and_needs_neither_model_nor_photo(finished: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(finished / "background", alone)
    about = json.loads((alone / "summary.json").read_text())
    about["run"] |= {"images": str(tmp_path / "gone"), "masks": str(tmp_path / "gone")}
    (alone / "summary.json").write_text(json.dumps(about))
    record_checksums(alone)
    done = counterfoil("report", alone, "--out", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    before, after = ((folder / "report.html").read_text() for folder in (finished / "background", tmp_path / "again"))
    pictures = re.compile(r"data:image/jpeg;base64,[^\"]+")
    assert pictures.findall(after) == pictures.findall(before) != []
    assert (tmp_path / "again" / "drops.csv").read_bytes() == (finished / "background" / "drops.csv").read_bytes()


def test_what_a_report_needs_is_read_once(finished: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(finished / "background", alone)
    study = open_runs([alone])
    album = ThumbnailCache((alone,), lambda variant: None)
    before = build_content(study, album)
    shutil.rmtree(alone / "predictions")
    (alone / "variants.parquet").unlink()
    after = build_content(study, album)
    assert (after.examples, after.outcomes, after.names) == (before.examples, before.outcomes, before.names)
    assert write_headline(study.select_model(BACKGROUND)) == write_headline(study)


def test_pictures_are_made_again_from_the_photos_and_only_if_they_are_the_same(finished: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(finished / "background", bare, ignore=shutil.ignore_patterns("thumbnails"))
    counterfoil("report", bare, "--out", tmp_path / "whole")
    whole = (tmp_path / "whole" / "report.html").read_text()
    assert "not available" not in whole
    before = (finished / "background" / "report.html").read_text()
    assert whole.count("data:image/jpeg") == before.count("data:image/jpeg")
    about = json.loads((bare / "summary.json").read_text())
    elsewhere, masks = write_photos(tmp_path / "other", 4)
    about["run"] |= {"images": str(elsewhere), "masks": str(masks)}
    (bare / "summary.json").write_text(json.dumps(about))
    record_checksums(bare)
    counterfoil("report", bare, "--out", tmp_path / "without")
    assert "not available" in (tmp_path / "without" / "report.html").read_text()


def test_several_runs_make_one_comparison(finished: Path, tmp_path: Path) -> None:
    runs = [finished / "background", finished / "honest"]
    done = counterfoil("report", *runs, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{HONEST} (100.0 % right) is clearly ahead of {BACKGROUND}" in done.stdout
    words = page_words(tmp_path / "report.html")
    assert re.search(r"12 photos · \d\d pictures · 2 models · 2 runs", words)
    assert "short.yaml" in words
    assert "Models side by side" in words
    models = {row["model"] for row in csv.DictReader((tmp_path / "drops.csv").open())}
    assert models == {BACKGROUND, HONEST}
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [run["models"] for run in summary["runs"]] == [[BACKGROUND], [HONEST]]


def test_answers_that_ended_in_an_error_leave_the_denominator_and_are_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"net": breaks_on({"size:0.05": 20})}, photos=40, errors=8)
    study = open_runs([run])
    (small,) = [row for row in study.drops if row.level == "0.05"]
    assert (small.n, small.drop) == (32, 37.5)  # 12 of 32 wrong
    counterfoil("report", run, "--out", tmp_path / "out")
    assert "8 of 200 answers (8 error); they are left out of every denominator" in page_words(
        tmp_path / "out" / "report.html"
    )


def test_a_level_with_few_photos_is_shown_as_too_few(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"net": breaks_on({"size:0.05": 40})}, photos=40, errors=31)
    done = counterfoil("report", run, "--out", tmp_path / "out", "--export", "latex")
    assert "1 of 4 rows of the table have fewer than 10 photos" in done.stdout
    assert "too few 9 net" in page_words(tmp_path / "out" / "report.html")
    assert "too few" in (tmp_path / "out" / "results.tex").read_text()


def test_a_mined_benchmark_leads_with_the_accuracy_over_its_pictures(tmp_path: Path) -> None:
    everywhere = {"background-swap": 12, "size": 12}
    run = write_run(
        tmp_path / "run", {"net": breaks_on(everywhere), "chooser": breaks_on(everywhere)}, photos=12,
        collection="hard 1.0.0", collection_digest="beef" * 16, surrogates={"chooser": ""},
    )  # fmt: skip
    done = counterfoil("report", run, "--out", tmp_path / "out")
    # All pictures fail, so that photos count: Wilson's interval of 0 of 12, and of 12 of 12.
    none, every = (100 * bound for bound in (proportion_confint(0, 12, method="wilson")[1],
                                             proportion_confint(12, 12, method="wilson")[0]))  # fmt: skip
    told = f"right on 0.0 % [0.0, {none:.1f}] of the 36 pictures (12 photos)"
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"net is {told}; on 100.0 % [{every:.1f}, 100.0] of the unedited photos (n = 12)."
    assert f"size 0.0 % [0.0, {none:.1f}] of 24 pictures (12 photos)" in lines[1]
    assert f"background 0.0 % [0.0, {none:.1f}] of 12 pictures (12 photos)" in lines[1]
    mark = next(place for place, line in enumerate(lines) if line.startswith("chooser – surrogate: chose pictures"))
    assert lines[mark + 1].startswith(f"chooser is {told}")
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["headline"][0] == lines[0]
    words = page_words(tmp_path / "out" / "report.html").replace("\u00a0", " ")
    assert words.index(told) < words.index("Percent right by kind of picture")
    assert "net is right on 0.0 % of the pictures" in words  # the title: a surrogate is not counted


def test_of_few_photos_the_failures_are_shown_and_none_that_holds_is_said_to_break(tmp_path: Path) -> None:
    def right(photo: int, edit: str, level: str) -> bool:
        return photo == 0 or (photo == 1 and edit != "size")  # the third photo is wrong from the beginning

    run = write_run(tmp_path / "run", {"net": right}, photos=3)
    counterfoil("report", run, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    gallery, failures = page.split('id="pictures"')[1].split("</section>")[0], page.split('<details id="failures"')[1]
    gallery += "".join(page.split("<dialog")[1:])
    failures = failures.split("</details>")[0]
    assert [name in gallery for name in ("fish/000.jpg", "fish/001.jpg", "fish/002.jpg")] == [True, True, False]
    assert [name in failures for name in ("fish/000.jpg", "fish/001.jpg", "fish/002.jpg")] == [False, True, False]


def test_figures_that_cannot_be_drawn_are_told(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"net": breaks_on({})}, photos=4)
    done = counterfoil("report", run, "--out", tmp_path / "out", "--export", "svg,pdf,png,markdown")
    assert done.returncode == 3, done.stderr  # of two classes, four right answers may be guessed
    told = "no file written, since there is nothing to show: too few photos were scored"
    assert [line for line in done.stdout.splitlines() if "no file" in line] == [
        f"{form}: {told}" for form in ("svg", "pdf", "png")
    ]
    assert (tmp_path / "out" / "results.md").is_file()
    assert not (tmp_path / "out" / "figures").exists()


def test_an_empty_run_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"net": breaks_on({})}, photos=0)
    done = counterfoil("report", run, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "No data: no photo was scored" in done.stdout
    assert "No data: no photo was scored" in page_words(tmp_path / "out" / "report.html")


def test_a_folder_that_is_no_run_and_a_missing_table_are_refused_in_one_line(tmp_path: Path) -> None:
    done = counterfoil("report", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "expected the folder of a finished run" in done.stderr
    run = write_run(tmp_path / "run", {"net": breaks_on({})}, photos=12)
    (run / "predictions" / "net.parquet").unlink()
    done = counterfoil("report", run, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "net.parquet is not there" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_notes_where_the_objects_centre_lies(finished: Path) -> None:
    table = read_table(finished / "honest" / "variants.parquet")
    (row, *_) = np.flatnonzero(table["edit"] == "original")
    mask = np.asarray(Image.open(finished / "masks" / table["mask"][row]).convert("L")) >= 128
    down, across = ndimage.center_of_mass(mask)
    expected = ((across + 0.5) / mask.shape[1], (down + 0.5) / mask.shape[0])
    assert (table["centre_x"][row], table["centre_y"][row]) == pytest.approx(expected, abs=0.01)
