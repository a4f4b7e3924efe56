"""The cache of results: what goes in comes out, damage is noticed, the oldest goes first, a kill leaves no half."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import counterfoil as cf
from counterfoil.errors import Unusable, UserError
from counterfoil.pieces import ItemRequest, Outcome
from counterfoil.runner import PhotoWork
from counterfoil.store.result_cache import RESULT_CODE, VARIABLE, ResultCache, Stored, name_result, open_result_cache
from counterfoil.types import Sample

PLANES = arrays.arrays(
    st.sampled_from([np.bool_, np.uint8, np.float32]), arrays.array_shapes(min_dims=1, max_dims=3, min_side=0)
)
FACTS = st.recursive(st.none() | st.floats(allow_nan=False) | st.text(), st.lists)


@given(facts=FACTS, planes=st.lists(PLANES, max_size=3))
def test_what_is_kept_comes_back(tmp_path_factory: pytest.TempPathFactory, facts: object, planes: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("results")
    ResultCache(folder).keep(name_result("x"), Stored(facts, planes))
    back = ResultCache(folder).recall(name_result("x"))
    assert back is not None
    assert back.facts == facts
    assert [(plane.dtype, plane.shape, plane.tobytes()) for plane in back.planes] == [
        (plane.dtype, plane.shape, plane.tobytes()) for plane in planes
    ]


def test_names_tell_pixels_shapes_kinds_and_words_apart() -> None:
    plane = np.zeros((2, 6), np.uint8)
    changed = plane.copy()
    changed[1, 5] = 1
    others = (plane, changed, plane.reshape(3, 4), plane.view(np.bool_), plane.tobytes(), "a", 1, "1", (1,))
    assert len({name_result("x", other) for other in others}) == len(others)
    assert name_result("x", plane) == name_result("x", plane.copy())


def test_an_error_is_a_result_too(tmp_path: Path) -> None:
    calls = []

    def refuse() -> float:
        calls.append(1)
        raise Unusable("too small")

    for _ in range(2):
        with pytest.raises(Unusable, match="too small"):
            ResultCache(tmp_path).once(name_result("x"), refuse, Stored, lambda stored: stored.facts)
    assert len(calls) == 1


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_damaged_file_is_not_used_and_made_again(tmp_path: Path, place: int) -> None:
    cache, key = ResultCache(tmp_path), name_result("x")
    cache.keep(key, Stored(1.5, [np.arange(9, dtype=np.uint8)]))
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(bytes(content))
    assert cache.recall(key) is None
    assert not file.exists()
    cache.keep(key, Stored(1.5))
    assert cache.recall(key) == Stored(1.5, [])


def test_a_file_cut_short_is_not_used(tmp_path: Path) -> None:
    cache, key = ResultCache(tmp_path), name_result("x")
    cache.keep(key, Stored("text"))
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(file.read_bytes()[:20])
    assert cache.recall(key) is None


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache, keys = ResultCache(tmp_path, most_bytes=64_000), [name_result(number) for number in range(100)]
    for number, key in enumerate(keys):
        cache.keep(key, Stored(number, [np.zeros(900, np.uint8)]))
        if path := next(tmp_path.rglob(key), None):
            os.utime(path, (number, number))
    cache.recall(keys[50])  # used now
    cache.trim()
    assert 0.8 * 64_000 < sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 64_000
    there = [number for number, key in enumerate(keys) if cache.recall(key) is not None]
    assert 50 in there
    assert there[1:] == list(range(there[1], 100))


def test_a_cache_stays_within_its_bound_while_it_is_written(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path, most_bytes=128_000)
    for number in range(400):
        cache.keep(name_result(number), Stored(number, [np.zeros(1000, np.uint8)]))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 1.1 * 128_000


def test_half_a_result_of_a_killed_process_is_removed_after_an_hour(tmp_path: Path) -> None:
    cache, key = ResultCache(tmp_path), name_result("x")
    cache.keep(key, Stored(1))
    halves = [tmp_path / key[:2] / f".{key}.{name}" for name in ("0123abcd", "4567abcd")]
    for half in halves:
        half.write_bytes(b"half")
    os.utime(halves[0], (1, 1))
    cache.trim()
    assert [half.exists() for half in halves] == [False, True]
    assert cache.recall(key) == Stored(1, [])


WRITER = """
import sys
from pathlib import Path
import numpy as np
from counterfoil.store.result_cache import ResultCache, Stored, name_result
cache = ResultCache(Path(sys.argv[1]), most_bytes=3_000_000)
print("ready", flush=True)
for turn in range(10**9):
    number = turn % 40
    found = cache.recall(name_result(number))
    if found is not None and (found.facts != number or (found.planes[0] != number).any()):
        print("wrong", flush=True)
    cache.keep(name_result(number), Stored(number, [np.full(30_000, number, np.uint8)]))
    if turn == 200:
        print("written", flush=True)
"""


def test_processes_that_are_killed_while_they_write_leave_whole_results(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    lines = []
    for writer in writers:
        assert writer.stdout is not None
        lines += [writer.stdout.readline(), writer.stdout.readline()]
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        lines += writer.stdout.readlines()
        writer.stdout.close()
    assert {line.strip() for line in lines} == {"ready", "written"}
    cache, there = ResultCache(tmp_path), 0
    for number in range(40):
        found = cache.recall(name_result(number))
        if found is not None:
            there += 1
            assert found.facts == number
            assert (found.planes[0] == number).all()
    assert there > 30


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = ResultCache(tmp_path / "file" / "results")
    cache.keep(name_result("x"), Stored(1))
    assert cache.recall(name_result("x")) is None
    assert cache.once(name_result("x"), lambda: 2, Stored, lambda stored: stored.facts) == 2


def test_a_variable_says_how_much_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "7")
    assert (open_result_cache(tmp_path).folder, open_result_cache(tmp_path).most_bytes) == (
        tmp_path / "results", 7 * 2**20,
    )  # fmt: skip
    monkeypatch.setenv(VARIABLE, "0")
    assert open_result_cache(tmp_path).folder is None
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(UserError, match="expected a whole number of megabytes, 0 to keep nothing, got 'much'"):
        open_result_cache(tmp_path)


# What works on a photo and decides nothing of what comes of it: records, progress, files, and this cache.
DECIDES_NOTHING = {
    "errors.py", "pieces.py", "plugins.py", "progress.py", "run_config.py", "store/files.py", "store/packed_texts.py",
    "store/result_cache.py", "store/sample_table.py", "study/examples.py",
}  # fmt: skip


def test_results_are_named_after_all_code_that_works_on_a_photo(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: set[str] = set()
    process = PhotoWork.process

    def watch(work: PhotoWork, item: Sample, request: ItemRequest) -> Outcome:
        sys.setprofile(lambda frame, event, argument: entered.add(frame.f_code.co_filename))
        try:
            return process(work, item, request)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(PhotoWork, "process", watch)
    image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
    image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
    cf.run([(image, "red", mask)], {"one": lambda images: ["red"] * len(images)}, edits=["size"], workers=1)
    package = Path(cf.__file__).parent
    files = {Path(file) for file in entered}
    own = {file.relative_to(package).as_posix() for file in files if file.is_relative_to(package)}
    assert {"runner.py", "rendered_pictures.py", "edits/size.py"} <= own
    assert {file for file in own if not file.startswith(RESULT_CODE)} <= DECIDES_NOTHING
