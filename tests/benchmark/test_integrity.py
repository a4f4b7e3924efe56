"""A benchmark that was changed is noticed, named and refused."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from counterfoil.benchmark.benchmark_json import BenchmarkRecord, digest_content, read_benchmark_record
from counterfoil.benchmark.croissant import CROISSANT, render_croissant
from counterfoil.benchmark.frozen_benchmark import open_benchmark
from counterfoil.benchmark.integrity import add_content_hashes, find_differences, hash_file, hash_files
from counterfoil.benchmark.layouts import LAYOUTS, LayoutName
from counterfoil.benchmark.manifest import COLUMNS, read_manifest
from counterfoil.cli import commands
from counterfoil.errors import Unusable, UserError
from counterfoil.sources.pixels import decode_picture
from counterfoil.store.parquet import TableWriter, read_table
from freeze_workspaces import frozen, write_workspace
from locations import DATA

BEFORE = DATA / "written_before_pyarrow.zip"  # benchmarks whose record has format 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One benchmark in each layout."""
    folder = tmp_path_factory.mktemp("check")
    workspace = write_workspace(folder)
    for layout in LAYOUTS:
        frozen(workspace, folder / layout, layout=layout)
    return folder


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> LayoutName:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def benchmark(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole / "folder", tmp_path / "set"))


