"""Bounds held against intervals: three answers, three exit statuses, and JUnit for the CI."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from command_line import counterfoil
from counterfoil.errors import UserError
from counterfoil.report.gate import Bound, combine_verdicts, judge_accuracies, judge_drops, parse_max_drop
from counterfoil.report.gate_margins import parse_margins
from counterfoil.study.runs import OverallAccuracy
from counterfoil.types import Drop
from run_folders import breaks_on, write_run


def row(low: float, drop: float, high: float, n: int = 60) -> Drop:
    return Drop(
        model="net",
        attribute="background",
        edit="background-swap",
        level="other",
        n=n,
        accuracy_original=90,
        accuracy_control=90,
        accuracy=90 - drop,
        drop=drop,
        ci_low=low,
        ci_high=high,
        drop_vs_control=drop,
        p_value=0.01,
        n_reference=n,
        p_adjusted=0.02,
    )


@pytest.mark.parametrize(
    ("interval", "upper", "lower", "point"),
    [
        ((5.1, 8.0, 11.0), "violated", "violated", "violated"),
        ((1.0, 3.0, 5.0), "holds", "holds", "holds"),
        ((2.0, 6.0, 10.0), "cannot tell", "holds", "violated"),
        ((2.0, 4.0, 6.0), "cannot tell", "holds", "holds"),
    ],
)
def test_the_bound_says_whose_proof_is_asked_for(
    interval: tuple[float, float, float], upper: str, lower: str, point: str
) -> None:
    bounds: tuple[Bound, ...] = ("upper", "lower", "point")
    found = [judge_drops([row(*interval)], [parse_max_drop("background=5")], bound)[0].verdict for bound in bounds]
    assert found == [upper, lower, point]


def test_accuracy_is_judged_from_the_other_side() -> None:
    bounds: tuple[Bound, ...] = ("upper", "lower", "point")
    found = [judge_accuracies([OverallAccuracy("net", 60, 72.0, 65.0, 78.0)], 70, bound)[0].verdict for bound in bounds]
    assert found == ["cannot tell", "holds", "holds"]
    assert judge_accuracies([OverallAccuracy("net", 60, 60.0, 50.0, 69.0)], 70, "upper")[0].verdict == "violated"
    assert judge_accuracies([OverallAccuracy("net", 60, 80.0, 71.0, 88.0)], 70, "upper")[0].verdict == "holds"


def test_too_few_photos_cannot_tell_whatever_the_numbers() -> None:
    (check,) = judge_drops([row(0.0, 0.0, 0.0, n=9)], [parse_max_drop("any=5")], "point")
    assert check.verdict == "cannot tell"
    assert "too few photos: 9" in check.message


def test_a_rule_names_attribute_edit_or_level() -> None:
    assert parse_max_drop("size:0.05=20").applies_to(Drop("net", "size", "size", "0.05", 60, *[0.0] * 9))
    assert not parse_max_drop("size:0.05=20").applies_to(Drop("net", "size", "size", "0.1", 60, *[0.0] * 9))
    assert parse_max_drop("background-swap=1").applies_to(row(0, 0, 0))
    assert not parse_max_drop("any=1").applies_to(Drop("net", "control", "control", "none", 60, *[0.0] * 9))


@pytest.mark.parametrize("text", ["background", "background=much", "=5", "background=nan"])
def test_a_rule_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="expected ATTRIBUTE=POINTS"):
        parse_max_drop(text)


def test_a_violation_outweighs_doubt_and_doubt_outweighs_success() -> None:
    checks = judge_drops([row(1, 2, 3), row(2, 4, 9)], [parse_max_drop("any=5")], "upper")
    assert combine_verdicts(checks) == "cannot tell"
    assert combine_verdicts([*checks, *judge_drops([row(6, 7, 8)], [parse_max_drop("any=5")], "upper")]) == "violated"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", {"net": breaks_on({"background-swap": 20})}, photos=100)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--max-drop", "background=5"], 1, "violated: net, background-swap other: drop 20.0 points [13.3, 28.9]"),
        (["--max-drop", "background=40", "--max-drop", "size:0.05=20"], 0, "holds: net, size 0.05: drop 0.0 points"),
        (["--max-drop", "background=22"], 3, "cannot tell: net, background-swap other"),
        (["--max-drop", "background=22", "--bound", "lower"], 0, "at most 22 is allowed"),
        (["--min-accuracy", "70"], 0, "accuracy on the unedited photos: 100.0 % [96.3, 100.0]"),
        (["--min-accuracy", "99"], 3, "at least 99 is asked for"),
        (["--min-accuracy", "120"], 2, "expected --min-accuracy from 0 to 100, in percent, got 120"),
        (["--min-accuracy", "nan"], 2, "expected --min-accuracy from 0 to 100, in percent, got nan"),
        (["--max-drop", "texture=5"], 2, "expected an attribute or edit of this run, got 'texture'"),
        (["--max-drop", "any=50", "--model", "other"], 2, "expected one of the models net, got 'other'"),
        ([], 2, "expected a bound, got none"),
    ],
)
def test_the_exit_status_says_it_all(run: Path, arguments: list[str], status: int, said: str) -> None:
    done = counterfoil("gate", run, *arguments)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize("texts", [("background=2", "size=1", "background=3"), ("2", "size=1", "3")])
def test_a_second_margin_for_the_same_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"expected one --margin for (background|everything), got two, the second"):
        parse_margins(texts)


def test_an_empty_run_cannot_tell_and_says_so(tmp_path: Path) -> None:
    empty = write_run(tmp_path / "empty", {"net": breaks_on({})}, photos=0)
    done = counterfoil("gate", empty, "--max-drop", "background=5")
    assert done.returncode == 3
    assert "the run is empty" in done.stdout


def test_junit_counts_failures_and_errors(run: Path, tmp_path: Path) -> None:
    done = counterfoil("gate", run, "--max-drop", "any=3", "--junit", tmp_path / "gate.xml")
    assert done.returncode == 1
    (suite,) = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "2")
    (failure,) = suite.iter("failure")
    assert "drop 20.0 points" in str(failure.get("message"))
    assert [case.get("name") for case in suite] == ["background-swap other", "size 0.2", "size 0.05"]
