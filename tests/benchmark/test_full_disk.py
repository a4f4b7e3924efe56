"""A disk that fills while freezing: one clear line, nothing half, nothing lost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.benchmark.frozen_benchmark import open_benchmark
from counterfoil.benchmark.layouts import LAYOUTS, LayoutName
from counterfoil.errors import UserError
from counterfoil.store.atomic_folder import write_folder_atomically
from counterfoil.store.workspace import Workspace
from freeze_workspaces import contents, frozen, write_workspace

FREEZE = [sys.executable, "-m", "counterfoil", "freeze"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return write_workspace(tmp_path_factory.mktemp("disk"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_that_may_not_grow_ends_in_one_line(workspace: Workspace, tmp_path: Path, layout: LayoutName) -> None:
    frozen(workspace, tmp_path / "earlier")
    before, kept = contents(workspace.folder), contents(tmp_path / "earlier")
    done = subprocess.run(
        [*FREEZE, str(workspace.folder), "--name", "x", "--version", "2.0.0", "--out", str(tmp_path / "set"),
         "--format", layout],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no room is left" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["earlier"]
    assert contents(workspace.folder) == before
    assert contents(tmp_path / "earlier") == kept


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of its own, as small as the test asks for."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("small_disk", ["size=64k"], indirect=True)
def test_too_little_room_is_said_before_anything_is_written(
    workspace: Workspace, small_disk: Path, layout: LayoutName
) -> None:
    with pytest.raises(UserError, match=r"its pictures take 0\.\d MB, the disk has 0\.1 MB free"):
        frozen(workspace, small_disk / "set", layout=layout)
    assert not list(small_disk.iterdir())


@pytest.mark.parametrize("small_disk", ["size=8m,nr_inodes=40"], indirect=True)
def test_a_disk_that_fills_on_the_way_leaves_nothing_half(workspace: Workspace, small_disk: Path) -> None:
    frozen(workspace, small_disk / "earlier", layout="webdataset")
    with pytest.raises(UserError, match="no room is left") as error:
        frozen(workspace, small_disk / "set")
    assert "\n" not in str(error.value)
    assert [path.name for path in small_disk.iterdir()] == ["earlier"]
    assert len(open_benchmark(small_disk / "earlier").pictures) == len(workspace.pictures)


def test_what_a_killed_freeze_left_is_taken_over(workspace: Workspace, tmp_path: Path) -> None:
    stale = tmp_path / ".set.partial" / "data"
    stale.mkdir(parents=True)
    (stale / "half.png").write_bytes(b"half")
    frozen(workspace, tmp_path / "set")
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert len(open_benchmark(tmp_path / "set").pictures) == 20


def test_a_second_freeze_into_the_same_folder_is_refused_and_harms_nothing(
    workspace: Workspace, tmp_path: Path
) -> None:
    out = tmp_path / "set"
    with write_folder_atomically(out, 0) as partial:  # the first, at work
        (partial / "first.png").write_bytes(b"first")
        with pytest.raises(UserError, match="another freeze is writing"):
            frozen(workspace, out)
        assert [path.name for path in partial.iterdir()] == ["first.png"]
    assert contents(out) == {"first.png": b"first"}
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_freeze_that_comes_second_never_overwrites(tmp_path: Path) -> None:
    def meanwhile() -> None:
        with write_folder_atomically(tmp_path / "set", 0):
            (tmp_path / "set").mkdir()
            (tmp_path / "set" / "mine.txt").write_text("mine")

    with pytest.raises(OSError, match="not empty"):
        meanwhile()
    assert contents(tmp_path) == {"set/mine.txt": b"mine"}


def test_a_link_to_an_empty_folder_is_written_through(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "set").symlink_to(tmp_path / "disk")
    frozen(workspace, tmp_path / "set")
    assert (tmp_path / "set").is_symlink()
    assert len(open_benchmark(tmp_path / "disk").pictures) == 20