def checked(folder: Path, *options: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(commands, ["check", str(folder), *options], catch_exceptions=False)
    return done.exit_code, done.stdout.splitlines()


def refused(folder: Path) -> str:
    with pytest.raises(UserError, match="as it was frozen") as error:
        open_benchmark(folder)
    return str(error.value)


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def reseal(folder: Path, record: BenchmarkRecord) -> BenchmarkRecord:
    """The record written again, for the files as they are now."""
    notes = hash_files(folder, [name for name in record.files if name != CROISSANT])
    (folder / CROISSANT).write_text(render_croissant(record, notes), encoding="utf-8")
    sealed = record.sealed(add_content_hashes(folder, {**notes, **hash_files(folder, [CROISSANT])}))
    (folder / "benchmark.json").write_text(sealed.text(), encoding="utf-8")
    return sealed


def picture(folder: Path) -> Path:
    return sorted(folder.rglob("*.png"))[3]


def test_a_whole_benchmark_is_whole(whole: Path, layout: LayoutName) -> None:
    status, lines = checked(whole / layout)
    assert status == 0
    assert lines[0].startswith("whole: planted 1.0.0, 20 pictures")
    assert checked(whole / layout, "--files-only") == (status, lines)


@pytest.mark.parametrize("place", [0, 100, -1])
def test_one_flipped_bit_of_a_picture_is_named(benchmark: Path, place: int) -> None:
    flip(picture(benchmark), place)
    name = picture(benchmark).relative_to(benchmark)
    assert checked(benchmark) == (1, [f"changed: {name} (its SHA-256 differs)"])
    assert str(name) in refused(benchmark)


@pytest.mark.parametrize("layout", ["parquet", "webdataset"])
def test_one_flipped_bit_in_a_shard_is_named_with_its_picture(whole: Path, tmp_path: Path, layout: str) -> None:
    folder = Path(shutil.copytree(whole / layout, tmp_path / "set"))
    table = read_table(folder / "manifest.parquet")
    row = list(table["split"]).index("test") + 2
    flip(folder / table["file"][row], int(table["offset"][row]) + 60)
    _, lines = checked(folder)
    assert lines == [
        f"changed: {table['file'][row]} (its SHA-256 differs)",
        f"changed: {table['file'][row]}/{table['member'][row]} (a picture in a changed shard)",
    ]
    refused(folder)


def test_a_missing_an_extra_and_a_renamed_picture_are_told_apart(benchmark: Path) -> None:
    missing, renamed = sorted(benchmark.rglob("*.png"))[:2]
    missing.unlink()
    renamed.rename(renamed.with_name("other.png"))
    shutil.copy(picture(benchmark), benchmark / "data" / "test" / "extra.png")
    found = {difference.kind: difference.file for difference in find_differences(benchmark)}
    assert found == {
        "missing": str(missing.relative_to(benchmark)),
        "renamed": str(renamed.relative_to(benchmark)),
        "extra": "data/test/extra.png",
    }
    assert "other.png" in " ".join(checked(benchmark)[1])
    refused(benchmark)


@pytest.mark.parametrize("file", ["README.md", "CHANGELOG.md", "croissant.json", "labels.json", "examples.jpg"])
def test_every_other_file_is_covered_too(benchmark: Path, file: str) -> None:
    flip(benchmark / file, 5)
    assert checked(benchmark) == (1, [f"changed: {file} (its SHA-256 differs)"])


def test_an_edited_manifest_is_named(benchmark: Path) -> None:
    table = read_table(benchmark / "manifest.parquet")
    table["label"][0] = "violet"
    with TableWriter(benchmark / "manifest.parquet", COLUMNS) as writer:
        writer.write(table)
    status, lines = checked(benchmark)
    assert status == 1
    assert lines[0].startswith("changed: manifest.parquet")
    refused(benchmark)


def test_the_digest_is_over_what_the_record_says_not_how_it_is_laid_out(benchmark: Path) -> None:
    path = benchmark / "benchmark.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(dict(sorted(record.items(), reverse=True)), indent=7, ensure_ascii=True))
    assert checked(benchmark)[0] == 0


@pytest.mark.parametrize("key", ["scoring", "surrogates", "content_digest", "digest"])
def test_an_edited_record_is_named(benchmark: Path, key: str) -> None:
    path = benchmark / "benchmark.json"
    record = json.loads(path.read_text())
    record[key] = {"scoring": "subset", "surrogates": {"me": "0"}}.get(key, "0" * 64)
    path.write_text(json.dumps(record))
    assert checked(benchmark)[1][0].startswith("changed: benchmark.json")
    refused(benchmark)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_digest_does_not_depend_on_how_tables_are_encoded(whole: Path, tmp_path: Path, layout: LayoutName) -> None:
    """Other row groups, codecs and offsets, as another version of pyarrow may write them."""
    folder = Path(shutil.copytree(whole / layout, tmp_path / "set"))
    table = read_table(folder / "manifest.parquet")
    for path in sorted(folder.glob("data/*.parquet")):
        pq.write_table(pq.read_table(path), path, compression="NONE", use_dictionary=False, row_group_size=1)
    for row, (file, offset) in enumerate(zip(table["file"], table["offset"], strict=True)):
        if str(file).endswith(".parquet"):
            picture = (whole / layout / file).read_bytes()[offset : offset + table["size"][row]]
            table["offset"][row] = (folder / file).read_bytes().index(picture)
    columns = {name: list(column) for name, column in table.items()}
    pq.write_table(pa.table(columns), folder / "manifest.parquet", compression="gzip", row_group_size=3)
    record = read_benchmark_record(folder)
    assert checked(folder)[0] == 1  # other bytes than this copy's record names
    assert reseal(folder, record).digest == record.digest
    assert checked(folder)[0] == 0
    assert open_benchmark(folder).digest == record.digest


def test_another_label_in_a_shard_is_named_though_every_hash_of_bytes_fits(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole / "parquet", tmp_path / "set"))
    name = "data/test-00000.parquet"
    table = pq.read_table(folder / name)
    labels = pa.array(["violet"] * table.num_rows)
    pq.write_table(table.set_column(table.column_names.index("label"), "label", labels), folder / name)
    record = read_benchmark_record(folder)
    bytes_of = hash_files(folder, [name])[name]
    kept = bytes_of.model_copy(update={"content": record.files[name].content})
    consistent = record.sealed({**record.files, name: kept})
    assert consistent.digest == record.digest
    (folder / "benchmark.json").write_text(consistent.text())
    named = {one.file for one in find_differences(folder)}
    assert name in named
    assert reseal(folder, record).digest != record.digest


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_benchmark_of_an_earlier_version_is_whole_and_keeps_its_digest(tmp_path: Path, layout: LayoutName) -> None:
    digest = {
        "folder": "d6b4518e264e8cebb3f56108c86862a44072c0853d8b19697bd324183a616ecd",
        "parquet": "bab8c1713b4e83d6ed7a1dff88d8210d6b2a6823ee3abebbb2b8ea9021e20105",
        "webdataset": "223ab1fb78f68f9dd6b4e1ad41145cd68f1d6ee8858971e29a3922e3098d986a",
    }[layout]
    with zipfile.ZipFile(BEFORE) as archive:
        archive.extractall(tmp_path)
    assert read_benchmark_record(tmp_path / layout).format == 1
    assert checked(tmp_path / layout, "--digest", digest)[0] == 0
    opened = open_benchmark(tmp_path / layout)
    assert [opened.read(one).shape for one in opened.pictures] == [(32, 40, 3)] * 2
    flip(tmp_path / layout / "manifest.parquet", -20)
    assert checked(tmp_path / layout)[1][0].startswith("changed: manifest.parquet (its SHA-256 differs;")


