"""Edits, models, sources and painters of other packages are found as ours are."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from locations import HELPERS, ROOT
from planted import write_photos

EXAMPLES = ROOT / "examples"
EXAMPLE = EXAMPLES / "counterfoil-stripes"
EXTRAS = EXAMPLES / "counterfoil-extras"


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
    path = os.pathsep.join([str(folder), str(HELPERS), os.environ.get("PYTHONPATH", "")])
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
judge_fills: false
edits:
  - edit: control
  - {edit: photo-overlay, settings: {strength: 0.9, surrogate: "python:planted:reads_the_background"}}
"""
RUN = """
import hashlib, counterfoil as cf, numpy as np
from counterfoil.store.parquet import read_table
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
from counterfoil.edits.subject import Subject

@dataclass(frozen=True)
class Halved:
    attribute = "background"
    donors: str = "other"

    @property
    def level(self):
        return self.donors

    def __call__(self, picture, rng, donor):
        return Subject(picture).on_background(Subject(picture).background // 2)
"""


def test_an_edit_of_the_old_form_still_works_and_warns(tmp_path: Path) -> None:
    folder = installed(tmp_path, "counterfoil_old", "halved", "old_edit:Halved")
    (tmp_path / "old_edit.py").write_text(OLD_FORM)
    code = (
        "import warnings; warnings.simplefilter('always')\n"
        "import counterfoil as cf, edit_pictures\n"
        "from counterfoil.edits.registry import name_of, settings_of\n"
        "edit = cf.edit_named('halved', {'donors': 'same'})\n"
        "pictures = [make() for make in edit_pictures.PICTURES.values()]\n"
        "print(name_of(edit), settings_of(edit), edit.needs.donor, cf.check_edit(edit, pictures) > 0)\n"
    )
    done = python(code, folder)
    assert done.stdout.strip() == "halved {'donors': 'same'} same True", done.stderr
    assert "DeprecationWarning: old_edit.Halved is an edit of the old form" in done.stderr


def registered(folder: Path, name: str, entries: str) -> Path:
    """What pip leaves behind of a package whose module is already on the path."""
    about = folder / f"{name}-1.0.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
    (about / "entry_points.txt").write_text(entries)
    return folder


def extras(folder: Path) -> Path:
    """The example with the entry points that its own pyproject.toml declares."""
    shutil.copy(EXTRAS / "counterfoil_extras.py", folder)
    declared = configparser.ConfigParser(interpolation=None)
    declared.read(EXTRAS / "pyproject.toml")
    groups = {name.split('"')[1]: declared[name] for name in declared if name.startswith("project.entry-points")}
    entries = [(group, name, value.strip('"')) for group, named in groups.items() for name, value in named.items()]
    lines = "".join(f"[{group}]\n{name} = {value}\n" for group, name, value in entries)
    return registered(folder, "counterfoil_extras", lines)


PHOTOS = """
import numpy as np
rng = np.random.default_rng(0)
levels, masks = np.array([20, 30, 220, 230]), np.zeros((4, 40, 50), np.uint8)
masks[:, 10:30, 15:40] = 255
images = np.repeat(levels, 40 * 50 * 3).reshape(4, 40, 50, 3) + rng.integers(0, 20, (4, 40, 50, 3))
np.savez("photos.npz", images=images.astype(np.uint8), masks=masks, labels=["night", "night", "day", "day"])
"""


REBUILD = """
from pathlib import Path
import counterfoil as cf
from counterfoil.store.parquet import read_table
print(cf.rebuild("../out", str(read_table(Path("../out/variants.parquet"))["id"][0])).image.shape)
"""


def command(*arguments: str) -> str:
    return f"import sys; from counterfoil.cli import main; sys.argv = ['counterfoil', *{arguments!r}]; main()"


@pytest.mark.parametrize(("kind", "scheme"), [("models", "brightness:"), ("sources", "npz:"), ("painters", "noise:")])
def test_what_another_package_registers_is_listed(tmp_path: Path, kind: str, scheme: str) -> None:
    listing = python(command("list", kind), extras(tmp_path)).stdout
    (about,) = [line.split()[1] for line in listing.splitlines() if line.startswith(scheme)]
    assert about.startswith(scheme)


def test_a_package_that_cannot_be_imported_does_not_keep_other_models_from_loading(tmp_path: Path) -> None:
    (tmp_path / "broken_loader.py").write_text("raise RuntimeError('no card')")
    folder = registered(tmp_path, "broken_loader", "[counterfoil.models]\nbroken = broken_loader:load\n")
    (folder / "mine.py").write_text(
        "class Mine:\n"
        "    labels, preprocessing, digest = ('day', 'night'), None, 'mine'\n"
        "    def __call__(self, images):\n"
        "        return [[1.0, 0.0]] * len(images)\n"
    )
    code = "from counterfoil.models.model_loaders import load_model\nprint(load_model({!r}).labels)"
    assert python(code.format("python:mine:Mine"), folder).stdout.strip() == "('day', 'night')"
    assert (
        "entry point broken = broken_loader:load to load, but it fails"
        in python(code.format("broken:x"), folder).stderr
    )


def test_a_source_and_a_model_of_another_package_make_a_run_and_its_report_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = extras(tmp_path)
    monkeypatch.chdir(tmp_path)
    python(PHOTOS, folder)
    run = command("run", "--images", "npz:photos.npz", "--model", "brightness:night,day", "--out", "out")
    done = python(run, folder)
    assert "brightness:night,day: this model looks at the mean pixel alone" in done.stdout, done.stderr
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["images"] == f"npz:{tmp_path / 'photos.npz'}"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    rebuilt = python(REBUILD, folder)
    assert rebuilt.stdout.strip() == "(40, 50, 3)", rebuilt.stderr
    again = python(command("report", "../out", "--out", "again"), folder)
    assert "report: again" in again.stdout, again.stderr


