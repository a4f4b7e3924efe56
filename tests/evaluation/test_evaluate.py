"""Finished pictures before models, from the outside: exact accuracies, bad input, being killed, surrogates."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

import counterfoil as cf
from collection_pictures import Shown, pictures, write_workspace
from command_line import counterfoil
from counterfoil.labels.label_space import LabelSpace
from counterfoil.store.parquet import read_table
from counterfoil.store.picture_collection import CollectionBase
from counterfoil.store.run_checksums import record_checksums
from counterfoil.store.workspace import Workspace
from counterfoil.study.comparison import compare_runs
from counterfoil.types import MiningResult, Skipped, StoredVariant
from locations import HELPERS
from opened_files import opened_files
from planted import HALT_AT_PARTS, LABELS, count_parts

HONEST, BLIND = "python:planted:honest", "python:planted:blind_on_the_left"
MEANING = "surrogate: chose pictures by failing on them; its accuracy on those is low by construction"


def tables(folder: Path) -> dict[str, bytes]:
    names = ["variants.parquet", "accuracies.csv", "drops.csv", "skipped.csv"]
    found = [*(folder / name for name in names), *sorted((folder / "predictions").iterdir())]
    return {path.name: path.read_bytes() for path in found}


def accuracies(folder: Path) -> dict[tuple[str, ...], dict[str, str]]:
    rows = csv.DictReader((folder / "accuracies.csv").open())
    return {(row["model"], row["attribute"], row["edit"], row["level"]): row for row in rows}


@pytest.fixture(scope="module")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without originals: 9 of 12 bricks right, 4 of 12 felt right, 10 of 16 beaches right."""
    shown = [
        *pictures(12, 9, "texture", "painted", "bricks"),
        *pictures(12, 4, "texture", "painted", "felt"),
        *pictures(16, 10, "background", "scene", "beach"),
    ]
    return write_workspace(tmp_path_factory.mktemp("painted") / "hard", shown)


