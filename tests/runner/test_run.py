"""A run from the outside: the command, the folder it writes, bad input, and being killed."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from skimage import data

import counterfoil as cf
from colour_network import mean_colour_network
from command_line import counterfoil
from counterfoil.report.content import build_content
from counterfoil.study.thumbnails import ThumbnailCache
from locations import DATA, HELPERS
from planted import HALT_AT_PARTS, LABELS, count_parts, write_photos

MODEL = "python:planted:honest"
RECIPE = str(DATA / "geometry.yaml")
COLUMNS = (
    "model,attribute,edit,level,n,accuracy_original,accuracy_control,accuracy,drop,ci_low,ci_high,"
    "drop_vs_control,p_value,object_share"
)


def process(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from counterfoil.cli import main; main()", *map(str, arguments)],
        capture_output=True, text=True, check=False, env={**_environment(), **environment},
    )  # fmt: skip


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HELPERS)}


def tables(folder: Path) -> dict[str, bytes]:
    found = [folder / "variants.parquet", folder / "drops.csv", *sorted((folder / "predictions").iterdir())]
    return {path.name: path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("photos"), 12)


def test_a_run_writes_everything_that_it_promises(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    done = process(
        "run", "--images", images, "--masks", masks, "--model", MODEL, "--recipe", RECIPE, "--out", tmp_path / "out"
    )
    assert done.returncode == 0, done.stderr
    assert "report: " in done.stdout
    out = tmp_path / "out"
    assert (out / "drops.csv").read_text().startswith(COLUMNS)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["counts"]["photos"] == 12
    assert "--images" in (out / "report.html").read_text()
    rows = list(csv.DictReader((out / "drops.csv").open()))
    assert {row["edit"] for row in rows} >= {"control", "background-swap", "size", "position", "direction"}
    assert "https://" not in (out / "report.html").read_text().replace("http://www.w3.org", "")


def test_workers_batch_size_and_order_change_no_byte(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    runs = []
    for workers, batch_size in [(1, 1), (3, 7)]:
        out = tmp_path / f"{workers}"
        result = cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=out, workers=workers, batch_size=batch_size)
        result.report(out)
        runs.append(tables(out))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("count", [6, 30])
def test_a_report_makes_no_picture_a_second_time(tmp_path: Path, count: int) -> None:
    images, masks = write_photos(tmp_path, count)
    models = [MODEL, "python:planted:answers_by_background"]
    result = cf.run(images, models, masks=masks, recipe=RECIPE, out=tmp_path / "out", workers=2)
    shown = build_content(
        result.study,
        ThumbnailCache((), lambda variant: None, ready=result.thumbnails.jpegs if result.thumbnails else {}),
    ).examples
    assert len(shown) > 5
    assert all(example.before and example.edited for example in shown)


def test_a_resumed_run_shows_the_same_pictures(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    pages, pictures = [], []
    for _ in range(2):  # the second time nothing is left to do, so that no thumbnail is made beside the work
        result = cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path / "out")
        pages.append(result.report(tmp_path / "out").read_bytes())
        pictures.append({path.name: path.read_bytes() for path in (tmp_path / "out" / "thumbnails").iterdir()})
        shutil.rmtree(tmp_path / "out" / "thumbnails")
    assert result.thumbnails is not None
    assert not result.thumbnails.jpegs
    assert pictures[0] == pictures[1] != {}
    assert pages[0] == pages[1]


def test_adding_edits_and_photos_changes_no_other_picture(photos: tuple[Path, Path], tmp_path: Path) -> None:
    from counterfoil.store.parquet import read_table

    images, masks = photos
    recipe = tmp_path / "short.yaml"
    recipe.write_text(
        "working_size: 384\njudge_fills: false\nedits:\n - edit: direction\n - {edit: size, settings: {rate: 0.08}}\n"
    )
    few = cf.run(images, [MODEL], masks=masks, recipe=str(recipe), out=tmp_path / "few", limit=8)
    many = cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path / "many")
    hashes = []
    for result in (few, many):
        table = read_table(result.folder / "variants.parquet")
        hashes.append(dict(zip(table["id"], table["sha256"], strict=True)))
    assert len(hashes[0]) == 24
    assert hashes[0].items() <= hashes[1].items()


def test_a_killed_run_goes_on_and_ends_in_the_same_bytes(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    arguments = [
        "run",
        "--images",
        images,
        "--masks",
        masks,
        "--model",
        "python:planted:halting",
        "--workers",
        1,
        "--recipe",
        RECIPE,
    ]
    parts = tmp_path / "killed" / "work" / "parts"
    process = _halted(arguments, parts)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {path.name: path.stat().st_mtime_ns for path in parts.glob("[!.]*")}
    assert HALT_AT_PARTS <= len(finished) < 2 * 12
    for name in ("killed", "whole"):
        done = counterfoil(*arguments, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert finished.items() <= {path.name: path.stat().st_mtime_ns for path in parts.iterdir()}.items()  # not again
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_a_run_whose_threads_are_busy(
    photos: tuple[Path, Path], tmp_path: Path, number: signal.Signals
) -> None:
    parts = tmp_path / "out" / "work" / "parts"
    arguments = [
        "run",
        "--images",
        photos[0],
        "--masks",
        photos[1],
        "--model",
        "python:planted:halting",
        "--workers",
        1,
    ]
    process = _halted([*arguments, "--recipe", RECIPE], parts)
    process.send_signal(number)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 128 + number
    by = "" if number == signal.SIGINT else f" by {number.name}"
    assert told.endswith(f"counterfoil: stopped{by}; what is finished is kept, run the same command to go on\n")
    assert count_parts(parts) >= HALT_AT_PARTS


def _take_signals() -> None:
    """As in the foreground of a terminal: a shell in the background makes its children ignore SIGINT, nohup SIGHUP."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _halted(arguments: Sequence[object], parts: Path) -> subprocess.Popen[str]:
    """A run that has written some parts and whose model answers no more."""
    command = [sys.executable, "-c", "from counterfoil.cli import main; main()", *map(str, arguments)]
    process = subprocess.Popen(
        [*command, "--out", str(parts.parents[1])], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**_environment(), "HALT_AT_FOLDER": str(parts)}, preexec_fn=_take_signals,
    )  # fmt: skip
    while count_parts(parts) < HALT_AT_PARTS:
        assert process.poll() is None
        time.sleep(0.02)
    return process


