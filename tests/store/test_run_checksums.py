"""A run's folder: whatever bit is flipped, `check` names the file, and report, compare, gate and freeze refuse it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.store.parquet import Kind
from counterfoil.store.parts import PartStore
from counterfoil.store.run_checksums import CHECKSUMS, list_changed_files, refuse_changed
from counterfoil.store.run_counts import count_run
from counterfoil.store.sealed_record import read_sealed, write_sealed
from counterfoil.store.workspace import Workspace
from planted import write_photos

RECIPE = "about: Two edits.\njudge_fills: false\nedits:\n  - edit: control\n  - edit: background-blur\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and a workspace of the same photos, one of which is no picture."""
    folder = tmp_path_factory.mktemp("made")
    images, masks = write_photos(folder, 4)
    (images / "azure" / "broken.jpg").write_bytes(b"no picture")
    shutil.copy(next((masks / "azure").iterdir()), masks / "azure" / "broken.png")
    (images / "azure" / "gone.jpg").symlink_to("nowhere")
    (folder / "recipe.yaml").write_text(RECIPE)
    source = ["--images", str(images), "--masks", str(masks), "--recipe", str(folder / "recipe.yaml")]
    run = invoke("run", *source, "--model", "python:planted:honest", "--out", str(folder / "run"))
    (folder / "said.txt").write_text(run)
    invoke("build", *source, "--out", str(folder / "workspace"))
    return folder


