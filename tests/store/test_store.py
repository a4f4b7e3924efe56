"""Tables and whole files."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.assets.inpainting_weights import VARIABLE
from counterfoil.errors import UserError
from counterfoil.store.folder_lock import claim_folder, hold_folder
from counterfoil.store.parquet import (
    DictionaryColumn,
    Kind,
    TableWriter,
    dictionary_encode,
    find_texts,
    locate_texts,
    open_parquet,
    read_dictionary_table,
    read_table,
    write_table,
)
from counterfoil.store.prediction_tables import VARIANT_COLUMNS
from counterfoil.store.table_columns import TableColumns
from counterfoil.store.workspace import Workspace
from counterfoil.types import VerificationResult
from locations import DATA

COLUMNS: dict[str, Kind] = {
    "id": "text", "count": "int", "seed": "unsigned", "score": "float", "mean": "double", "right": "bool",
}  # fmt: skip

BEFORE = DATA / "written_before_pyarrow.zip"  # by the writer that pyarrow replaced


def rows(count: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "id": [f"größe-{i % 13}\U0001f427" for i in range(count)],
        "count": rng.integers(-(2**62), 2**62, count),
        "seed": rng.integers(0, 2**64, count, dtype=np.uint64),
        "score": rng.random(count, np.float32),
        "mean": np.where(rng.random(count) < 0.2, np.nan, rng.random(count)),
        "right": rng.random(count) < 0.5,
    }


@pytest.mark.parametrize("counts", [[1], [7], [8, 9], [1000, 1, 333]])
def test_pyarrow_and_our_reader_read_back_what_was_written(tmp_path: Path, counts: list[int]) -> None:
    parts = [rows(count, seed) for seed, count in enumerate(counts)]
    with TableWriter(tmp_path / "t.parquet", COLUMNS) as table:
        for part in parts:
            table.write(part)
    expected = {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in COLUMNS}
    ours = read_table(tmp_path / "t.parquet")
    theirs = pq.read_table(tmp_path / "t.parquet")
    for name in COLUMNS:
        np.testing.assert_array_equal(ours[name], expected[name].astype(ours[name].dtype))
        np.testing.assert_array_equal(theirs[name].to_numpy(), expected[name])


def test_what_was_read_may_be_changed(tmp_path: Path) -> None:
    table = read_table(write_table(tmp_path / "t.parquet", COLUMNS, rows(5)))
    assert all(column.flags.writeable for column in table.values())


def test_a_table_without_rows_is_still_a_table(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", COLUMNS, {name: [] for name in COLUMNS})
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 0
    assert all(len(column) == 0 for column in read_table(tmp_path / "t.parquet").values())


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    first = write_table(tmp_path / "a.parquet", COLUMNS, rows(500)).read_bytes()
    assert first == write_table(tmp_path / "b.parquet", COLUMNS, rows(500)).read_bytes()


def test_a_failure_while_writing_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), TableWriter(tmp_path / "t.parquet", COLUMNS) as table:
        table.write(rows(5))
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "overwritten", "empty", "text"])
def test_a_damaged_table_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    path = write_table(tmp_path / "t.parquet", COLUMNS, rows(500))
    data = path.read_bytes()
    overwritten = data[:50] + bytes(20) + data[70:]
    path.write_bytes({"cut": data[:-3], "overwritten": overwritten, "empty": b"", "text": b"id,count\n"}[damage])
    with pytest.raises(UserError, match=r"t\.parquet: it is damaged") as error:
        read_table(path)
    assert "\n" not in str(error.value)


def test_a_table_that_memory_does_not_hold_is_not_called_damaged(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.parquet", {"id": "text"}, {"id": ["a"]})
    with pytest.raises(UserError, match="enough memory to read"), open_parquet(path):
        raise pa.ArrowMemoryError("malloc of size 64 failed")  # what Arrow raises where there is none left


def test_a_column_that_a_table_lacks_is_named(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.parquet", COLUMNS, rows(5))
    with pytest.raises(UserError, match="expected the column level in"):
        read_table(path, ["id", "level"])


def test_a_table_that_an_earlier_version_wrote_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(BEFORE) as archive:
        path = Path(archive.extract("table.parquet", tmp_path))
    table, places = read_table(path), np.arange(309)
    assert table["id"].tolist() == [f"größe-{place if place < 290 else 0}" for place in places]
    assert table["seed"].tolist() == [2**64 - 1 - place for place in places.tolist()]
    np.testing.assert_array_equal(table["count"], -places)
    np.testing.assert_array_equal(table["score"], places / 8)
    np.testing.assert_array_equal(table["mean"], np.where(places % 5 == 0, np.nan, places / 16))
    np.testing.assert_array_equal(table["right"], places % 3 == 0)


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_tables_of_other_programs_are_read(tmp_path: Path, codec: str, text: Any) -> None:
    word, number = ["b", None, "a", "b"] * 5, [1, None, 3, 4] * 5
    columns = {"word": pa.array(word).cast(text), "number": pa.array(number), "list": pa.array([[1], []] * 10)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", compression=codec, row_group_size=7)
    table = read_table(tmp_path / "t.parquet")
    assert table["word"].tolist() == [one or "" for one in word]
    np.testing.assert_array_equal(table["number"], [math.nan if one is None else one for one in number])
    assert [list(one) for one in table["list"]] == [[1], []] * 10


def test_each_write_is_a_row_group_with_dictionary_encoded_text_and_compression(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "t.parquet", COLUMNS) as table:
        for count in (70_000, 30):
            table.write({**rows(count), "id": [f"a different text per row, {place:09d}" for place in range(count)]})
    about = pq.ParquetFile(tmp_path / "t.parquet").metadata
    assert [about.row_group(place).num_rows for place in range(about.num_row_groups)] == [70_000, 30]
    for place in range(2):
        group = about.row_group(place)
        columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
        assert columns["id"].has_dictionary_page
        assert {name: column.compression for name, column in columns.items()} == {
            "id": "ZSTD", "count": "ZSTD", "seed": "ZSTD", "score": "UNCOMPRESSED", "mean": "UNCOMPRESSED",
            "right": "ZSTD",
        }  # fmt: skip


def test_dictionary_columns_are_written_like_texts_and_read_as_dictionary_and_indices(tmp_path: Path) -> None:
    first, second = ["b", "a", "b", "ä"], ["c", "b"]
    with TableWriter(tmp_path / "t.parquet", {"word": "text"}) as table:
        table.write({"word": dictionary_encode(first)})
        table.write({"word": second})
    assert pq.read_table(tmp_path / "t.parquet")["word"].to_pylist() == [*first, *second]
    column = read_dictionary_table(tmp_path / "t.parquet")["word"]
    assert isinstance(column, DictionaryColumn)
    assert (column.dictionary.tolist(), column.indices.tolist()) == (["b", "a", "ä", "c"], [0, 1, 0, 2, 3, 0])


def test_many_words_need_more_than_one_byte_a_code(tmp_path: Path) -> None:
    words = [f"word {place}" for place in range(70_000)]
    write_table(tmp_path / "t.parquet", {"word": "text"}, {"word": words})
    assert read_table(tmp_path / "t.parquet")["word"].tolist() == words
    assert pq.read_table(tmp_path / "t.parquet")["word"].to_pylist() == words


def test_a_measure_that_is_undefined_is_null_in_the_file_and_not_a_number_again_when_read(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    write_table(tmp_path / "variants.parquet", VARIANT_COLUMNS, {name: [] for name in VARIANT_COLUMNS})
    workspace = Workspace(tmp_path)
    workspace.keep_verified(
        VerificationResult(
            rule="majority",
            questions={"q": "?"},
            annotators=2,
            agreement={"q": {"kappa": float("nan"), "percent": 100.0}},
            decisions=(),
            workspace_digest="d",
        )
    )
    assert json.loads((tmp_path / "verified.json").read_text())["agreement"]["q"]["kappa"] is None
    again = workspace.verified
    assert again is not None
    assert math.isnan(again.agreement["q"]["kappa"])
    assert again.agreement["q"]["percent"] == 100.0


def test_a_run_that_lost_its_inpainting_network_is_told_how_to_get_it_back(tmp_path: Path) -> None:
    claim_folder(tmp_path, {"seed": 0, "fills": "exemplar or MI-GAN, judged"})
    with pytest.raises(UserError, match=f"with another fill of holes .*npm.*{VARIABLE}"):
        claim_folder(tmp_path, {"seed": 0, "fills": "exemplar, judged"})
    with pytest.raises(UserError, match="with another seed;"):
        claim_folder(tmp_path, {"seed": 1, "fills": "exemplar or MI-GAN, judged"})


def test_halves_that_a_killed_process_left_are_removed_by_the_next_one(tmp_path: Path) -> None:
    half, other = tmp_path / ".variants.parquet.0123abcd", tmp_path / ".notes.txt"
    for path in (half, other):
        path.write_text("x")
    with hold_folder(tmp_path, shared=True):  # another shard may be writing it
        assert half.is_file()
    with hold_folder(tmp_path):
        assert not half.exists()
    assert other.is_file()


def write_ids(path: Path, *groups: list[str]) -> Path:
    """A table of ids with their places, one row group after the other."""
    with TableWriter(path, {"id": "text", "place": "int"}) as table:
        for ids in groups:
            table.write({"id": ids, "place": [int(name[1:]) for name in ids]})
    return path


def test_ids_are_located_in_another_table_in_whatever_order_and_row_groups(tmp_path: Path) -> None:
    plain = write_ids(tmp_path / "plain.parquet", ["v0", "v1"], ["v2", "v3", "v4"])
    same = write_ids(tmp_path / "same.parquet", ["v0", "v1", "v2"], ["v3", "v4"])
    other = write_ids(tmp_path / "other.parquet", ["v4", "v9"], ["v1"])
    assert locate_texts((same, "id"), (plain, "id")).tolist() == [0, 1, 2, 3, 4]
    assert locate_texts((other, "id"), (plain, "id")).tolist() == [4, -1, 1]
    assert find_texts(other, "id", {"v1", "v4", "v7"})[0] == ["v4", "v1"]
    assert find_texts(other, "id", {"v1", "v4", "v7"})[1].tolist() == [0, 2]
    counted = TableColumns(plain, np.array([False, True, True, False, True]))
    assert counted.locate("id", other, "id").tolist() == [2, -1, 0]


def test_taking_rows_or_none_of_them_loads_no_pandas(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.parquet", {"id": "text", "size": "int"}, {"id": ["a", "b"], "size": [1, 2]})
    code = (
        "import sys, numpy as np; from pathlib import Path; from counterfoil.store.table_columns import TableColumns\n"
        f"table = TableColumns(Path({str(path)!r}))\n"
        "none, one = (table.take(np.array(rows, np.intp)) for rows in ([], [1]))\n"
        "assert ([*none['id']], [*none['size']], [*one['id']], [*one['size']]) == ([], [], ['b'], [2])\n"
        "assert 'pandas' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_rows_are_taken_from_the_row_groups_that_hold_them(tmp_path: Path) -> None:
    path = write_ids(tmp_path / "t.parquet", ["v0", "v1"], ["v2", "v3"], ["v4"])
    for rows, places in ((None, [1, 2, 4]), (np.array([False, True, True, True, True]), [0, 1, 3])):
        taken = TableColumns(path, rows).take(np.array(places))
        assert (taken["id"].tolist(), taken["place"].tolist()) == (["v1", "v2", "v4"], [1, 2, 4])
    assert TableColumns(path).take(np.zeros(0, np.intp))["id"].tolist() == []