def test_a_content_digest_of_other_pictures_is_named(benchmark: Path) -> None:
    record = read_benchmark_record(benchmark)
    resealed = record.model_copy(update={"content_digest": "0" * 64}).sealed(record.files)
    (benchmark / "benchmark.json").write_text(resealed.text())
    assert checked(benchmark) == (
        1,
        ["changed: benchmark.json (its digest of the pictures does not match the manifest)"],
    )


def test_pictures_that_decode_otherwise_are_named(benchmark: Path) -> None:
    """Consistent but false: every file has its hash, yet the pixels are not those of the manifest."""
    table = read_table(benchmark / "manifest.parquet")
    table["pixel_sha256"][5] = "0" * 64
    with TableWriter(benchmark / "manifest.parquet", COLUMNS) as writer:
        writer.write(table)
    record = read_benchmark_record(benchmark)
    content = digest_content(read_manifest(benchmark))
    reseal(benchmark, record.model_copy(update={"content_digest": content}))
    assert checked(benchmark, "--files-only")[0] == 0
    assert checked(benchmark) == (1, [f"changed: {table['file'][5]} (other pixels when decoded)"])
    opened = open_benchmark(benchmark)
    with pytest.raises(Unusable, match="other pixels than were frozen"):
        opened.read(opened.pictures[5])


def test_another_benchmark_than_the_published_one_is_noticed(benchmark: Path) -> None:
    digest = open_benchmark(benchmark).digest
    assert checked(benchmark, "--digest", digest)[0] == 0
    status, lines = checked(benchmark, "--digest", "0" * 64)
    assert (status, lines[-1].split(":")[0]) == (1, "another benchmark")


def test_a_digest_is_taken_in_capitals_and_half_a_one_is_refused(benchmark: Path) -> None:
    digest = open_benchmark(benchmark).digest
    assert checked(benchmark, "--digest", digest.upper())[0] == 0
    with pytest.raises(UserError, match="64 hexadecimal digits"):
        checked(benchmark, "--digest", digest[:12])


def test_a_link_to_the_same_bytes_is_whole_and_one_that_leads_nowhere_is_missing(
    benchmark: Path, tmp_path: Path
) -> None:
    lost = picture(benchmark)
    lost.rename(tmp_path / "elsewhere.png")
    lost.symlink_to(tmp_path / "elsewhere.png")
    assert checked(benchmark)[0] == 0
    (tmp_path / "elsewhere.png").unlink()
    name = lost.relative_to(benchmark).as_posix()
    assert checked(benchmark) == (1, [f"missing: {name} (a broken link)"])


def test_json_names_the_same(benchmark: Path) -> None:
    picture(benchmark).unlink()
    told = json.loads("\n".join(checked(benchmark, "--json")[1]))
    assert told["whole"] is False
    assert told["differences"][0].startswith("missing: data/")


def test_what_git_keeps_at_the_top_is_no_difference(benchmark: Path) -> None:
    (benchmark / ".git").mkdir()
    (benchmark / ".git" / "HEAD").write_text("ref")
    (benchmark / ".gitattributes").write_text("*.png filter=lfs")
    assert checked(benchmark)[0] == 0