def test_bad_pictures_are_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 8)
    label = LABELS[0]
    good = next((images / label).glob("*.png")).read_bytes()
    cases = {
        "truncated": good[: len(good) // 2],
        "nopicture": b"<html>",
        "othersize": None,
        "emptymask": None,
        "brokenmask": None,
    }
    for i, (name, content) in enumerate(cases.items()):
        pixels = np.roll(data.chelsea(), i + 1, axis=1)
        path = images / label / f"{name}.png"
        Image.fromarray(pixels).save(path)
        if content is not None:
            path.write_bytes(content)
        size = (90, 60) if name == "othersize" else (451, 300)
        Image.new("L", size, 0 if name == "emptymask" else 255).save(masks / label / f"{name}.png")
    broken = masks / label / "brokenmask.png"
    broken.write_bytes(broken.read_bytes()[:60])
    done = counterfoil(
        "run", "--images", images, "--masks", masks, "--model", MODEL, "--recipe", RECIPE, "--out", tmp_path / "out"
    )
    assert done.returncode == 0, done.stderr
    skipped = {Path(row["sample_id"]).stem: row for row in csv.DictReader((tmp_path / "out" / "skipped.csv").open())}
    assert set(skipped) >= set(cases)
    assert "90 x 60" in skipped["othersize"]["reason"]
    assert "empty" in skipped["emptymask"]["reason"]
    rows = list(csv.DictReader((tmp_path / "out" / "drops.csv").open()))
    assert {row["n"] for row in rows} == {"8"}  # not even the swaps: another donor takes the broken one's place


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--images", "nowhere", "--model", MODEL], "nowhere', which is not there"),
        (["--images", "empty", "--model", MODEL], "found none"),
        (["--images", "photos", "--model", "resnet50"], "expected a model address"),
        (["--images", "photos", "--model", MODEL, "--recipe", "imagenet-f"], "did you mean 'imagenet-e'?"),
        (["--images", "photos", "--model", MODEL, "--recipe", "edit.yaml"], "did you mean size"),
        (["--images", "photos", "--model", MODEL, "--recipe", "setting.yaml"], "unknown setting 'rat'"),
        (["--images", "photos", "--model", MODEL, "--recipe", "value.yaml"], "rate"),
        (["--images", "photos", "--model", MODEL, "--recipe", "key.yaml"], "unknown key 'edit'"),
        (["--images", "unknown", "--model", MODEL], "got 'crimsn'; the nearest are 'crimson'"),
        (["--images", "photos", "--model", MODEL, "--workers", "0"], "expected workers of at least 1, got 0"),
        (["--images", "photos", "--model", MODEL, "--model", MODEL], "expected each model once"),
        (["--images", "photos"], "Missing option '--model'"),
        (["--images", "photos", "--model", MODEL, "--limit", "x"], "--limit"),
    ],
)
def test_bad_input_gets_one_clear_line(
    photos: tuple[Path, Path], tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "photos").symlink_to(photos[0])
    (tmp_path / "unknown" / "crimsn").mkdir(parents=True)
    Image.fromarray(data.chelsea()).save(tmp_path / "unknown" / "crimsn" / "a.png")
    (tmp_path / "edit.yaml").write_text("edits: [{edit: sice}]")
    (tmp_path / "setting.yaml").write_text("edits: [{edit: size, settings: {rat: 0.1}}]")
    (tmp_path / "value.yaml").write_text("edits: [{edit: size, settings: {rate: large}}]")
    (tmp_path / "key.yaml").write_text("edit: [{edit: size}]")
    done = counterfoil("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    if "Usage" not in done.stderr:
        assert done.stderr.count("\n") == 1


def test_a_misspelt_class_stops_the_run_though_its_masks_are_not_found(
    photos: tuple[Path, Path], tmp_path: Path
) -> None:
    images = shutil.copytree(photos[0], tmp_path / "photos")
    (images / "crimson").rename(images / "crimsn")
    where = ["--images", images, "--masks", photos[1], "--recipe", RECIPE, "--limit", 2, "--out", tmp_path / "out"]
    done = counterfoil("run", *where, "--model", MODEL)
    assert done.returncode == 2
    assert "got 'crimsn'; the nearest are 'crimson'" in done.stderr
    done = counterfoil("build", *where)  # without a model, folders may be called anything
    assert done.returncode == 0
    assert "no usable photo of crimsn: skipped.csv gives the reasons" in done.stdout


def test_a_class_without_any_mask_is_told_by_name(photos: tuple[Path, Path], tmp_path: Path) -> None:
    masks = shutil.copytree(photos[1], tmp_path / "masks")
    shutil.rmtree(masks / "crimson")
    where = ["--images", photos[0], "--masks", masks, "--recipe", RECIPE, "--limit", 2, "--out", tmp_path / "out"]
    done = counterfoil("run", *where, "--model", MODEL)
    assert done.returncode == 3, done.stderr  # two right answers may be guessed
    assert "no usable photo of crimson: skipped.csv gives the reasons" in done.stdout


def test_a_folder_that_holds_another_run_is_refused(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path, limit=2)
    with pytest.raises(cf.UserError, match="another limit; choose another --out"):
        cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path, limit=3)
    with pytest.raises(cf.UserError, match="another seed; choose another --out"):
        cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path, limit=2, seed=1)


