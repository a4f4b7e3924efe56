"""A run in parts: whatever pieces it is made in, and whatever is added to it, the tables are the same."""

from __future__ import annotations

import platform
import resource
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import counterfoil as cf
import planted
from counterfoil import run_status
from counterfoil.cli import commands
from counterfoil.machine import return_memory
from counterfoil.run_config import RunConfig, prepare
from counterfoil.run_status import describe_status, open_plan, read_status
from counterfoil.runner import PhotoWork, process_photos
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.merged_tables import PICTURE_COLUMNS
from counterfoil.store.parts import PartStore
from counterfoil.store.piece_plan import group_models
from counterfoil.store.prediction_tables import PREDICTION_COLUMNS
from planted import write_photos
from table_files import table_bytes

HONEST, BLIND = "python:planted:Planted", "python:planted:BlindOnTheLeft"
SHORT = "edits: [{edit: control}, {edit: direction}, {edit: size, settings: {rate: 0.1}}]\n"
LONG = (
    "edits: [{edit: background-swap, replicates: 2}, {edit: control}, {edit: direction}, {edit: jpeg},"
    " {edit: size, settings: {rate: 0.1}}]\n"
)
HEAD = "working_size: 96\njudge_fills: false\ntool_checks: 2\n"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("photos"), 10)


@pytest.fixture
def recipes(tmp_path: Path) -> tuple[str, str]:
    for name, steps in (("short", SHORT), ("long", LONG)):
        (tmp_path / f"{name}.yaml").write_text(HEAD + steps)
    return str(tmp_path / "short.yaml"), str(tmp_path / "long.yaml")


def parts_of(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "work" / "parts").iterdir()}