@pytest.fixture(scope="module")
def evaluated(painted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("evaluated") / "run"
    done = counterfoil("evaluate", painted, "--model", HONEST, "--model", BLIND, "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_accuracies_are_exact_and_their_intervals_wilsons(evaluated: Path) -> None:
    found = accuracies(evaluated)
    expected = {
        ("all", "all", "all"): (23, 40),
        ("texture", "painted", "all"): (13, 24),
        ("texture", "painted", "bricks"): (9, 12),
        ("texture", "painted", "felt"): (4, 12),
        ("background", "scene", "beach"): (10, 16),
    }
    assert {key[1:] for key in found} == set(expected)
    for group, (right, n) in expected.items():
        key = (HONEST, *group)
        row = found[key]
        low, high = proportion_confint(right, n, method="wilson")
        assert (row["n"], row["photos"]) == (str(n), str(n))
        assert float(row["top1"]) == pytest.approx(100 * right / n, abs=1e-4)
        assert float(row["top1_low"]) == pytest.approx(100 * low, abs=1e-4)
        assert float(row["top1_high"]) == pytest.approx(100 * high, abs=1e-4)
        assert row["top5"] == "nan"  # there are but four classes


def test_the_headline_the_page_and_the_summary_say_the_accuracies(evaluated: Path) -> None:
    summary = json.loads((evaluated / "summary.json").read_text())
    assert summary["headline"][0].startswith(f"{HONEST} is right on 57.5 % [42.2, 71.5] of the 40 pictures")
    assert summary["headline"][1].startswith("Lowest on painted: 54.2 %")
    assert summary["drops"] == []
    assert summary["accuracies"][0]["top1"] == 57.5
    assert summary["run"]["collection"] == "hard"
    page = (evaluated / "report.html").read_text()
    assert summary["run"]["collection_digest"] in page
    assert "Percent right by kind of picture" in page
    assert "Points lost" not in page.split('id="details"')[0]
    assert page.count('<span class="pair alone"><svg class="shot"') > 10
    assert not any("surrogate" in line for line in summary["headline"])


def test_pictures_with_originals_give_drops_as_a_run_does(tmp_path: Path) -> None:
    shown = []
    for number in range(12):
        label, other = LABELS[number % 4], LABELS[(number + 1) % 4]
        name = f"{label}/{number}"
        shown.append(Shown(label, label, "original", "original", "none", name))
        shown.append(Shown(label, label if number < 3 else other, "background", "scene", "beach", name))
    result = cf.evaluate_collection(write_workspace(tmp_path / "both", shown), [HONEST], tmp_path / "out")
    (row,) = result.drops
    assert (row.n, row.accuracy_original, row.accuracy, row.drop) == (12, 100.0, 25.0, 75.0)
    page = result.report(tmp_path / "out").read_text()
    assert "Points lost to one edit of each attribute" in page
    assert accuracies(tmp_path / "out")[HONEST, "all", "all", "all"]["n"] == "12"  # the originals stand apart


def test_workers_and_batch_size_change_no_byte(painted: Path, evaluated: Path, tmp_path: Path) -> None:
    result = cf.evaluate_collection(painted, [HONEST, BLIND], tmp_path / "out", workers=1, batch_size=5)
    result.report(tmp_path / "out")
    assert tables(tmp_path / "out") == tables(evaluated)


@pytest.mark.parametrize("with_originals", [True, False])
def test_a_report_opens_no_picture_a_second_time(tmp_path: Path, with_originals: bool) -> None:
    shown = []
    for number in range(40):  # more than one piece of work
        label, other = LABELS[number % 4], LABELS[(number + 1) % 4]
        if with_originals:
            shown.append(Shown(label, label, "original", "original", "none", f"{label}/{number}"))
        shown.append(Shown(label, other if number % 3 else label, "background", "scene", "beach", f"{label}/{number}"))
    folder = write_workspace(tmp_path / "pictures", shown)
    with opened_files() as opened:
        page = cf.evaluate_collection(folder, [HONEST], tmp_path / "out", workers=1).report(tmp_path / "out")
    times = Counter(path for path in opened if path.suffix == ".png")
    # the unedited pictures are read once more before, to check how the models are set up
    assert (len(times), sum(times.values())) == (len(shown), len(shown) + (40 if with_originals else 0))
    assert "data:image/jpeg" in page.read_text()


def test_a_killed_evaluation_goes_on_and_ends_in_the_same_bytes(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "many", pictures(32 * 6, 100, "texture", "painted", "bricks"))
    arguments = ["evaluate", workspace, "--model", "python:planted:halting", "--workers", 1]
    parts = tmp_path / "killed" / "work" / "parts"
    process = subprocess.Popen(
        [sys.executable, "-c", "from counterfoil.cli import main; main()", *map(str, arguments),
         "--out", str(tmp_path / "killed")],
        env={**os.environ, "PYTHONPATH": str(HELPERS), "HALT_AT_FOLDER": str(parts)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while count_parts(parts) < HALT_AT_PARTS:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {path.name: path.stat().st_mtime_ns for path in parts.glob("[!.]*")}
    assert HALT_AT_PARTS <= len(finished) < 2 * 6
    for name in ("killed", "whole"):
        done = counterfoil(*arguments, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert finished.items() <= {path.name: path.stat().st_mtime_ns for path in parts.iterdir()}.items()  # not again
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")


def test_a_part_that_was_cut_off_is_said_and_made_again_once_removed(
    painted: Path, evaluated: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    cf.evaluate_collection(painted, [HONEST, BLIND], out, workers=1)
    part = sorted((out / "work" / "parts").iterdir())[0]
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(cf.UserError, match="is damaged"):
        cf.evaluate_collection(painted, [HONEST, BLIND], out)
    part.unlink()
    cf.evaluate_collection(painted, [HONEST, BLIND], out).report(out)
    assert tables(out) == tables(evaluated)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("collection", "another collection;"),
        ("models", "another model( and|;)"),
        ("limit", "another limit"),
    ],
)
def test_a_folder_of_another_evaluation_is_refused(painted: Path, tmp_path: Path, change: str, said: str) -> None:
    cf.evaluate_collection(painted, [HONEST], tmp_path / "out", limit=8)
    collection, models, limit = painted, [HONEST], 8
    if change == "collection":
        collection = write_workspace(tmp_path / "other", pictures(8, 8, "texture", "painted", "bricks"))
    elif change == "models":
        models = [BLIND]
    else:
        limit = 9
    with pytest.raises(cf.UserError, match=said):
        cf.evaluate_collection(collection, models, tmp_path / "out", limit=limit)


def test_a_collection_that_moved_is_the_same_collection(painted: Path, tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "here" / "set", pictures(8, 8, "texture", "painted", "bricks"))
    cf.evaluate_collection(workspace, [HONEST], tmp_path / "out")
    parts = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "work" / "parts").iterdir()}
    (tmp_path / "there").mkdir()
    moved = workspace.rename(tmp_path / "there" / "under-another-name")
    cf.evaluate_collection(moved, [HONEST], tmp_path / "out")
    assert parts == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "work" / "parts").iterdir()}
    assert json.loads((tmp_path / "out" / "run.json").read_text())["collection"] == "under-another-name"


