"""An edit from another package comes in by the same door as ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "counterfoil-stripes"


def installed(folder: Path, name: str, target: str) -> Path:
    """What pip leaves behind after installing a package with one entry point."""
    shutil.copy(EXAMPLE / "counterfoil_stripes.py", folder)
    about = folder / f"{name}-1.0.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
    (about / "entry_points.txt").write_text(f"[counterfoil.edits]\n{target} = counterfoil_stripes:BackgroundStripes\n")
    return folder


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)


def test_the_example_declares_the_entry_point_that_is_tested_here() -> None:
    assert 'background-stripes = "counterfoil_stripes:BackgroundStripes"' in (EXAMPLE / "pyproject.toml").read_text()


def test_an_edit_of_another_package_is_listed_and_keeps_the_contract(tmp_path: Path) -> None:
    folder = installed(tmp_path, "counterfoil_stripes", "background-stripes")
    code = (
        "import counterfoil as cf, edit_pictures\n"
        "edit = cf.edit_named('background-stripes', {'width': 5})\n"
        "print(edit.level, cf.check_edit(edit, [make() for make in edit_pictures.PICTURES.values()]) > 0)\n"
    )
    done = python(code, folder)
    assert done.stdout.split() == ["5", "True"], done.stderr
    listing = "import sys; from counterfoil.cli import main; sys.argv = ['counterfoil', 'list', 'edits']; main()"
    assert "background-stripes" in python(listing, folder).stdout


def test_a_name_that_is_taken_is_an_error(tmp_path: Path) -> None:
    folder = installed(tmp_path, "counterfoil_clash", "size")
    done = python("import counterfoil as cf; cf.edit_named('size', {})", folder)
    assert "two edits are named 'size'" in done.stderr


@pytest.mark.parametrize("settings", ["{'width': 0}", "{'widht': 3}", "{'width': 'x'}"])
def test_bad_settings_of_another_packages_edit_are_user_errors(tmp_path: Path, settings: str) -> None:
    folder = installed(tmp_path, "counterfoil_stripes", "background-stripes")
    done = python(f"import counterfoil as cf; cf.edit_named('background-stripes', {settings})", folder)
    assert "UserError" in done.stderr
