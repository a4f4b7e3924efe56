"""One name per thing: no file name and no public class name twice, no metaphors as names; the figure of the rooms."""

from __future__ import annotations

import ast
import re
import runpy
from collections import defaultdict
from pathlib import Path

import pytest
from conftest import LONGEST_FILES, SLOW_FILES, SLOW_TESTS

from locations import ROOT

PACKAGE = ROOT / "src" / "counterfoil"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))
METAPHORS = {
    "album", "beside", "brush", "costliest", "desk", "easel", "exhibit", "fall", "glance", "laid", "looks", "lot",
    "pane", "recorded", "shelf", "spent", "standing", "studio", "told", "together", "way", "wish",
}  # fmt: skip


def in_benchmark_folder(path: Path) -> bool:
    """Whether a file is one of the parallel files of a published benchmark's folder."""
    return path.parent.parent == PACKAGE / "published"


def test_no_file_name_stands_twice_but_in_the_parallel_folders_of_benchmarks() -> None:
    places = defaultdict(list)
    for path in FILES:
        if not in_benchmark_folder(path):
            places[path.stem].append(str(path.relative_to(PACKAGE)))
    assert {stem: paths for stem, paths in places.items() if len(paths) > 1} == {}


def test_no_public_class_name_stands_twice() -> None:
    places = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert {name: lines for name, lines in places.items() if len(lines) > 1} == {}


def test_no_file_repeats_the_name_of_its_room() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    repeated = [
        path
        for path in FILES
        if path.parent.name in rooms and path.stem in (path.parent.name, path.parent.name.removesuffix("s"))
    ]
    assert repeated == []


def test_no_room_has_the_name_of_a_public_function() -> None:
    import counterfoil

    rooms = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    functions = [name for name in counterfoil.__all__ if callable(getattr(counterfoil, name))]
    assert rooms.isdisjoint(functions)  # `edits` is a room and the namespace of its classes, and no function


@pytest.mark.parametrize("kind", ["files", "classes", "functions"])
def test_no_metaphor_is_a_name(kind: str) -> None:
    names = set()
    for path in FILES:
        if kind == "files":
            names.add((path.stem, str(path.relative_to(PACKAGE))))
            continue
        kinds = ast.ClassDef if kind == "classes" else (ast.FunctionDef, ast.AsyncFunctionDef)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kinds):
                names.add((node.name.lower().lstrip("_"), f"{path.relative_to(PACKAGE)}:{node.lineno}"))
    words = {(name, place): set(name.replace("label_studio", "").split("_")) for name, place in names}  # a product
    assert sorted(key for key, parts in words.items() if parts & METAPHORS) == []


def test_the_figure_of_the_rooms_is_drawn_from_the_code() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "figures" / "draw_rooms.py"))
    assert script["draw"]() == script["FIGURE"].read_text(encoding="utf-8"), "draw it again: make rooms"


def test_the_lines_that_the_architecture_page_names_are_those_of_the_code() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "figures" / "renew_references.py"))
    text = script["PAGE"].read_text(encoding="utf-8")
    assert script["renew"](text) == text, "renew the lines: make rooms"


def test_old_lines_are_named_by_the_linters() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "figures" / "renew_references.py"))
    text = script["PAGE"].read_text(encoding="utf-8")
    (file, line), *_ = re.findall(r"\[`([\w/]+\.py):(\d+)`\]", text)
    old = text.replace(f"`{file}:{line}`", f"`{file}:{int(line) + 3}`", 1)
    assert script["list_old"](old, script["renew"](old)) == [f"{file}:{int(line) + 3}"]
    assert script["list_old"](text, script["renew"](text)) == []


def test_every_slow_test_that_is_listed_is_there() -> None:
    tests = ROOT / "tests"
    assert [name for name in (*SLOW_FILES, *LONGEST_FILES) if not (tests / name).exists()] == []
    text = "".join(path.read_text(encoding="utf-8") for path in tests.rglob("test_*.py"))
    assert [name for name in SLOW_TESTS if f"def {name}(" not in text] == []