def test_a_picture_that_is_there_again_is_asked_about(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "set", pictures(8, 8, "texture", "painted", "bricks"))
    away = sorted((workspace / "pictures").rglob("*.png"))[0]
    away.rename(tmp_path / "away.png")
    assert len(cf.evaluate_collection(workspace, [HONEST], tmp_path / "out").skipped) == 1
    (tmp_path / "away.png").rename(away)
    assert not cf.evaluate_collection(workspace, [HONEST], tmp_path / "out").skipped
    assert len(read_table(tmp_path / "out" / "variants.parquet", ["id"])["id"]) == 8


def test_a_limit_takes_samples_with_all_their_pictures_and_the_classes_in_turn(tmp_path: Path) -> None:
    shown = [
        Shown(label, label, "texture", "painted", level, f"{label}/{number}")
        for label in LABELS for number in range(3) for level in ("bricks", "felt")
    ]  # fmt: skip
    out = tmp_path / "out"
    cf.evaluate_collection(write_workspace(tmp_path / "set", shown), [HONEST], out, limit=5)
    samples = list(read_table(out / "variants.parquet", ["sample_id"])["sample_id"])
    assert sorted(set(samples)) == ["azure/0", "azure/1", "crimson/0", "emerald/0", "violet/0"]
    assert len(samples) == 10


