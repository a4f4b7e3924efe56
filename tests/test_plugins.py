"""An edit from another package comes in by the same door as ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planted import write_photos

EXAMPLE = Path(__file__).parent.parent / "examples" / "counterfoil-stripes"


def installed(folder: Path, name: str, target: str, kind: str = "BackgroundStripes") -> Path:
    """What pip leaves behind after installing a package with one entry point."""
    shutil.copy(EXAMPLE / "counterfoil_stripes.py", folder)
    about = folder / f"{name}-1.0.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
    module = kind if ":" in kind else f"counterfoil_stripes:{kind}"
    (about / "entry_points.txt").write_text(f"[counterfoil.edits]\n{target} = {module}\n")
    return folder


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)


def test_the_example_declares_the_entry_point_that_is_tested_here() -> None:
    declared = (EXAMPLE / "pyproject.toml").read_text()
    assert 'background-stripes = "counterfoil_stripes:BackgroundStripes"' in declared
    assert 'photo-overlay = "counterfoil_stripes:PhotoOverlay"' in declared


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


RECIPE = """
working_size: 192
edits:
  - edit: control
  - {edit: photo-overlay, settings: {strength: 0.9, surrogate: "python:planted:reads_the_background"}}
"""
RUN = """
import hashlib, counterfoil as cf, numpy as np
from counterfoil.store import read_table
result = cf.run("images", ["python:planted:reads_the_background"], masks="masks", recipe="recipe.yaml", out="out")
result.report("out")
table = read_table(result.folder / "variants.parquet")
rows = np.flatnonzero(table["edit"] == "photo-overlay")
print(set(table["attribute"][rows]), all(table["donor_id"][rows]), len(rows))
again = cf.rebuild("out", table["id"][rows[0]])
print(hashlib.sha256(again.image.tobytes()).hexdigest() == table["sha256"][rows[0]])
"""


def test_an_edit_with_donors_a_surrogate_and_an_attribute_of_its_own_goes_through_run_and_report(
    tmp_path: Path,
) -> None:
    folder = installed(tmp_path, "counterfoil_stripes", "photo-overlay", "PhotoOverlay")
    write_photos(tmp_path, 12)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    done = python(f"import os; os.chdir({str(tmp_path)!r})\n{RUN}", folder)
    assert done.stdout.splitlines()[-2:] == ["{'overlay'} True 12", "True"], done.stderr
    assert ",overlay,photo-overlay,0.9," in (tmp_path / "out" / "drops.csv").read_text()
    assert "mixing another photo into it (share 0.9)" in (tmp_path / "out" / "report.html").read_text()


OLD_FORM = """
from dataclasses import dataclass
import numpy as np
from counterfoil import Picture
from counterfoil.edit.cutting import background_of, on_background

@dataclass(frozen=True)
class Halved:
    attribute = "background"
    donors: str = "other"

    @property
    def level(self):
        return self.donors

    def __call__(self, picture, rng, donor):
        return on_background(picture, background_of(picture) // 2)
"""


def test_an_edit_of_the_old_form_still_works_and_warns(tmp_path: Path) -> None:
    folder = installed(tmp_path, "counterfoil_old", "halved", "old_edit:Halved")
    (tmp_path / "old_edit.py").write_text(OLD_FORM)
    code = (
        "import warnings; warnings.simplefilter('always')\n"
        "import counterfoil as cf, edit_pictures\n"
        "from counterfoil.edit import name_of, settings_of\n"
        "edit = cf.edit_named('halved', {'donors': 'same'})\n"
        "pictures = [make() for make in edit_pictures.PICTURES.values()]\n"
        "print(name_of(edit), settings_of(edit), edit.needs.donor, cf.check_edit(edit, pictures) > 0)\n"
    )
    done = python(code, folder)
    assert done.stdout.strip() == "halved {'donors': 'same'} same True", done.stderr
    assert "DeprecationWarning: old_edit.Halved is an edit of the old form" in done.stderr
