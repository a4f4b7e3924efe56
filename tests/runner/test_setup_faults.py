"""Models that are set up wrongly, or guess, through the whole pipeline: not judged, with the remedy, never "holds"."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from command_line import counterfoil
from counterfoil.study.runs import Study, open_runs
from planted import LABELS, write_colour_network, write_photos

WRONG: dict[str, dict[str, object]] = {
    "mislabelled": {"labels": (*LABELS[1:], LABELS[0])},
    "bgr": {"colour_order": "BGR"},
    "scale": {"mean": (0, 0, 0), "std": (1, 1, 1)},
}
GUESSING = ("python:planted:guessing", "python:planted:answers_one_class")
RECIPE = "working_size: 96\nedits:\n  - edit: control\n  - edit: background-plain\n  - edit: size\n"


class Runs(NamedTuple):
    right: Path
    wrong: Path
    status: int
    printed: str
    names: dict[str, str]  # model by its fault


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    place = tmp_path_factory.mktemp("faults")
    images, masks = write_photos(place, 48)
    (place / "recipe.yaml").write_text(RECIPE)
    right = write_colour_network(place / "right.onnx", images)
    names = {name: write_colour_network(place / f"{name}.onnx", images, **said) for name, said in WRONG.items()}
    common = ("run", "--images", images, "--masks", masks, "--recipe", place / "recipe.yaml")
    assert counterfoil(*common, "--model", right, "--out", place / "right").returncode == 0
    models = [part for model in (right, *names.values(), *GUESSING) for part in ("--model", model)]
    done = counterfoil(*common, *models, "--out", place / "wrong")
    return Runs(place / "right", place / "wrong", done.returncode, done.stdout, names)


@pytest.fixture(scope="module")
def study(runs: Runs) -> Study:
    return open_runs([runs.wrong])


def test_the_run_ends_with_a_status_of_its_own_and_says_what_to_change(runs: Runs) -> None:
    assert runs.status == 4
    assert f"not judged: {runs.names['mislabelled']}\n" in runs.printed
    assert runs.printed.count('put the last label first in "labels" of mislabelled.json') == 1
    assert 'set "colour_order": "RGB" in bgr.json' in runs.printed
    assert '"std": [127.5, 127.5, 127.5] in scale.json' in runs.printed
    assert "not judged: python:planted:guessing" in runs.printed


def test_only_the_model_that_is_set_up_rightly_is_judged(runs: Runs, study: Study) -> None:
    judged = [model for model, judgement in study.judgements.items() if judgement.is_judged]
    assert [Path(model).name for model in judged] == ["right.onnx"]


@pytest.mark.parametrize("fault", [*WRONG, *GUESSING])
def test_the_gate_never_holds_for_a_broken_model(runs: Runs, fault: str) -> None:
    model = runs.names.get(fault, fault)
    for bounds in (("--max-drop", "any=100"), ("--against", runs.right, "--margin", "100")):
        done = counterfoil("gate", runs.wrong, "--model", model, *bounds)
        assert done.returncode == 4
        assert "not judged: " in done.stdout
        assert "holds" not in done.stdout


def test_a_baseline_that_is_broken_is_not_judged_either(runs: Runs) -> None:
    done = counterfoil("gate", runs.right, "--against", runs.wrong, "--against-model", GUESSING[0], "--margin", "50")
    assert done.returncode == 4
    assert "the baseline of " in done.stdout


def test_report_and_compare_state_it_and_end_with_the_same_status(runs: Runs, tmp_path: Path) -> None:
    report = counterfoil("report", runs.wrong, "--out", tmp_path)
    assert (report.returncode, "not judged: " in report.stdout) == (4, True)
    compare = counterfoil("compare", runs.right, runs.wrong, "--second", GUESSING[0])
    assert (compare.returncode, "not judged: " in compare.stdout) == (4, True)
    assert "points less than" not in compare.stdout


def test_the_record_of_a_resumed_run_is_kept(runs: Runs, study: Study) -> None:
    sanity = study.run.sanity[runs.names["bgr"]]
    assert sanity.photos == 48
    assert sanity.trials[0].change == "the colours in the order RGB"


def test_a_model_that_answers_nothing_or_guesses_on_few_photos_is_no_success(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 6)
    (tmp_path / "recipe.yaml").write_text("working_size: 96\nedits: [{edit: control}, {edit: background-blur}]")
    common = ("run", "--images", images, "--masks", masks, "--recipe", tmp_path / "recipe.yaml")
    for model, status, word in (("answers_nothing", 4, "not judged"), ("answers_one_class", 3, "cannot tell")):
        done = counterfoil(*common, "--model", f"python:planted:{model}", "--out", tmp_path / model)
        assert done.returncode == status, (done.stdout, done.stderr)
        assert f"{word}: python:planted:{model}" in done.stdout
        assert counterfoil("gate", tmp_path / model, "--max-drop", "any=100").returncode == status
