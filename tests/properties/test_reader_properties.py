"""Readers: what was written comes back, and arbitrary bytes are refused in one line or read, never executed."""

from __future__ import annotations

import csv
import io
import pickle
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from pycocotools import mask as coco_masks

from counterfoil.assets.safe_pickle import Call, Persistent, Reference, read_pickle
from counterfoil.assets.torch_weights import ALLOWED, MAGIC_NUMBER, read_torch_stream
from counterfoil.errors import Unusable, UserError
from counterfoil.models.model_loaders import load_model
from counterfoil.models.prediction_file import SavedPredictions
from counterfoil.published.file_tree import open_tree
from counterfoil.sources.archive_index import ArchiveFile, build_index, list_packed_files
from counterfoil.sources.coco_masks import (
    decode_run_lengths,
    draw_polygons,
    encode_run_lengths,
    find_bounding_box,
    measure_area,
)
from counterfoil.store.parquet import Kind, TableWriter, read_table
from counterfoil.store.parts import PartStore


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of one example; pytest's is shared by all examples of a test."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


Mask = NDArray[np.uint8]
masks = arrays.arrays(np.bool_, arrays.array_shapes(min_dims=2, max_dims=2, max_side=12)).map(
    lambda inside: np.where(inside, 255, 0).astype(np.uint8)
)


