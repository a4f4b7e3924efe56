"""What verification changed, on decisions and answers that are written down."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from click.testing import CliRunner
from statsmodels.stats.proportion import proportion_confint

from command_documents import read_document
from command_line import counterfoil
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.store.workspace import Workspace
from counterfoil.types import Decision, VerificationResult
from counterfoil.verification.accuracy_change import AccuracyChange, measure_effect
from mining_workspace import saved_answers, write_workspace, wrong_on


def decide(workspace: Workspace, edit: str, kept: Collection[int], undecided: Collection[int] = ()) -> None:
    """People's decisions on the pictures of one edit."""
    rows = []
    for stored in workspace.pictures:
        variant = stored.variant
        if variant.edit == edit and variant.level != "0.05":
            photo = int(str(variant.sample_id)[5:8])
            answer = "undecided" if photo in undecided else "yes" if photo in kept else "no"
            rows.append(Decision(variant.id, answer == "yes", {"seen": {answer: 3}}, {"seen": answer}))
    workspace.keep_verified(
        VerificationResult(
            rule="majority",
            questions={"seen": "Seen?"},
            annotators=3,
            agreement={},
            decisions=tuple(rows),
            workspace_digest=workspace.digest,
        )
    )


def mined(folder: Path) -> tuple[Workspace, str, str]:
    """A surrogate that fails on every swap, a target that fails on those of 0 to 5 and on the original of 7."""
    workspace = write_workspace(folder / "workspace")
    swaps = "background-swap"
    surrogate = saved_answers(folder / "surrogate.csv", workspace, wrong_on(swaps, range(8)))
    target = saved_answers(
        folder / "target.csv", workspace, lambda photo, edit, level: (edit == swaps and photo < 6) or
        (edit == "original" and photo == 7)
    )  # fmt: skip
    arguments = ["mine", str(workspace.folder), "--surrogate", surrogate, "--target", target]
    assert CliRunner().invoke(commands, arguments, catch_exceptions=False).exit_code == 0
    return Workspace(workspace.folder), surrogate, target


def row_of(rows: Collection[AccuracyChange], model: str, attribute: str) -> AccuracyChange:
    return next(row for row in rows if (row.model, row.attribute) == (model, attribute))


def test_yields_accuracies_and_drops_with_and_without_verification(tmp_path: Path) -> None:
    workspace, surrogate, target = mined(tmp_path)
    decide(workspace, "background-swap", kept=[0, 1, 6, 7], undecided=[2])
    found = measure_effect(workspace)

    whole, background = found.kept
    assert (whole.decided, whole.undecided, whole.kept) == (8, 1, 4)
    assert background[1:] == whole[1:]
    low, high = proportion_confint(4, 8, method="wilson")
    assert [whole.share.ci_low, whole.share.ci_high] == pytest.approx([100 * low, 100 * high])

    row = row_of(found.changes, target, "background")
    assert not row.surrogate
    assert [row.accuracy_without.value, row.accuracy_with.value] == pytest.approx([25, 50])  # 6, 7 of 8 and of 4
    assert row.accuracy_change.value == pytest.approx(25)
    assert row.accuracy_change.ci_low < 25 < row.accuracy_change.ci_high
    # originals: 7 of 8 right, so 87.5 - 25; of photos 0 1 6 7, 3 of 4 right: 75 - 50
    assert [row.drop_without.value, row.drop_with.value] == pytest.approx([62.5, 25])
    assert row.drop_change.value == pytest.approx(-37.5)
    assert row.drop_with.n == 4

    chose = row_of(found.changes, surrogate, "all")
    assert chose.surrogate
    assert [chose.accuracy_without.value, chose.accuracy_change.value] == [0, 0]
    assert [line.count("(surrogate)") for line in found.lines] == [0, 0, 0, 0, 0, 1]
    assert found.lines[3].startswith(f"{target}, all: accuracy 25.0 % without verification (n = 8), 50.0 % with it (n")
    assert found.lines[4] == f"{target}: fewer than 10 pictures are kept, too few to say anything, of background (4)."
    assert found.lines[0].startswith("People keep 4 of 8 pictures: 50.0 %")


