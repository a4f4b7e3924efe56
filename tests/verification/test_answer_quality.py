"""Answers that are worth little, pictures that were overwritten, totals that hold: by real HTTP."""

from __future__ import annotations

import math
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command_documents import read_document
from command_line import counterfoil
from counterfoil.cli.verify_commands import describe_decisions
from counterfoil.errors import UserError
from counterfoil.store.workspace import Workspace
from counterfoil.types import AnnotatorRecord, VerificationResult
from counterfoil.verification.answer_quality import find_quality_warnings
from verify_site import Browser, answer_everything, build_workspace, command, hosted, questions_file

WORK = 14  # edited pictures: seven of each photo


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_workspace(tmp_path_factory.mktemp("built"), 2)


@pytest.fixture
def workspace(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "workspace"))


def verified(workspace: Path) -> VerificationResult:
    found = Workspace(workspace).verified
    assert found is not None
    return found


def press_anything(browser: Browser, seed: str) -> None:
    """Somebody who does not look."""
    keys = random.Random(seed)
    while tasks := browser.tasks(10):
        for task in tasks:
            answers = {question: keys.choice(("yes", "no", "unsure")) for question in ("recognisable", "only")}
            assert browser.answer(task, answers, seconds=0.2).status_code == 200


def test_people_who_press_anything_are_warned_of_and_what_the_controls_say_is_kept(
    workspace: Path, tmp_path: Path
) -> None:
    with hosted(workspace, questions_file(tmp_path, control_share=0.5, lease_minutes=60)) as site:
        for name in ("Ada", "Ben", "Cy"):
            press_anything(site.annotator(name), name)
    done = command("decide", workspace, "--fewest", 2)
    assert done.exit_code == 0, done.output
    warnings = [line for line in done.output.splitlines() if line.startswith("WARNING: ")]
    assert "--least-seconds 0.5" in warnings[-1]
    assert "median 0.20 s, 0.20 s, 0.20 s per picture" in warnings[-1]
    assert any("may be no better than chance (Krippendorff's alpha" in line for line in warnings)
    found = verified(workspace)
    assert [f"WARNING: {doubt}" for doubt in found.doubts] == warnings
    assert [row.median_seconds for row in found.records] == [0.2] * 3
    assert all(row.controls > 0 and row.controls_right <= row.controls for row in found.records)
    assert "Ada" not in (workspace / "verified.json").read_text()
    printed = counterfoil("verify", "decide", workspace, "--fewest", 2, "--json").stdout
    assert read_document(printed, "verify decide")["pictures"] == WORK
    slow = command("decide", workspace, "--least-seconds", 0.5)
    assert isinstance(slow.exception, UserError)  # nobody is left


def test_careful_people_are_not_doubted() -> None:
    people = [
        AnnotatorRecord(answers=100, controls=30, controls_right=29, repeats=5, repeats_same=5, median_seconds=2.0),
        AnnotatorRecord(answers=100, controls=4, controls_right=2, repeats=0, repeats_same=0, median_seconds=0.0),
    ]  # few controls; imported
    assert find_quality_warnings(people, {"seen": {"krippendorff_alpha_low": 0.21}, "only": {}}) == ()


def test_people_with_a_few_controls_each_are_judged_together() -> None:
    people = [
        AnnotatorRecord(answers=40, controls=3, controls_right=1, repeats=0, repeats_same=0, median_seconds=2.0),
        AnnotatorRecord(answers=40, controls=3, controls_right=1, repeats=0, repeats_same=0, median_seconds=2.0),
    ]
    (doubt,) = find_quality_warnings(people, {})
    assert doubt.startswith("2 of 2 annotators got less than 70 % of the hidden controls right (1 of 3, 1 of 3)")


@pytest.mark.parametrize(
    ("record", "alpha_low", "warning"),
    [
        (
            AnnotatorRecord(answers=100, controls=10, controls_right=6, repeats=5, repeats_same=5, median_seconds=2.0),
            0.5,
            "1 of 1 annotators got less than 70 % of the hidden controls",
        ),
        (
            AnnotatorRecord(answers=100, controls=10, controls_right=9, repeats=5, repeats_same=5, median_seconds=0.4),
            0.5,
            "1 of 1 annotators answered faster than anybody can look",
        ),
        (
            AnnotatorRecord(answers=100, controls=10, controls_right=9, repeats=5, repeats_same=5, median_seconds=2.0),
            0.2,
            "agreement on 'seen' may be no better than chance",
        ),
    ],
)
def test_each_doubt_is_one_sentence(record: AnnotatorRecord, alpha_low: float, warning: str) -> None:
    found = find_quality_warnings([record], {"seen": {"krippendorff_alpha_low": alpha_low}})
    assert len(found) == 1
    assert found[0].startswith(warning)
    left_out = AnnotatorRecord(
        answers=100, controls=10, controls_right=0, repeats=0, repeats_same=0, median_seconds=0.1, counted=False
    )
    assert find_quality_warnings([record, left_out], {"seen": {"krippendorff_alpha_low": alpha_low}}) == found


