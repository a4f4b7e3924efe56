"""Two models of which one is worse in one attribute only: that is found, and nothing else, over twenty seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import counterfoil as cf
from command_line import counterfoil
from counterfoil.report.comparison_words import conclude
from counterfoil.report.drop_findings import differ_significantly
from counterfoil.report.gate_margins import Margins, judge_growth
from counterfoil.statistics.answers import NO_ATTRIBUTE
from counterfoil.statistics.contrasts import contrast_attribute_drops
from counterfoil.statistics.growth import measure_growth
from counterfoil.study.comparison import compare_runs
from counterfoil.study.runs import Study, open_runs
from locations import DATA
from model_groups import hold_all_models
from planted import PAIRS, write_photos

GOOD = [f"python:planted:noisy_{seed}" for seed in range(PAIRS)]
UNCHANGED = list(zip(GOOD[::2], GOOD[1::2], strict=True))  # no model in two pairs: they must be independent
WORSE = [f"python:planted:worse_on_small_{seed}" for seed in range(PAIRS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pairs")
    images, masks = write_photos(place, 60)
    with hold_all_models():
        cf.run(images, [*GOOD, *WORSE], masks=masks, recipe=str(DATA / "pairs.yaml"), out=place / "out", workers=2)
    return place / "out"


@pytest.fixture(scope="module")
def study(folder: Path) -> Study:
    return open_runs([folder])


def found_attributes(study: Study, first: str, second: str) -> set[str]:
    rows = contrast_attribute_drops(study.answers, [(first, second)])
    differing = [row.condition.attribute for row in rows if differ_significantly(row)]
    return {attribute for attribute in differing if attribute not in NO_ATTRIBUTE}


def conclusion(folder: Path, first: str, second: str) -> str:
    return conclude(compare_runs((folder, folder), first=first, second=second))


def test_the_attribute_in_which_one_is_worse_is_found_and_nothing_else(study: Study) -> None:
    found = [found_attributes(study, *pair) for pair in zip(WORSE, GOOD, strict=True)]
    assert sum("size" in attributes for attributes in found) >= PAIRS - 1
    assert sum(bool(attributes - {"size"}) for attributes in found) <= 1


def test_the_comparison_ends_in_a_sentence_that_names_it(folder: Path) -> None:
    sentence = conclusion(folder, WORSE[0], GOOD[0])
    assert f"{GOOD[0]} loses " in sentence
    assert f"points less than {WORSE[0]} to size [" in sentence
    assert "nothing else differs" in sentence
    assert "noise" not in sentence


def test_equal_models_with_replicates_are_told_apart_in_at_most_one_pair(folder: Path, study: Study) -> None:
    """The same fault rate for both, drawn anew: whatever is found is a false finding."""
    found = [found_attributes(study, *pair) for pair in UNCHANGED]
    assert sum(bool(attributes) for attributes in found) <= 1
    sentence = conclusion(folder, GOOD[0], GOOD[1])
    assert "cannot tell" in sentence


def verdicts(study: Study, baseline: str, model: str, margin: float) -> dict[str, str]:
    rows = measure_growth(study.answers, baseline, model)
    return {check.subject: check.verdict for check in judge_growth(rows, model, Margins(margin), "upper")}


def test_the_gate_fails_the_worse_model_by_that_attribute_alone(study: Study) -> None:
    outcomes = [verdicts(study, good, worse, 5) for good, worse in zip(GOOD, WORSE, strict=True)]
    assert sum(outcome["size"] == "violated" for outcome in outcomes) >= PAIRS - 1
    others = [verdict for outcome in outcomes for name, verdict in outcome.items() if name != "size"]
    assert others.count("violated") <= 1
    assert "holds" not in {outcome["size"] for outcome in outcomes}


def test_the_gate_hardly_ever_fails_a_model_that_did_not_change(study: Study) -> None:
    assert sum("violated" in verdicts(study, *pair, 2).values() for pair in UNCHANGED) <= 1


def test_the_command_ends_with_status_1_and_writes_every_form(folder: Path, tmp_path: Path) -> None:
    done = counterfoil(
        "gate", folder, "--against", folder, "--model", WORSE[0], "--against-model", GOOD[0], "--margin", "5",
        "--markdown", tmp_path / "gate.md", "--json", tmp_path / "gate.json", "--junit", tmp_path / "gate.xml",
    )  # fmt: skip
    assert done.returncode == 1
    assert "violated: python:planted:worse_on_small_0, size: loses" in done.stdout
    assert json.loads((tmp_path / "gate.json").read_text())["exit_status"] == 1
    assert "| size |" in (tmp_path / "gate.md").read_text()
    assert 'type="violated"' in (tmp_path / "gate.xml").read_text()


def test_a_model_against_itself_holds_with_a_wide_margin_and_cannot_tell_with_a_narrow_one(folder: Path) -> None:
    same = ("gate", folder, "--against", folder, "--model", GOOD[0])
    assert counterfoil(*same, "--margin", "10").returncode == 0
    narrow = counterfoil(*same, "--margin", "2")
    assert narrow.returncode == 3
    assert "photos would show that it holds, if nothing changed" in narrow.stdout