@given(masks)
def test_run_lengths_of_a_mask_give_the_mask_back_and_agree_with_coco(mask: Mask) -> None:
    size = (mask.shape[0], mask.shape[1])
    written = encode_run_lengths(mask)
    assert np.array_equal(decode_run_lengths(written, size), mask)
    packed = coco_masks.encode(np.asfortranarray(mask // 255))
    assert np.array_equal(decode_run_lengths(packed, size), mask)
    assert np.array_equal(decode_run_lengths({**packed, "counts": packed["counts"].decode()}, size), mask)
    assert measure_area(written) == measure_area(packed) == coco_masks.area(packed)
    assert list(find_bounding_box(mask)) == coco_masks.toBbox(packed).tolist()


@given(
    st.one_of(st.text(), st.binary(), st.lists(st.integers()), st.lists(st.floats()), st.none()),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
@example([2**70, -(2**70), 4], (2, 2))
def test_any_run_lengths_fill_the_picture_or_are_refused(counts: Any, size: tuple[int, int]) -> None:
    try:
        mask = decode_run_lengths({"counts": counts}, size)
    except Unusable:
        return
    assert mask.shape == size
    assert set(np.unique(mask)) <= {0, 255}
    assert (mask > 0).sum() == measure_area({"counts": counts})


@given(st.lists(st.tuples(*[st.integers(0, 20)] * 4), min_size=1, max_size=3), st.data())
def test_rectangles_are_masks_to_the_pixel_wherever_their_outline_begins(
    corners: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    expected, polygons, areas = np.zeros((20, 24), np.uint8), [], 0
    for x, y, width, height in corners:
        outline = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
        start = data.draw(st.integers(0, 3))
        turned = [*outline[start:], *outline[:start]][:: data.draw(st.sampled_from([1, -1]))]
        polygons.append([float(number) for point in turned for number in point])
        expected[y : y + height, x : x + width] = 255
        areas += width * height
    mask = draw_polygons(polygons, (20, 24))
    assert np.array_equal(mask, expected)
    assert measure_area(polygons) == areas
    assert np.array_equal(decode_run_lengths(encode_run_lengths(mask), (20, 24)), mask)


@given(st.lists(st.lists(st.floats(), max_size=12), max_size=3))
def test_any_numbers_are_a_mask_or_refused(polygons: list[list[float]]) -> None:
    try:
        mask = draw_polygons(polygons, (6, 7))
    except Unusable:
        return
    assert mask.shape == (6, 7)
    assert set(np.unique(mask)) <= {0, 255}
    one_by_one = [draw_polygons([polygon], (6, 7)) for polygon in polygons]
    assert all((mask >= one).all() for one in one_by_one)


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)
rankings = st.dictionaries(
    words,
    st.dictionaries(st.integers(0, 99).map("class of mine {}".format), st.floats(0, 1), min_size=1, max_size=7),
    min_size=1,
    max_size=5,
)


def read_rankings(path: Path) -> dict[str, dict[str, float]]:
    model = load_model(f"predictions:{path}")
    assert isinstance(model, SavedPredictions)
    for ranking in model.rankings.values():
        assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)
    return {picture: dict(ranking) for picture, ranking in model.rankings.items()}


@given(rankings)
def test_predictions_come_back_from_csv_and_parquet(written: dict[str, dict[str, float]]) -> None:
    rows = [(picture, label, score) for picture, ranking in written.items() for label, score in ranking.items()]
    with temporary_folder() as folder:
        with (folder / "answers.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("file", "class", "probability"), *rows])
        columns = dict(zip(("file", "class", "probability"), zip(*rows, strict=True), strict=True))
        pq.write_table(pa.table({name: list(column) for name, column in columns.items()}), folder / "rows.parquet")
        lists = {
            "file": list(written),
            "class": [list(ranking) for ranking in written.values()],
            "probability": [list(ranking.values()) for ranking in written.values()],
        }
        pq.write_table(pa.table(lists), folder / "lists.parquet")
        for name in ("answers.csv", "rows.parquet", "lists.parquet"):
            assert read_rankings(folder / name) == written


@given(st.lists(st.tuples(words, st.floats(allow_infinity=False), st.integers(0, 2**64 - 1), st.booleans())), st.data())
def test_tables_come_back_whatever_their_row_groups(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    columns: dict[str, Kind] = {"word": "text", "number": "double", "seed": "unsigned", "right": "bool"}
    cut = data.draw(st.integers(0, len(rows)))
    with temporary_folder() as folder:
        with TableWriter(folder / "table.parquet", columns) as writer:
            for part in (rows[:cut], rows[cut:]):
                writer.write({name: [row[place] for row in part] for place, name in enumerate(columns)})
        table = read_table(folder / "table.parquet")
    for place, name in enumerate(columns):
        column = [row[place] for row in rows]
        if name == "number":
            assert np.array_equal(np.array(table[name], np.float64), np.array(column, np.float64), equal_nan=True)
        else:
            assert list(table[name]) == column


@given(st.lists(st.tuples(words, st.integers(-(2**63), 2**63 - 1), st.floats(), st.booleans()), max_size=6), st.data())
def test_a_part_gives_back_its_rows_and_a_changed_byte_is_noticed_or_harmless(
    rows: list[tuple[str, int, float, bool]], data: st.DataObject
) -> None:
    columns: dict[str, Kind] = {"word": "text", "number": "int", "score": "double", "right": "bool"}
    with temporary_folder() as folder:
        store = PartStore(folder)
        store.write("one", columns, rows, {"skipped": ["ä"]})
        before = store.read("one")
        assert repr([*zip(*before.table.to_pydict().values(), strict=True)]) == repr(rows)
        assert before.about["skipped"] == ["ä"]
        path = folder / "one.parquet"
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        with suppress(UserError):
            assert repr(store.read("one").table.to_pydict()) == repr(before.table.to_pydict())


EXECUTED: list[str] = []


def execute(word: str) -> None:
    EXECUTED.append(word)


class Hostile:
    """An object whose pickle calls a function when Python reads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return execute, ("read",)


def is_inert(value: Any) -> bool:
    """Whether a value, which may hold itself, is plain data and the reader's own records."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, list | tuple):
            waiting.extend(one)
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, Call):
            waiting.extend([*one.arguments, *one.items.values()])
        elif isinstance(one, Persistent):
            waiting.append(one.identity)
        elif not (one is None or isinstance(one, str | int | Reference)):
            return False
    return True


def refused_or_inert(content: bytes) -> bool:
    """Read bytes as a pickle and as a weights file; True where the pickle is refused."""
    before = len(EXECUTED)
    try:
        arrays_by_name = read_torch_stream(content)
        assert all(isinstance(array, np.ndarray) for array in arrays_by_name.values())
    except UserError:
        pass
    try:
        refused = not is_inert(read_pickle(io.BytesIO(content), ALLOWED))
        assert not refused
    except UserError:
        refused = True
    assert len(EXECUTED) == before
    return refused


OPCODES = [
    b"(", b")", b"]", b"}", b"N", b"\x88", b"\x89", b".", b"0", b"2", b"t", b"\x85", b"\x86", b"\x87", b"a", b"e", b"s",
    b"u", b"R", b"b", b"Q", b"q\x00", b"h\x00", b"q\x01", b"h\x01", b"K\x07", b"X\x01\x00\x00\x00a", b"cos\nsystem\n",
    b"ctorch._utils\n_rebuild_tensor_v2\n", b"ccollections\nOrderedDict\n", b"ctorch\nFloatStorage\n", b"\x80\x02",
]  # fmt: skip
HEAD = b"".join(pickle.dumps(part, 2) for part in (MAGIC_NUMBER, 1001, {"little_endian": True}))


@settings(max_examples=300)
@given(st.sampled_from([b"", HEAD]), st.lists(st.sampled_from(OPCODES) | st.binary(max_size=6), max_size=20))
@example(b"", [b"}", b"q\x00", b"X\x01\x00\x00\x00a", b"h\x00", b"s", b"]", b"h\x00", b"a", b"."])
def test_a_pickle_of_any_opcodes_executes_nothing(head: bytes, parts: list[bytes]) -> None:
    refused_or_inert(head + b"".join(parts))


@given(st.integers(0, 5), st.data())
def test_a_hostile_pickle_is_refused_and_executes_nothing_cut_or_changed(protocol: int, data: st.DataObject) -> None:
    content = bytearray(pickle.dumps({"weights": [Hostile()]}, protocol))
    assert refused_or_inert(bytes(content))
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    else:
        del content[data.draw(st.integers(0, len(content))) :]
    refused_or_inert(bytes(content))


names = st.text(st.characters(exclude_characters="/\0", exclude_categories=[]), min_size=1, max_size=5).filter(
    lambda name: name not in (".", "..")
)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
spans = st.tuples(*[st.integers(0, 2**62)] * 3, st.integers(0, 99), st.integers(-3, 99))


@given(st.lists(st.tuples(paths, spans.map(lambda numbers: ArchiveFile(*numbers))), max_size=20), st.lists(paths))
def test_an_index_says_what_a_dictionary_says_of_any_tree(
    files: list[tuple[str, ArchiveFile]], others: list[str]
) -> None:
    plain, index = dict(files), build_index(files)
    assert {path: index.entry(path) for path in plain} == plain
    assert sorted(index) == sorted(plain)
    assert [index.path(place) for place in range(len(index))] == list(index)
    assert list(build_index(reversed(plain.items()))) == list(index)
    assert [path in index for path in others] == [path in plain for path in others]
    assert [index[path] for path in index] == [plain[path].size for path in index]


def without_clashes(tree: dict[str, bytes]) -> dict[str, bytes]:
    """A tree in which no file is a folder of another file."""
    return {path: content for path, content in tree.items() if not any(other.startswith(f"{path}/") for other in tree)}


trees = st.dictionaries(
    st.lists(st.sampled_from(["a", "b.jpg", "Ä", "n 1", "-"]), min_size=1, max_size=3).map("/".join),
    st.binary(max_size=40),
    min_size=1,
    max_size=8,
).map(without_clashes)


@given(trees, st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_a_tree_reads_the_same_from_a_folder_a_tar_and_a_zip(tree: dict[str, bytes], packing: int) -> None:
    with temporary_folder() as folder:
        for path, content in tree.items():
            place = folder / "files" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        zipped = zipfile.ZipFile(folder / "files.zip", "w", packing)
        with zipped, tarfile.open(folder / "files.tar", "w") as tar:
            for path in tree:
                tar.add(folder / "files" / path, path)
                zipped.write(folder / "files" / path, path)
        for name in ("files", "files.tar", "files.zip"):
            opened = open_tree(folder / name)
            assert {path: opened.read(path) for path in opened.sizes} == tree
            assert dict(opened.sizes) == {path: len(content) for path, content in tree.items()}


@given(trees, st.sampled_from(["tar", "zip"]), st.data())
def test_a_damaged_archive_is_refused_or_lists_files_within_it(
    tree: dict[str, bytes], kind: str, data: st.DataObject
) -> None:
    with temporary_folder() as folder:
        path = folder / f"files.{kind}"
        with tarfile.open(folder / "files.tar", "w") as tar, zipfile.ZipFile(folder / "files.zip", "w") as zipped:
            for name, content in tree.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
                zipped.writestr(name, content)
        damaged = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(0, 3))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(bytes(damaged[: data.draw(st.integers(1, len(damaged)))]))
        with suppress(UserError):
            for _, entry in list_packed_files(path):
                assert 0 <= entry.start <= entry.start + entry.stored <= path.stat().st_size