def test_pictures_that_cannot_be_read_or_were_changed_are_counted(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "set", pictures(16, 16, "texture", "painted", "bricks"))
    files = sorted((workspace / "pictures").rglob("*.png"))
    files[0].write_bytes(b"<html>")
    files[1].unlink()
    files[2].write_bytes(files[3].read_bytes())
    done = counterfoil("evaluate", workspace, "--model", HONEST, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "skipped: 3" in done.stdout
    rows = list(csv.DictReader((tmp_path / "out" / "skipped.csv").open()))
    assert {(row["stage"], row["edit"]) for row in rows} == {("evaluate", "painted")}
    reasons = " ".join(row["reason"] for row in rows)
    assert all(said in reasons for said in ("is no picture", "cannot be read", "other pixels than the manifest says"))
    assert accuracies(tmp_path / "out")[HONEST, "all", "all", "all"]["n"] == "13"


def test_nothing_readable_is_said_and_ends_with_two(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "set", pictures(4, 4, "texture", "painted", "bricks"))
    for path in (workspace / "pictures").rglob("*.png"):
        path.unlink()
    done = counterfoil("evaluate", workspace, "--model", HONEST, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "expected at least one" in done.stderr
    assert len(done.stderr.strip().splitlines()[-1].split("\n")) == 1


@pytest.mark.parametrize(
    ("collection", "said"),
    [
        ("nowhere", "got 'nowhere', which is no folder"),
        (".", "holds neither benchmark.json nor variants.parquet"),
        ("imagenet-q:.", "imagenet-q"),
    ],
)
def test_what_is_no_collection_is_one_line_and_exit_two(tmp_path: Path, collection: str, said: str) -> None:
    done = counterfoil("evaluate", collection, "--model", HONEST, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_bad_numbers_and_a_model_twice_are_user_errors(painted: Path, tmp_path: Path) -> None:
    with pytest.raises(cf.UserError, match="limit of at least 1, got 0"):
        cf.evaluate_collection(painted, [HONEST], tmp_path, limit=0)
    with pytest.raises(cf.UserError, match="each model once"):
        cf.evaluate_collection(painted, [HONEST, HONEST], tmp_path)
    with pytest.raises(cf.UserError, match="at least one model"):
        cf.evaluate_collection(painted, [], tmp_path)


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that one model chose: all of its objects are on the left, where it is blind."""
    shown = [replace_left(one) for one in pictures(24, 20, "texture", "painted", "bricks")]
    folder = write_workspace(tmp_path_factory.mktemp("mined") / "mined", shown)
    workspace = Workspace(folder)
    workspace.keep_mined(MiningResult((), "wrong for one of one", {BLIND: "0" * 64}, workspace.digest))
    return folder


def replace_left(one: Shown) -> Shown:
    return one._replace(left=True)


@pytest.fixture(scope="module")
def chosen(mined: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("chosen") / "run"
    done = counterfoil("evaluate", mined, "--model", HONEST, "--model", BLIND, "--out", out)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.split("<main>")[1]).split())


def test_a_surrogate_is_marked_in_headline_tables_and_charts(chosen: tuple[Path, str]) -> None:
    out, printed = chosen
    assert f"{BLIND} – {MEANING}." in printed
    assert f"{HONEST} – surrogate" not in printed
    summary = json.loads((out / "summary.json").read_text())
    assert summary["surrogates"] == [BLIND]
    assert {row["model"] for row in summary["accuracies"] if row["surrogate"]} == {BLIND}
    page = (out / "report.html").read_text()
    first, rest = page.split('<details id="accuracies"')
    assert f"{BLIND} – {MEANING}." in rest
    assert "Mining kept 0 of the 24 pictures; all of them are shown here." in words(page)
    verdicts = first.split('<ul class="verdicts">')[1].split("</ul>")[0]
    badge = f'<span class="badge" title="{MEANING}">surrogate</span>'
    assert f"{BLIND} {badge}" in verdicts
    assert f"{HONEST} {badge}" not in page
    table = rest.split('id="all-accuracies"')[1].split("</table>")[0]
    assert table.count(badge) == table.count(f"<td>{BLIND} {badge}</td>") == 2
    chart = first.split('<figure class="chart first')[1].split("</figure>")[0]
    assert set(re.findall(r'<g class="m(\d)( filled)?">', chart)) == {("0", " filled"), ("1", "")}
    assert accuracies(out)[BLIND, "all", "all", "all"]["surrogate"] == "true"


def test_a_report_made_again_knows_a_surrogate_by_its_weights(chosen: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = chosen
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(out), str(copy)], check=True)
    for name in ("run.json", "summary.json"):
        text = (copy / name).read_text().replace(BLIND, "onnx:other.onnx")
        record = json.loads(text)
        record.pop("checksum", None)  # as an earlier version wrote it
        run = record["run"] if name == "summary.json" else record
        run["surrogates"] = {"timm:somebody": run["model_digests"]["onnx:other.onnx"]}
        (copy / name).write_text(json.dumps(record))
    (table,) = (copy / "predictions").glob("*blind*")
    table.rename(table.with_name("onnx-other.onnx.parquet"))
    record_checksums(copy)
    done = counterfoil("report", copy, "--out", tmp_path / "again", "--export", "markdown,latex,csv")
    assert done.returncode == 0, done.stderr
    assert f"onnx:other.onnx – {MEANING}." in done.stdout
    assert "onnx:other.onnx (surrogate)" in (tmp_path / "again" / "results.md").read_text()


def test_another_model_of_the_same_python_file_is_no_surrogate(mined: Path, tmp_path: Path) -> None:
    result = cf.evaluate_collection(mined, [HONEST], tmp_path / "out")
    workspace = Workspace(mined)
    assert not any("surrogate" in line for line in result.headline)
    digest = result.plan.run.model_digests[HONEST]
    workspace.keep_mined(MiningResult((), "", {BLIND: digest}, workspace.digest))
    again = cf.evaluate_collection(mined, [HONEST], tmp_path / "out")
    assert again.plan.run.surrogates == {BLIND: digest}
    assert not any("surrogate" in line for line in again.headline)


def test_models_are_compared_picture_by_picture_where_there_are_no_originals(chosen: tuple[Path, str]) -> None:
    out, _ = chosen
    found = compare_runs((out, out), first=HONEST, second=BLIND)
    assert found.kind == "accuracies"
    assert found.surrogates == (BLIND,)
    # the honest one is right on 20 of 24; the blind one turns its answer to the next class and is right on none
    assert found.accuracy.n == 24
    assert found.accuracy.value_first == pytest.approx(100 * 20 / 24)
    assert found.accuracy.value_second == 0.0
    done = counterfoil("compare", out, out, "--first", HONEST, "--second", BLIND)
    assert done.returncode == 0, done.stderr
    assert "On all pictures" in done.stdout
    assert f"{BLIND} – {MEANING}." in done.stdout
    assert "differ" in done.stdout


def test_runs_over_other_collections_are_not_compared(evaluated: Path, chosen: tuple[Path, str]) -> None:
    done = counterfoil("compare", evaluated, chosen[0], "--first", HONEST, "--second", BLIND)
    assert done.returncode == 2
    assert "another collection, 'hard'" in done.stderr


@dataclass(frozen=True)
class Gathered(CollectionBase):
    """A small collection of one's own: what the protocol asks for, and nothing else."""

    pictures: Sequence[StoredVariant]
    shown: Mapping[str, NDArray[np.uint8]]
    space: LabelSpace | None
    name: str = "gathered"
    digest: str = "d" * 64
    scoring: Literal["all", "subset"] = "subset"
    surrogates: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ("These are training pictures.",)
    skipped: Sequence[Skipped] = (Skipped("stray", "source", "", "no picture's name"),)

    def read(self, stored: StoredVariant) -> NDArray[np.uint8]:
        return self.shown[stored.file]


def gathered(painted: Path) -> Gathered:
    """The painted pictures under two classes of several ids each; none of them belongs to a sample."""
    space = LabelSpace("warmth", ("warm", "cool"), ("warm", "cool"), (("crimson", "violet"), ("emerald", "azure")))
    workspace = Workspace(painted)
    called = {"crimson": "warm", "violet": "warm", "emerald": "cool", "azure": "cool"}
    pictures = [
        replace(one, variant=replace(one.variant, label=called[one.variant.label], sample_id=None))
        for one in workspace.pictures
    ]
    return Gathered(pictures, {one.file: workspace.read(one) for one in pictures}, space)


def test_a_collections_own_classes_and_scoring_are_used_and_its_notes_told(painted: Path, tmp_path: Path) -> None:
    result = cf.evaluate_collection(gathered(painted), [HONEST], tmp_path / "out")
    page = result.report(tmp_path / "out").read_text()
    name = f"{HONEST} (subset: 2 classes)"
    assert result.plan.model_names == (name,)
    # a wrong colour is the next of crimson, emerald, azure, violet: two of these four steps stay warm or cool
    wrong = [number for count, right in ((12, 9), (12, 4), (16, 10)) for number in range(right, count)]
    lost = sum(number % 2 == 0 for number in wrong)
    row = accuracies(tmp_path / "out")[name, "all", "all", "all"]
    assert (row["n"], row["photos"]) == ("40", "40")
    assert float(row["top1"]) == pytest.approx(100 * (40 - lost) / 40)
    assert '<div class="warning" role="note"><p>These are training pictures.</p></div>' in page
    assert [row.reason for row in result.skipped] == ["no picture's name"]


def test_a_scoring_that_is_asked_for_comes_before_the_collections_own(painted: Path, tmp_path: Path) -> None:
    result = cf.evaluate_collection(gathered(painted), [HONEST], tmp_path / "out", scoring="all")
    assert result.plan.model_names == (HONEST,)
    assert result.plan.run.scoring == "all"


def test_a_gate_holds_a_collection_without_originals_to_an_accuracy(evaluated: Path) -> None:
    held = counterfoil("gate", evaluated, "--min-accuracy", 40, "--model", HONEST)  # 57.5 [42.2, 71.5]
    assert held.returncode == 0, held.stderr
    assert f"holds: {HONEST}, accuracy on all pictures: 57.5 %" in held.stdout
    assert counterfoil("gate", evaluated, "--min-accuracy", 90, "--model", HONEST).returncode == 1
    assert counterfoil("gate", evaluated, "--min-accuracy", 50, "--model", HONEST).returncode == 3


def test_a_picture_of_a_collection_is_not_made_again(evaluated: Path) -> None:
    variant = str(read_table(evaluated / "variants.parquet", ["id"])["id"][0])
    with pytest.raises(cf.UserError, match="over the collection hard: its pictures were not made from photos"):
        cf.rebuild(evaluated, variant)


def test_a_comparison_is_over_the_pictures_of_the_reports_overall(tmp_path: Path) -> None:
    shown = [*pictures(12, 9, "texture", "painted", "bricks"), *pictures(12, 0, "presence", "object-removed", "none")]
    out = tmp_path / "run"
    cf.evaluate_collection(write_workspace(tmp_path / "set", shown), [HONEST, BLIND], out).report(out)
    found = compare_runs((out, out), first=HONEST, second=BLIND).accuracy
    assert found.n == 12
    assert found.value_first == pytest.approx(float(accuracies(out)[HONEST, "all", "all", "all"]["top1"]))


def test_an_evaluation_of_a_mislabelled_model_is_not_judged_and_ends_with_status_4(tmp_path: Path) -> None:
    photos = [(number, LABELS[number % 4]) for number in range(48)]
    shown = [Shown(label, label, "original", "original", "none", f"{label}/{number}") for number, label in photos]
    folder = write_workspace(tmp_path / "pictures", shown)
    done = counterfoil("evaluate", folder, "--model", "python:planted:mislabelled", "--out", tmp_path / "out")
    assert done.returncode == 4
    assert "not judged: python:planted:mislabelled" in done.stdout
    assert "put the last label first in `labels` of python:planted:mislabelled" in done.stdout
    assert counterfoil("evaluate", folder, "--model", HONEST, "--out", tmp_path / "honest").returncode == 0