def test_the_examples_of_each_kind_keep_the_contracts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = extras(tmp_path)
    monkeypatch.chdir(tmp_path)
    code = PHOTOS + (
        "import counterfoil as cf\n"
        "from counterfoil.sources.source_loaders import open_source\n"
        "from counterfoil.painters.painter_loaders import load_painter\n"
        "print(cf.check_source(open_source('npz:photos.npz', None)))\n"
        "cf.check_model(cf.load_model('brightness:night,day'), list(images.astype(np.uint8)))\n"
        "requests = [cf.PaintRequest('a cat', '', 5), cf.PaintRequest('a dog', '', 6)]\n"
        "print(cf.check_painter(load_painter('noise:16', 'pictures'), requests))\n"
    )
    done = python(code, folder)
    assert done.stdout.split() == ["4", "2"], done.stderr


@pytest.mark.parametrize(
    ("entries", "code", "message"),
    [
        ("[counterfoil.models]\nbad = broken:absent\n", "cf.load_model('bad:x')", "bad = broken:absent to load"),
        ("[counterfoil.models]\nbad = broken:NUMBER\n", "cf.load_model('bad:x')", "expected a function, got 3"),
        ("[counterfoil.models]\nbad = broken:fails\n", "cf.load_model('bad:x')", "ZeroDivisionError"),
        ("[counterfoil.models]\nbad = broken:nothing\n", "cf.load_model('bad:x')", "a callable with `labels`"),
        ("[counterfoil.models]\nbad = broken:Undigested\n", "cf.load_model('bad:x')", "a model with `digest`"),
        ("[counterfoil.models]\nbad = broken:Misnamed\n", "cf.load_model('bad:x')", "as its name, got 'other'"),
        ("[counterfoil.sources]\nbad = broken:fails\n", "open_source('bad:x', None)", "ZeroDivisionError"),
        ("[counterfoil.sources]\nbad = broken:lost\n", "open_source('bad:x', None)", "to be its address, got 'else'"),
        (
            "[counterfoil.sources]\nbad = broken:Bad\n",
            "open_source('bad:x', None).samples()",
            "to list its photos",
        ),
        (
            "[counterfoil.sources]\nbad = broken:Bad\n",
            "open_source('bad:x', None).read(PHOTO)",
            "to read a/1, but it",
        ),
        ("[counterfoil.painters]\nbad = broken:fails\n", "load_painter('bad:x', 'pictures')", "ZeroDivisionError"),
        ("[counterfoil.painters]\nbad = broken:nothing\n", "load_painter('bad:x', 'pictures')", "`paint(requests)`"),
    ],
)
def test_faults_of_another_package_are_said_in_one_line(tmp_path: Path, entries: str, code: str, message: str) -> None:
    broken = (
        "import counterfoil as cf\nNUMBER = 3\ndef fails(*given): 1 / 0\ndef nothing(*given): return None\n"
        "class Lost(cf.SourceBase): images = 'else'\ndef lost(place): return Lost()\n"
        "class Bad(cf.SourceBase):\n"
        "    images = 'bad:x'\n"
        "    def __init__(self, place): pass\n"
        "    def samples(self): return 1 / 0\n"
        "    def read(self, sample): return {}['pixels']\n"
        "class Undigested(cf.ModelBase):\n"
        "    name, labels, preprocessing = 'bad:x', ('a', 'b'), None\n"
        "    def __init__(self, request): pass\n"
        "    def __call__(self, images): return [[0.5, 0.5] for _ in images]\n"
        "class Misnamed(Undigested): name, digest = 'other', '1'\n"
    )
    (tmp_path / "broken.py").write_text(broken)
    load = (
        "from counterfoil.sources.source_loaders import open_source\n"
        "from counterfoil.painters.painter_loaders import load_painter\n"
        "PHOTO = cf.Sample(id='a/1', label='a', image='1.jpg', mask=None, digest='0')\n"
    )
    done = python(f"import counterfoil as cf\n{load}{code}", registered(tmp_path, "broken", entries))
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("counterfoil.errors.UserError"), done.stderr
    assert message in last


def test_a_photo_that_a_source_of_another_package_refuses_stays_one_unusable_photo(tmp_path: Path) -> None:
    picky = (
        "import counterfoil as cf\n"
        "class Picky(cf.SourceBase):\n"
        "    images = 'picky:x'\n"
        "    def __init__(self, place): pass\n"
        "    def read(self, sample): raise cf.Unusable('too dark')\n"
    )
    (tmp_path / "picky.py").write_text(picky)
    code = (
        "import counterfoil as cf\nfrom counterfoil.sources.source_loaders import open_source\n"
        "try: open_source('picky:x', None).read(cf.Sample(id='a/1', label='a', image='', mask=None, digest='0'))\n"
        "except cf.Unusable as error: print(error)\n"
    )
    done = python(code, registered(tmp_path, "picky", "[counterfoil.sources]\npicky = picky:Picky\n"))
    assert done.stdout.strip() == "too dark", done.stderr


def test_a_scheme_that_two_packages_register_is_an_error(tmp_path: Path) -> None:
    folder = registered(extras(tmp_path), "other", "[counterfoil.models]\nbrightness = other:load\n")
    done = python("import counterfoil as cf; cf.load_model('brightness:a,b')", folder)
    assert "two packages register 'brightness:' in counterfoil.models" in done.stderr