def test_links_to_folders_and_what_is_no_file_are_extra(benchmark: Path, tmp_path: Path) -> None:
    """Others would read the pictures behind a link as part of the benchmark."""
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(picture(benchmark), tmp_path / "elsewhere" / "a.png")
    (benchmark / "data" / "test" / "linked").symlink_to(tmp_path / "elsewhere")
    (benchmark / "data" / "nowhere").symlink_to("nothing")
    os.mkfifo(benchmark / "data" / "pipe")
    extra = [f"extra: data/{name}" for name in ("nowhere", "pipe", "test/linked")]
    assert checked(benchmark) == (1, extra)
    refused(benchmark)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_pipe_in_the_place_of_a_file_is_named_and_not_waited_for(
    whole: Path, tmp_path: Path, layout: LayoutName
) -> None:
    folder = Path(shutil.copytree(whole / layout, tmp_path / "set"))
    name = read_table(folder / "manifest.parquet")["file"][0]
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert [(one.kind, one.file) for one in find_differences(folder)] == [("changed", name)]


def test_a_manifest_that_is_damaged_under_its_own_hash_is_said(benchmark: Path) -> None:
    path = benchmark / "manifest.parquet"
    data = bytearray(path.read_bytes())
    data[100:200] = bytes(100)
    path.write_bytes(data)
    record = read_benchmark_record(benchmark)
    (benchmark / "benchmark.json").write_text(record.sealed({**record.files, path.name: hash_file(path)}).text())
    with pytest.raises(UserError, match="is damaged"):
        open_benchmark(benchmark)


def test_a_picture_larger_than_any_is_no_picture() -> None:
    head = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    with pytest.raises(Unusable, match="is no picture"):
        decode_picture(data, "bomb.png")


@pytest.mark.parametrize("file", ["../outside.png", "/etc/passwd"])
def test_paths_that_lead_out_are_refused(benchmark: Path, file: str) -> None:
    path = benchmark / "benchmark.json"
    record = json.loads(path.read_text())
    record["files"][file] = record["files"]["README.md"]
    path.write_text(json.dumps(record))
    with pytest.raises(UserError, match="paths inside the benchmark"):
        find_differences(benchmark)


@pytest.mark.parametrize(
    ("text", "line"),
    [("{", "expected JSON"), ("[" * 100_000, "expected JSON"), ("{}", "as counterfoil writes it"),
     ('{"format": 3}', "a newer counterfoil")],
)  # fmt: skip
def test_a_record_that_cannot_be_read_is_said_in_one_line(benchmark: Path, text: str, line: str) -> None:
    (benchmark / "benchmark.json").write_text(text)
    with pytest.raises(UserError, match=line) as error:
        open_benchmark(benchmark)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("key", "value"), [("version", "1.0"), ("description", "\ud800")])
def test_a_record_that_no_freeze_could_have_written_is_refused(benchmark: Path, key: str, value: str) -> None:
    path = benchmark / "benchmark.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    for command in (["check", str(benchmark)], ["diff", str(benchmark), str(benchmark)]):
        assert isinstance(CliRunner().invoke(commands, command).exception, UserError)


@pytest.mark.parametrize("below", ["", "run", "data/run"])
def test_nothing_is_written_into_a_benchmark(whole: Path, benchmark: Path, below: str) -> None:
    out, model = str(benchmark / below), "python:planted:Planted"
    for arguments in (
        ["evaluate", str(whole / "parquet"), "--model", model],
        ["build", "--images", str(whole / "images")],
        ["freeze", str(whole / "workspace"), "--name", "x", "--version", "1.0.0"],
    ):
        refused = CliRunner().invoke(commands, [*arguments, "--out", out]).exception
        assert isinstance(refused, UserError)
        assert "outside of every frozen benchmark" in str(refused) or "never overwritten" in str(refused)
    assert checked(benchmark)[0] == 0


def test_a_folder_without_a_benchmark_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no benchmark\.json"):
        open_benchmark(tmp_path)


def test_a_picture_that_changes_after_opening_is_not_shown_to_a_model(benchmark: Path) -> None:
    opened = open_benchmark(benchmark)
    first, second = opened.pictures[:2]
    shutil.copy(benchmark / second.file, benchmark / first.file)
    with pytest.raises(Unusable, match="other pixels"):
        opened.read(first)
    (benchmark / first.file).unlink()
    with pytest.raises(Unusable, match="cannot be read"):
        opened.read(first)


def test_a_benchmark_prints_one_line(benchmark: Path) -> None:
    line = repr(open_benchmark(benchmark))
    assert line.startswith("Benchmark(")
    assert len(line) < 300