def test_agreement_over_few_pictures_says_why_it_has_no_interval_and_knows_no_negative_zero() -> None:
    ends = {f"{name}{end}": math.nan for name in ("percent_agreement", "cohen_kappa") for end in ("_low", "_high")}
    alone = {"percent_agreement": 50.0, "cohen_kappa": -0.001, "pictures": 2.0, **ends}
    none = {
        f"{name}{end}": math.nan for name in ("fleiss_kappa", "krippendorff_alpha") for end in ("", "_low", "_high")
    }
    lines = list(
        describe_decisions(
            VerificationResult(
                rule="majority",
                questions={},
                annotators=2,
                agreement={"seen": {**alone, **none}},
                decisions=(),
                workspace_digest="",
            ),
            2,
            {},
            0,
        )
    )
    assert "percent 50.00 (no interval), Cohen's kappa 0.00 (no interval), Fleiss' kappa –," in lines[2]
    assert [line.split(":")[0].strip() for line in lines[3:]] == ["–", "no interval"]


def test_a_picture_that_was_overwritten_is_not_shown_and_not_decided_on(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace, questions_file(tmp_path, annotators=1, control_share=0)) as site:
        ada = site.annotator("Ada")
        tasks = ada.tasks(2)
        before = ada.http.get(tasks[0]["picture"])
        assert before.status_code == 200
        for stored in Workspace(workspace).pictures:
            path = workspace / stored.file
            if path.read_bytes() == before.content:
                pixels = np.asarray(Image.open(path)).copy()
                pixels[0, 0] = 255 - pixels[0, 0]
                Image.fromarray(pixels).save(path)
        gone = ada.http.get(tasks[0]["picture"])
        assert (gone.status_code, "overwritten" in gone.text) == (404, True)
        assert ada.http.get(tasks[1]["picture"]).status_code == 200
        answer_everything(ada)
        refused = command("decide", workspace)
        assert isinstance(refused.exception, UserError)
        assert "was overwritten since it was built" in str(refused.exception)
    assert Workspace(workspace).verified is None


def test_files_written_again_with_the_same_pixels_are_decided_on(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace, questions_file(tmp_path, annotators=1, control_share=0)) as site:
        answer_everything(site.annotator("Ada"))
    for path in (workspace / "pictures").rglob("*.png"):
        Image.open(path).copy().save(path, compress_level=1)
    assert command("decide", workspace).exit_code == 0


def test_a_last_word_decides_on_a_picture_whose_annotators_are_all_left_out(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace, questions_file(tmp_path, annotators=1, control_share=0)) as site:
        ada, ben = site.annotators(["Ada", "Ben"])
        ben.tasks(1)  # both are at work, so that each gets a half
        answer_everything(ada)
        answer_everything(ben, {"recognisable": "no", "only": "yes"})
        admin = site.administrator()
        for picture in range(1, WORK + 1):
            for question in ("recognisable", "only"):
                word = {"id": picture, "question": question, "answer": "yes"}
                assert admin.post("/api/admin/adjudicate", word).status_code == 200
        admin.post("/api/admin/exclude", {"annotator": "Ada", "excluded": True, "reason": "asleep"})
        assert admin.http.get("/api/admin/summary").json()["decisions"]["kept"] == WORK
    assert f"kept {WORK} of {WORK} pictures" in command("decide", workspace).output
    alone = [row for row in verified(workspace).decisions if row.answers == {"recognisable": {}, "only": {}}]
    assert len(alone) == WORK // 2


def test_the_total_that_an_annotator_sees_holds_from_the_first_answer_to_the_last(
    workspace: Path, tmp_path: Path
) -> None:
    with hosted(workspace, questions_file(tmp_path, control_share=0.2)) as site:
        ada = site.annotator("Ada")
        seen = []
        while tasks := ada.tasks(5):
            for task in tasks:
                seen.append(ada.answer(task).json()["progress"])
        totals = {row["total"] for row in seen}
    assert len(seen) > WORK  # with hidden controls among them
    assert totals == {len(seen)}