def test_a_surrogate_is_known_by_its_weights_under_another_name(tmp_path: Path) -> None:
    workspace, surrogate, _ = mined(tmp_path)
    decide(workspace, "background-swap", kept=[0, 1])
    copy = tmp_path / "copy.csv"
    copy.write_bytes(Path(surrogate.partition(":")[2]).read_bytes())
    arguments = ["evaluate", str(workspace.folder), "--model", f"predictions:{copy}", "--out", str(tmp_path / "run")]
    assert CliRunner().invoke(commands, arguments, catch_exceptions=False).exit_code == 0
    assert all(row.surrogate for row in measure_effect(workspace, [tmp_path / "run"]).changes)


def test_where_people_keep_everything_nothing_changes(tmp_path: Path) -> None:
    workspace, _, target = mined(tmp_path)
    decide(workspace, "background-swap", kept=range(8))
    row = row_of(measure_effect(workspace).changes, target, "all")
    for found in (row.accuracy_change, row.drop_change):
        assert found.value == 0
        assert found.ci_low < 0 < found.ci_high  # of other photos people might drop some
    line = next(row for row in measure_effect(workspace).lines if row.startswith(f"{target}, all"))
    assert line.endswith("25.0 % with it (n = 8): nothing changes on these photos.")
    document = read_document(counterfoil("verify", "changed", workspace.folder, "--json").stdout, "verify changed")
    assert document["changes"]


def test_where_people_keep_nothing_that_is_said_once(tmp_path: Path) -> None:
    workspace, _, target = mined(tmp_path)
    decide(workspace, "background-swap", kept=[])
    lines = measure_effect(workspace).lines
    assert f"{target}, all: accuracy 25.0 % without verification (n = 8), none with it, since none is kept." in lines
    assert not any("fewer than" in line or "–" in line for line in lines)


def test_mined_pictures_that_wait_for_a_decision_are_counted(tmp_path: Path) -> None:
    workspace, _, _ = mined(tmp_path)
    decide(workspace, "size", kept=range(8))
    found = measure_effect(workspace)
    assert found.waiting == 8
    assert found.lines[-1] == "8 mined pictures have no decision yet."


def test_without_decisions_or_runs_the_next_command_is_named(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace", 2)
    with pytest.raises(UserError, match="counterfoil verify decide"):
        measure_effect(workspace)
    decide(workspace, "background-swap", kept=[0])
    with pytest.raises(UserError, match="counterfoil evaluate"):
        measure_effect(workspace)


def test_a_workspace_that_changed_since_is_refused(tmp_path: Path) -> None:
    workspace, _, _ = mined(tmp_path)
    decide(workspace, "background-swap", kept=[0])
    larger = write_workspace(tmp_path / "workspace", 9)
    with pytest.raises(UserError, match="changed since"):
        measure_effect(larger)


def test_decisions_that_are_none_and_runs_over_other_pictures_are_refused(tmp_path: Path) -> None:
    workspace, _, target = mined(tmp_path)
    workspace.keep_verified(
        VerificationResult(
            rule="majority", questions={}, annotators=0, agreement={}, decisions=(), workspace_digest=workspace.digest
        )
    )
    with pytest.raises(UserError, match="got none yet"):
        measure_effect(workspace)
    decide(workspace, "background-swap", kept=[0, 1])
    with pytest.raises(UserError, match="a run of models over the workspace"):
        measure_effect(workspace, [workspace.folder])
    other = write_workspace(tmp_path / "other", photos=6)  # the same ids, but not all of them
    arguments = ["evaluate", str(other.folder), "--model", target, "--out", str(tmp_path / "run")]
    assert CliRunner().invoke(commands, arguments, catch_exceptions=False).exit_code == 3  # six photos cannot tell
    with pytest.raises(UserError, match="a run of models over the workspace"):
        measure_effect(workspace, [tmp_path / "run"])