def invoke(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(commands, arguments)
    assert done.exit_code == status, (done.output, done.exception)
    return done.output


def test_a_run_prints_that_everything_is_accounted_for(made: Path) -> None:
    said = (made / "said.txt").read_text()
    assert "photos: 5 taken = 4 with pictures + 1 skipped; 1 more left out by the source" in said
    counts = re.search(r"pictures: (\d+) made, (\d+) edits skipped", said)
    assert counts
    made_pictures, skipped = map(int, counts.groups())
    assert (made_pictures + skipped, skipped < 3) == (12, True)  # an edit that changes nothing to be seen is skipped
    answered = f"{made_pictures} = {made_pictures} scored + 0 without a score"
    assert f"answers of python:planted:honest: {answered}" in said


@pytest.mark.parametrize("kind", ["run", "workspace"])
def test_check_says_that_a_folder_is_whole(made: Path, kind: str) -> None:
    assert f"whole: {made / kind}" in invoke("check", str(made / kind))


def test_every_flipped_bit_in_a_runs_files_is_named_by_check_and_refused_by_report(made: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(19)
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    recorded = json.loads((run / CHECKSUMS).read_text())["files"]  # all that later commands read
    files = [run / CHECKSUMS, *(run / name for name in recorded), *(run / "work" / "parts").glob("*.parquet")]
    assert len(files) > 8
    for path in files:
        whole = path.read_bytes()
        for place in rng.integers(0, len(whole), 3):
            content = bytearray(whole)
            content[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(content)
            done = CliRunner().invoke(commands, ["check", str(run)])
            if "parts" in path.parts and done.exit_code == 0:  # a bit that nothing reads, such as a page's statistics
                part = PartStore(made / "run" / "work" / "parts").read(path.stem)
                assert PartStore(path.parent).read(path.stem).about == part.about  # it holds the hash of the rows
                continue
            assert done.exit_code == 1, (path, done.output, done.exception)
            assert path.name in done.output
            if "parts" not in path.parts:  # the parts are read by nothing but a further session
                with pytest.raises(UserError, match="expected the folder as counterfoil wrote it"):
                    refuse_changed(run)
        path.write_bytes(whole)
    assert list_changed_files(run) == []


@pytest.mark.parametrize("name", ["run.json", "variants.parquet", "predictions", "skipped.csv", CHECKSUMS])
def test_report_compare_gate_analyse_and_show_refuse_a_changed_folder_in_one_line(
    made: Path, tmp_path: Path, name: str
) -> None:
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    path = next((run / name).iterdir()) if name == "predictions" else run / name
    path.write_bytes(path.read_bytes().replace(b"honest", b"honesT").replace(b"azure", b"azurE") + b" ")
    for command in (
        ["report", run, "--out", tmp_path / "page"],
        ["compare", run, made / "run"],
        ["gate", run, "--max-drop", "50"],
        ["analyse", run],
        ["show", run, "--out", tmp_path / "sheet.png"],
    ):
        done = CliRunner().invoke(commands, list(map(str, command)))
        assert isinstance(done.exception, UserError), (command, done.output, done.exception)
        assert "expected the folder as counterfoil wrote it" in str(done.exception)


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
def test_what_cannot_be_read_in_place_of_the_record_is_refused(made: Path, tmp_path: Path, kind: str) -> None:
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    (run / CHECKSUMS).unlink()
    if kind == "folder":
        (run / CHECKSUMS).mkdir()
    else:
        (run / CHECKSUMS).symlink_to("nowhere")
    with pytest.raises(UserError, match=f"{CHECKSUMS} is damaged"):
        refuse_changed(run)


def test_a_damaged_thumbnail_is_made_again_and_not_shown(made: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    invoke("report", str(run), "--out", str(run))
    page = (run / "report.html").read_bytes()
    assert page.count(b"data:image/jpeg") > 4
    for path in (run / "thumbnails").iterdir():
        content = path.read_bytes()
        path.write_bytes(content[:50] + bytes([content[50] ^ 64]) + content[51:])
    invoke("report", str(run), "--out", str(run))
    assert (run / "report.html").read_bytes() == page


@pytest.mark.parametrize("name", ["run.json", "work/plan.json"])
def test_a_flipped_bit_in_the_records_of_an_unfinished_run_is_noticed(made: Path, tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(20)
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    (run / CHECKSUMS).unlink()  # as before the tables are written
    whole = (run / name).read_bytes()
    images, masks = made / "images", made / "masks"
    again = ["run", "--images", images, "--masks", masks, "--recipe", made / "recipe.yaml", "--out", run]
    for place in rng.integers(0, len(whole), 12):
        content = bytearray(whole)
        content[place] ^= 1 << int(rng.integers(8))
        (run / name).write_bytes(content)
        for command in (["shards", "merge", run], [*again, "--model", "python:planted:honest"]):
            if name == "work/plan.json" and command[0] == "run":
                continue  # it is written anew
            done = CliRunner().invoke(commands, list(map(str, command)))
            if done.exit_code != 0:
                assert isinstance(done.exception, UserError), (place, command, done.exception)
            else:  # a space, or the key of the checksum itself
                assert_same_record(run / name, whole)


def assert_same_record(path: Path, whole: bytes) -> None:
    kept = {"command", "environment", "checksum"}
    before, now = ({key: value for key, value in json.loads(text).items() if key not in kept}
                   for text in (whole, path.read_bytes()))  # fmt: skip
    assert all(now.get(key) == value for key, value in before.items())


def test_merge_refuses_a_finished_run_with_a_changed_file(made: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    (run / "skipped.csv").write_bytes((run / "skipped.csv").read_bytes() + b" ")
    done = CliRunner().invoke(commands, ["shards", "merge", str(run)])
    assert isinstance(done.exception, UserError)
    assert "skipped.csv is not as it was written" in str(done.exception)


def test_a_run_whose_source_listed_more_than_was_taken_does_not_add_up(made: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    assert count_run(run).faults == ()
    record = read_sealed(run / "run.json")
    assert record["listed"] == 6  # four photos, one that is no picture, one dangling link
    write_sealed(run / "run.json", {**record, "listed": 7})
    (run / CHECKSUMS).unlink()
    assert count_run(run).faults == ("the source listed 7 entries, 5 were taken and 1 left out",)


def test_build_and_a_limit_are_accounted_for(made: Path, tmp_path: Path) -> None:
    source = ["--images", made / "images", "--masks", made / "masks", "--recipe", made / "recipe.yaml", "--limit", 3]
    said = invoke("build", *map(str, source), "--out", str(tmp_path / "work"))
    assert "photos: 3 taken = 3 with pictures + 0 skipped; 1 more left out by the source, 2 beyond --limit" in said
    (next((tmp_path / "work" / "pictures" / "control").rglob("*.png"))).unlink()
    (tmp_path / "work" / CHECKSUMS).unlink()
    evaluated = ["evaluate", tmp_path / "work", "--model", "python:planted:honest", "--out", tmp_path / "out"]
    said = invoke(*map(str, evaluated), status=3)  # three right answers may be guessed
    assert re.search(r"pictures: 9 taken = (8 shown \+ 1|7 shown \+ 2) skipped", said)  # one edit may change nothing


def test_a_changed_picture_or_manifest_of_a_workspace_is_named_and_freeze_refuses_it(
    made: Path, tmp_path: Path
) -> None:
    workspace = Path(shutil.copytree(made / "workspace", tmp_path / "workspace"))
    first, second, *_ = sorted((workspace / "pictures").rglob("*.png"))
    whole = first.read_bytes()
    first.write_bytes(second.read_bytes())
    assert first.name in invoke("check", str(workspace), status=1)
    first.write_bytes(whole)
    manifest = workspace / "variants.parquet"
    manifest.write_bytes(manifest.read_bytes()[:-100])
    assert "variants.parquet is not as it was written" in invoke("check", str(workspace), status=1)
    with pytest.raises(UserError, match=r"variants\.parquet is not as it was written"):
        Workspace(workspace)


def test_a_run_that_goes_on_is_whole_again(made: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    (run / "variants.parquet").write_bytes(b"")
    source = ["--images", str(made / "images"), "--masks", str(made / "masks"), "--recipe", str(made / "recipe.yaml")]
    invoke("run", *source, "--model", "python:planted:honest", "--out", str(run))
    assert "whole" in invoke("check", str(run))
    assert (run / "variants.parquet").read_bytes() == (made / "run" / "variants.parquet").read_bytes()


def test_a_folder_of_an_earlier_version_can_be_read_and_check_says_that_it_has_no_checksums(
    made: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    (run / CHECKSUMS).unlink()
    assert "no checksums" in invoke("check", str(run), status=1)
    assert count_run(run).faults == ()


def test_check_ends_with_one_line_and_status_1(made: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    (run / "run.json").unlink()
    command = [sys.executable, "-m", "counterfoil", "report", str(run), "--out", str(tmp_path / "page")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "run.json is missing" in done.stderr


def test_a_part_with_the_same_values_in_columns_of_another_type_is_refused(tmp_path: Path) -> None:
    columns: dict[str, Kind] = {"variant_id": "text", "replicate": "int"}
    store = PartStore(tmp_path)
    store.write("part", columns, [("a", 0), ("b", 1)], {})
    path = tmp_path / "part.parquet"
    table = pq.read_table(path)
    fields = [field.with_nullable(True) for field in table.schema]  # as one flipped bit makes of it
    pq.write_table(table.cast(pa.schema(fields, table.schema.metadata)), path)
    assert store.read("part").texts("variant_id") == ["a", "b"]
    with pytest.raises(UserError, match="its columns are not of the types that were written; remove it"):
        store.read("part", columns)