def test_a_report_is_not_written_over_another_run(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path, limit=2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    other = cf.run(images, [MODEL], masks=masks, edits=["grayscale"], limit=2)
    with pytest.raises(cf.UserError, match=r"it holds a run with another .*recipe"):
        other.report(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    other.report(tmp_path / "other")
    other.report(tmp_path / "other")  # its own


def test_another_seed_draws_other_random_edits(photos: tuple[Path, Path]) -> None:
    from counterfoil.store.parquet import read_table

    images, masks = photos
    found = []
    for seed in (0, 1):
        result = cf.run(images, [MODEL], masks=masks, recipe=RECIPE, limit=4, seed=seed)
        table = read_table(result.folder / "variants.parquet")
        moved = table["edit"] == "position"
        found.append(table["sha256"][moved].tolist())
    assert found[0] != found[1]


def test_the_result_in_python_has_drops_and_writes_a_report(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    result = cf.run(images=images, models=[MODEL], masks=masks, recipe="imagenet-9")
    assert {row.edit for row in result.drops} > {"control", "background-swap", "segmented"}
    report = result.report(tmp_path / "out")
    assert report == tmp_path / "out" / "report.html"
    assert sorted(path.name for path in report.parent.iterdir()) == [
        "checksums.json", "drops.csv", "masks.csv", "predictions", "report.html", "run.json", "skipped.csv",
        "summary.json", "variants.parquet",
    ]  # fmt: skip


@pytest.mark.parametrize("what", ["edits", "recipes", "models", "sources"])
def test_list_names_what_there_is(what: str) -> None:
    done = counterfoil("list", what)
    assert done.returncode == 0
    expected = {"edits": "background-swap", "recipes": "imagenet-e", "models": "onnx:", "sources": "folder"}[what]
    assert expected in done.stdout


def test_version_is_the_packages() -> None:
    assert counterfoil("version").stdout.strip() == cf.__version__


def test_a_model_whose_labels_changed_is_not_the_same_run(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    path = mean_colour_network(tmp_path / "net.onnx", 4)
    for labels in (LABELS, LABELS[::-1]):
        path.with_suffix(".json").write_text(json.dumps({"labels": labels, "size": [32, 32], "resize": 40}))
        arguments = ["run", "--images", images, "--masks", masks, "--model", f"onnx:{path}", "--recipe", RECIPE]
        done = process(*arguments, "--limit", 2, "--out", tmp_path / "out")
        assert done.returncode == (3 if labels == LABELS else 2), done.stderr  # 3: too few photos
    assert "another model;" in done.stderr


def test_a_python_model_whose_weights_changed_is_not_the_same_run(
    photos: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, masks = photos
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weighted.py").write_text(
        "import numpy as np\nfrom planted import Planted\n"
        "class Net(Planted):\n    def __init__(self): self.weights = np.load('weights.npy')\n"
    )
    for number in (1, 2):
        np.save(tmp_path / "weights.npy", np.full(3, number))
        arguments = ["run", "--images", images, "--masks", masks, "--model", "python:weighted:Net", "--recipe", RECIPE]
        done = process(*arguments, "--limit", 2, "--out", tmp_path / "out")
        assert done.returncode == (3 if number == 1 else 2), done.stderr  # 3: too few photos
    assert "another model;" in done.stderr


@pytest.mark.parametrize("bad", ["file", "record", "doubles", "others"])
def test_folders_and_recipes_that_cannot_work_are_refused_before_the_work(
    photos: tuple[Path, Path], tmp_path: Path, bad: str
) -> None:
    images, masks = photos
    out, recipe = tmp_path / "out", tmp_path / "recipe.yaml"
    recipe.write_text("edits: [{edit: control}, {edit: control}]" if bad == "doubles" else "edits: [{edit: control}]")
    if bad == "file":
        out.write_text("a file, not a folder")
    if bad == "record":
        out.mkdir()
        (out / "run.json").write_text('{"limit": ')
    if bad == "others":
        (out / "work").mkdir(parents=True)  # a user's own folder of this name
        (out / "work" / "notes.txt").write_text("mine")
    before = sorted(out.rglob("*"))
    with pytest.raises(cf.UserError, match="holds other files \\('work'\\)" if bad == "others" else "expected"):
        cf.run(images, [MODEL], masks=masks, recipe=str(recipe), out=out)
    assert bad != "others" or sorted(out.rglob("*")) == before


def test_two_runs_cannot_write_into_one_folder(tmp_path: Path) -> None:
    from counterfoil.store.folder_lock import hold_folder

    with (
        hold_folder(tmp_path / "out"),
        pytest.raises(cf.UserError, match="another run is writing"),
        hold_folder(tmp_path / "out"),
    ):
        pass


def test_a_run_of_an_earlier_version_is_refused_in_one_line(photos: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "out" / "work").mkdir(parents=True)
    (tmp_path / "out" / "work" / "journal.jsonl").write_text("{}\n")
    done = counterfoil("run", "--images", photos[0], "--masks", photos[1], "--model", MODEL, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "one of an earlier version" in done.stderr


def test_a_name_that_is_no_text_is_a_counted_row(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    first = next((images / LABELS[0]).iterdir())
    os.rename(os.fsencode(first), os.path.join(os.fsencode(first.parent), b"\xff.png"))
    result = cf.run(images, [MODEL], masks=masks, recipe=RECIPE)
    assert [row.reason for row in result.skipped if row.stage == "source"] == ["the file's name is not UTF-8 text"]


def test_a_python_model_that_gives_logits_is_refused(photos: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "logits_model.py").write_text(
        "import planted\n"
        "class Logits(planted.Planted):\n"
        "    def __call__(self, images):\n"
        "        return 10 * super().__call__(images) - 30\n"
    )
    path = os.pathsep.join([str(HELPERS), str(tmp_path)])
    arguments = ["run", "--images", photos[0], "--masks", photos[1], "--model", "python:logits_model:Logits"]
    done = process(*arguments, "--recipe", RECIPE, "--out", tmp_path / "out", PYTHONPATH=path)
    assert done.returncode == 2
    assert "expected probabilities" in done.stderr


def test_ctrl_c_while_the_program_loads_gives_one_line() -> None:
    code = (
        "import sys\n"
        "class Interrupted:\n"  # as the signal raises it in the middle of an import
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'counterfoil.cli':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from counterfoil.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=_environment())
    assert done.returncode == 130
    assert done.stderr == "counterfoil: stopped before it began\n"


@pytest.mark.parametrize(
    ("step", "line"),
    [
        ("{edit: position, settings: {rate: 0.05}}", "- {edit: size, settings: {rate: 0.05}}"),
        ("{edit: direction, settings: {angle: 30, rate: 0.1}}", "- {edit: size, settings: {rate: 0.1}}"),
        ("{edit: painted-random}", "- {edit: painted-complexity, settings: {guidance: 0}}"),
        (
            "{edit: combine, settings: {edits: [{edit: background-blur, settings: {sigma: 2.0}}, {edit: edges}]}}",
            "- {edit: background-blur, settings: {sigma: 2.0}}",
        ),
    ],
)
def test_an_edit_whose_reference_the_recipe_lacks_is_refused_with_the_line_to_add(
    photos: tuple[Path, Path], tmp_path: Path, step: str, line: str
) -> None:
    images, masks = photos
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"edits: [{{edit: control}}, {step}]")
    with pytest.raises(cf.UserError, match=re.escape(f"is compared with; add the line '{line}'")):
        cf.run(images, [MODEL], masks=masks, recipe=str(recipe), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_the_photos_of_grounds_other_photos_lend_scenes_and_the_report_says_so(
    photos: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("about: Scenes.\njudge_fills: false\nedits:\n  - edit: control\n  - edit: scene-swap\n")
    given = ["--images", photos[0], "--masks", photos[1], "--model", "python:planted:honest", "--recipe", recipe]
    done = counterfoil("run", *given, "--out", tmp_path / "out", "--workers", 1)
    assert "Traceback" not in done.stderr
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    note = "made with ground: photo, since files that they use otherwise cannot be had here: scene-swap"
    assert record["notes"] == [note]
    assert note[1:] in (tmp_path / "out" / "report.html").read_text().replace("<code>", "").replace("</code>", "")
    rows = pq.read_table(tmp_path / "out" / "variants.parquet", columns=["edit", "settings", "donor_id"]).to_pylist()
    scenes = [row for row in rows if row["edit"] == "scene-swap"]
    assert scenes
    assert all(json.loads(row["settings"])["ground"] == "photo" and row["donor_id"] for row in scenes)