@pytest.mark.parametrize("size", [3, 64])
def test_pieces_of_any_size_give_the_same_bytes(
    photos: tuple[Path, Path], recipes: tuple[str, str], tmp_path: Path, size: int
) -> None:
    config = RunConfig(source=open_source(*photos), models=(HONEST, BLIND), recipe=recipes[1])
    for name, items in (("one", 1), ("other", size)):
        work = PhotoWork(prepare(config))
        work.pieces = replace(work.pieces, size=items)
        process_photos(work, tmp_path / name)
    assert len(parts_of(tmp_path / "other")) == 3 * -(-10 // size)
    assert table_bytes(tmp_path / "one") == table_bytes(tmp_path / "other")


def test_a_model_that_is_added_makes_only_its_own_parts(
    photos: tuple[Path, Path], recipes: tuple[str, str], tmp_path: Path
) -> None:
    images, masks = photos
    grown, fresh = tmp_path / "grown", tmp_path / "fresh"
    cf.run(images, [HONEST], masks=masks, recipe=recipes[0], out=grown)
    before = parts_of(grown)
    cf.run(images, [HONEST, BLIND], masks=masks, recipe=recipes[0], out=grown)
    after = parts_of(grown)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 10
    cf.run(images, [HONEST, BLIND], masks=masks, recipe=recipes[0], out=fresh)
    assert table_bytes(grown) == table_bytes(fresh)
    with pytest.raises(cf.UserError, match="another model"):
        cf.run(images, [BLIND], masks=masks, recipe=recipes[0], out=grown)


def test_an_edit_that_is_added_makes_only_its_own_parts(
    photos: tuple[Path, Path], recipes: tuple[str, str], tmp_path: Path
) -> None:
    images, masks = photos
    short, long = recipes
    grown, fresh = tmp_path / "grown", tmp_path / "fresh"
    cf.run(images, [HONEST], masks=masks, recipe=short, out=grown)
    before = parts_of(grown)
    first = cf.run(images, [HONEST], masks=masks, recipe=long, out=grown)
    after = parts_of(grown)
    assert before.items() <= after.items()
    assert len(after) == 2 * len(before)
    second = cf.run(images, [HONEST], masks=masks, recipe=long, out=fresh)
    assert table_bytes(grown) == table_bytes(fresh)
    assert first.skipped == second.skipped
    cf.run(images, [HONEST], masks=masks, recipe=long, out=grown)
    assert parts_of(grown) == after
    with pytest.raises(cf.UserError, match="another recipe"):
        cf.run(images, [HONEST], masks=masks, recipe=short, out=grown)


def test_models_of_one_preprocessing_are_a_group_and_no_group_has_more_weights_than_a_worker_holds() -> None:
    assert group_models({"a": "x", "b": "y", "c": "x"}) == (("a", "c", "b"),)
    kinds = {f"{number}": number % 3 for number in range(60)}
    groups = group_models(kinds)
    assert sorted(name for group in groups for name in group) == sorted(kinds)
    assert max(map(len, groups)) == 16
    assert [len({int(name) % 3 for name in group}) for group in groups[:1]] == [1]
    assert len(group_models(kinds, dict.fromkeys(kinds, 5_000_000))) == 1
    assert len(group_models(kinds, dict.fromkeys(kinds, 10**9))) == 60
    assert group_models({}) == ()


def test_many_models_are_held_one_group_at_a_time(
    photos: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted.Counted, "most", 0)
    models = [f"model-{number}=python:planted:Counted" for number in range(40)]
    (tmp_path / "quick.yaml").write_text("working_size: 64\ntool_checks: 0\nedits: [{edit: jpeg}]\n")
    cf.run(photos[0], models, masks=photos[1], recipe=str(tmp_path / "quick.yaml"), limit=4, out=tmp_path / "run")
    assert list(map(len, open_plan(tmp_path / "run").groups)) == [16, 16, 8]  # of 45 million parameters each
    assert 16 <= planted.Counted.most <= 18  # one that is loaded next, and one that is being released


@pytest.fixture
def small_run(tmp_path: Path) -> Path:
    """A finished run over four photos."""
    images, masks = write_photos(tmp_path / "few", 4)
    (tmp_path / "quick.yaml").write_text("working_size: 64\nedits: [{edit: jpeg}, {edit: grayscale}]\n")
    config = RunConfig(source=open_source(images, masks), models=(HONEST,), recipe=str(tmp_path / "quick.yaml"))
    process_photos(PhotoWork(prepare(config)), tmp_path / "run")
    return tmp_path / "run"


def merge(folder: Path) -> str:
    done = CliRunner().invoke(commands, ["merge", str(folder)], standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_merge_says_where_machines_of_several_kinds_made_the_parts(small_run: Path) -> None:
    store, plan = PartStore(small_run / "work" / "parts"), open_plan(small_run)
    assert "kinds of machines" not in merge(small_run)
    name = plan.part(0, 0, "python:planted:Planted")
    part = store.read(name)
    rows = list(zip(*(part.table[column].to_pylist() for column in PREDICTION_COLUMNS), strict=True))
    tied = [dict(zip(PREDICTION_COLUMNS, row, strict=True)) | {"score_1": 0.5, "score_2": 0.49999} for row in rows]
    elsewhere = {**part.about, "machine": {**part.about["machine"], "processor": "elsewhere"}}
    store.write(name, PREDICTION_COLUMNS, [tuple(row.values()) for row in tied], elsewhere)
    said = merge(small_run)
    assert "The answers were made on 2 kinds of machines" in said
    assert "elsewhere (" in said
    assert f"In {len(rows)} answers the two best probabilities are within 0.0001" in said
    assert "2 kinds of machines" in (small_run / "report.html").read_text()
    assert "elsewhere" in "\n".join(describe_status(read_status(small_run)))


def test_merge_of_a_build_says_where_machines_of_several_kinds_made_the_pictures(
    photos: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "quick.yaml").write_text("working_size: 64\nedits: [{edit: jpeg}]\n")
    cf.build(photos[0], tmp_path / "space", masks=photos[1], recipe=str(tmp_path / "quick.yaml"), limit=4)
    store, plan = PartStore(tmp_path / "space" / "work" / "parts"), open_plan(tmp_path / "space")
    assert "kinds of machines" not in merge(tmp_path / "space")
    part = store.read(plan.part(0, 0))
    rows = list(zip(*(part.table[column].to_pylist() for column in PICTURE_COLUMNS), strict=True))
    elsewhere = {**part.about, "machine": {**part.about["machine"], "processor": "elsewhere"}}
    store.write(plan.part(0, 0), PICTURE_COLUMNS, rows, elsewhere)
    assert "The pictures were made on 2 kinds of machines" in merge(tmp_path / "space")


def test_the_status_of_very_many_parts_is_estimated_from_some(small_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_status(small_run)
    assert (whole.pieces, whole.pieces_done, whole.parts, whole.pictures) == (4, 4, 8, 12)
    (next((small_run / "work" / "parts").glob("*.parquet"))).unlink()
    assert read_status(small_run).pieces_done == 3
    monkeypatch.setattr(run_status, "MOST_RECORDS", 6)
    some = read_status(small_run)
    assert (some.parts, some.done) == (8, 7)
    assert 7 <= some.pictures <= 18
    assert 0 < some.machine_seconds < 3 * whole.machine_seconds
    assert describe_status(some)[0] == "pieces: 3 of 4 done, parts: 7 of 8 (88 %)"


def test_merge_refuses_a_damaged_part_in_one_line(small_run: Path) -> None:
    part = min((small_run / "work" / "parts").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(cf.UserError, match=r"damaged: .*; remove it") as caught:
        merge(small_run)
    assert part.name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep freed memory as they like")
def test_freed_memory_between_arrays_in_use_is_given_back() -> None:
    blocks = [bytearray(b"1" * 60_000) for _ in range(2_000)]  # too small to be mapped each on its own
    kept = blocks[::50]
    del blocks
    before = _read_resident()
    return_memory()
    assert before - _read_resident() > 50 * 2**20
    assert len(kept) == 40


def _read_resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
