"""`counterfoil show`: sheets of pictures for slides, from a real run of planted models."""

from __future__ import annotations

import io
import re
import shlex
import shutil
from pathlib import Path

import pytest
from PIL import Image

import counterfoil as cf
from command_line import counterfoil
from counterfoil.report.gallery import EmbeddedPictures, GallerySource, build_gallery
from counterfoil.store.parquet import read_table, write_table
from counterfoil.store.prediction_tables import MANIFEST_COLUMNS
from counterfoil.store.run_checksums import record_checksums
from counterfoil.study.examples import choose_examples
from counterfoil.study.runs import open_runs
from planted import write_photos
from run_folders import write_run

RECIPE = "working_size: 64\nedits:\n - edit: background-plain\n - {edit: size, settings: {rate: 0.05}}\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("show")
    images, masks = write_photos(folder, 12)
    (folder / "short.yaml").write_text(RECIPE)
    models = ["Blind=python:planted:answers_by_background", "python:planted:honest"]
    cf.run(images, models, masks=masks, recipe=str(folder / "short.yaml"), out=folder / "run").report(folder / "run")
    return folder / "run"


def test_a_sheet_shows_failures_at_full_resolution_with_names_and_answers(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "sheet.svg"
    done = counterfoil("show", run, "--attribute", "background", "--model", "Blind", "--limit", "2", "--out", out)
    assert done.returncode == 0, done.stderr
    drawing = out.read_text()
    assert drawing.count("<image") == 4
    assert drawing.count("Background: a plain one instead") == 2
    assert len(re.findall(r">Blind: .* → .*<", drawing)) == 2


@pytest.mark.parametrize("form", ["png", "pdf"])
def test_a_sheet_comes_as_a_picture_or_a_document(run: Path, tmp_path: Path, form: str) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / f"sheet.{form}"
    assert counterfoil("show", run, "--attribute", "background", "--out", out).returncode == 0
    data = out.read_bytes()
    if form == "pdf":
        assert data.startswith(b"%PDF")
    else:
        assert min(Image.open(io.BytesIO(data)).size) > 64


def test_every_picture_of_one_photo_is_shown_failed_or_not(run: Path, tmp_path: Path) -> None:
    photo = open_runs([run]).answers.samples[0]
    out = tmp_path / "sheet.svg"
    assert counterfoil("show", run, "--photo", photo, "--out", out).returncode == 0
    assert out.read_text().count("<image") == 4  # two edits, each with what it is compared with


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--attribute", "colour"), "expected attribute among background, size, got 'colour'"),
        (("--model", "Blund"), "got 'Blund'"),
        (("--photo", "none"), "got 'none'"),
        (("--attribute", "size", "--model", "python:planted:honest"), "nothing failed there"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(
    run: Path, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    done = counterfoil("show", run, *arguments, "--out", tmp_path / "sheet.svg")
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "ends in .png, .svg, .pdf" in counterfoil("show", run, "--out", tmp_path / "sheet.gif").stderr


def test_a_run_without_unedited_photos_is_refused_in_one_line(tmp_path: Path) -> None:
    empty = write_run(tmp_path / "empty", {"net": lambda photo, edit, level: True}, photos=0)
    done = counterfoil("show", empty, "--out", tmp_path / "sheet.svg")
    assert done.returncode == 2
    assert done.stderr.startswith("counterfoil: expected unedited photos to show pictures beside, got none in")
    (empty / "run.json").write_text("[1]")
    done = counterfoil("show", empty, "--out", tmp_path / "sheet.svg")
    assert done.returncode == 2
    assert "which is no JSON object" in done.stderr


def test_pictures_with_other_pixels_than_the_models_saw_are_left_out_and_counted(run: Path, tmp_path: Path) -> None:
    table = read_table(run / "variants.parquet")
    photo = str(table["sample_id"][0])
    changed = shutil.copytree(run, tmp_path / "changed")
    for edits, said in (({"size"}, "left out 1"), ({"size", "background-plain"}, "got others for all 2")):
        hashes = [
            "0" * 64 if edit in edits else pixels for edit, pixels in zip(table["edit"], table["sha256"], strict=True)
        ]
        write_table(changed / "variants.parquet", MANIFEST_COLUMNS, {**table, "sha256": hashes})
        record_checksums(changed)
        done = counterfoil("show", changed, "--photo", photo, "--out", tmp_path / "sheet.svg")
        assert said in done.stderr
        assert done.returncode == (0 if len(edits) == 1 else 2)
    assert (tmp_path / "sheet.svg").read_text().count("<image") == 2


def test_the_command_on_a_card_makes_the_file(run: Path, tmp_path: Path) -> None:
    examples = list(choose_examples(open_runs([run]), lambda variant, pixels: None))
    (section, *_) = build_gallery(GallerySource(examples, {}, {}, str(run)), EmbeddedPictures())
    program, command, *arguments, name = shlex.split(section.cards[0].command)
    assert (program, name) == ("counterfoil", f"{section.cards[0].variant_id}.png")
    assert counterfoil(command, *arguments, tmp_path / name).returncode == 0
    assert Image.open(tmp_path / name).size[0] > 0


def test_a_named_model_has_its_name_in_tables_and_findings(run: Path) -> None:
    study = open_runs([run])
    assert tuple(study.predictions) == ("Blind", "python:planted:honest")
    assert (run / "predictions" / "Blind.parquet").is_file()
    assert "Blind" in (run / "drops.csv").read_text()
