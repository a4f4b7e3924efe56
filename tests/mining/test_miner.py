"""From a workspace with planted failures to what is kept of it, through the command."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from statsmodels.stats.proportion import proportion_confint

from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.store.workspace import Workspace
from mining_workspace import Counting, either, saved_answers, write_workspace, wrong_on
from verify_browser import chromium


def mine(workspace: Workspace, *arguments: str) -> list[str]:
    done = CliRunner().invoke(commands, ["mine", str(workspace.folder), *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def refused(workspace: Workspace, *arguments: str) -> str:
    with pytest.raises(UserError) as told:
        mine(workspace, *arguments)
    return str(told.value)


def found(workspace: Workspace) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((workspace.folder / "mining" / "mining.json").read_text())
    return record


def pictures(workspace: Workspace, edit: str, photos: list[int], level: str = "") -> set[str]:
    """The ids of the pictures of some photos under one edit."""
    names = {f"fish/{photo:03d}.jpg" for photo in photos}
    variants = [stored.variant for stored in workspace.pictures]
    return {v.id for v in variants if v.edit == edit and v.sample_id in names and level in ("", v.level)}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, dict[str, str]]:
    """Eight photos; a and b share the swaps of 0 to 3, a alone fails on 4, b alone on size 0.05 of 0 and 1.

    The target fails on the swaps of 0, 1, 2 and 7, and has the original of 3 wrong. Everybody fails without the object.
    """
    folder = tmp_path_factory.mktemp("mine")
    workspace = write_workspace(folder / "workspace")
    removed = wrong_on("object-removed", range(8))
    faults = {
        "a": either(removed, wrong_on("background-swap", [0, 1, 2, 3, 4])),
        "b": either(removed, wrong_on("background-swap", [0, 1, 2, 3]), wrong_on("size", [0, 1], "0.05")),
        "target": either(removed, wrong_on("background-swap", [0, 1, 2, 7]), wrong_on("original", [3])),
    }
    return workspace, {name: saved_answers(folder / f"{name}.csv", workspace, wrong) for name, wrong in faults.items()}


def test_what_all_surrogates_fail_on_is_kept_and_nothing_else(planted: tuple[Workspace, dict[str, str]]) -> None:
    workspace, models = planted
    lines = mine(workspace, "--surrogate", models["a"], "--surrogate", models["b"], "--target", models["target"])
    mined = workspace.mined
    assert mined is not None
    assert set(mined.kept) == pictures(workspace, "background-swap", [0, 1, 2, 3])
    assert mined.rule == "both surrogates are wrong on the picture and right on the original"
    assert list(mined.surrogates) == [models["a"], models["b"]]
    assert all(len(digest) == 64 for digest in mined.surrogates.values())
    assert mined.workspace_digest == workspace.digest
    assert lines[-3] == f"kept: 4 pictures, in {workspace.folder / 'mined.json'}"
    assert (workspace.folder / "mining" / "mining.html").is_file()


def test_the_report_holds_the_numbers_of_the_planted_case(planted: tuple[Workspace, dict[str, str]]) -> None:
    workspace, models = planted
    mine(workspace, "--surrogate", models["a"], "--surrogate", models["b"], "--target", models["target"])
    record = found(workspace)
    assert (record["photos"], record["candidates"], record["kept"]) == (8, 24, 4)
    assert record["settings"] == {"at least 2": 4, "at least 1": 7}
    yields = {(row["attribute"], row["edit"], row["level"]): row for row in record["yields"]}
    swapped = yields["background", "background-swap", "other"]
    assert (swapped["candidates"], swapped["kept"]) == (8, 4)
    low, high = proportion_confint(4, 8, method="wilson")
    assert [swapped["share"][end] for end in ("ci_low", "ci_high")] == pytest.approx([100 * low, 100 * high], abs=1e-3)
    assert yields["size", "all", "all"]["kept"] == 0

    (transfer,) = record["transfers"]
    assert transfer["unseen"]
    assert transfer["failing"]["value"] == pytest.approx(75)  # 0, 1, 2 of 0 to 3
    assert transfer["base"]["value"] == pytest.approx(100 * 4 / 24, abs=1e-3)
    assert transfer["more"]["value"] == pytest.approx(75 - 100 * 4 / 24, abs=1e-3)
    assert transfer["lost"]["value"] == pytest.approx(100)  # photo 3 was wrong before
    assert transfer["lost_base"]["value"] == pytest.approx(100 * 4 / 21, abs=1e-3)
    page = (workspace.folder / "mining" / "mining.html").read_text().split('id="transfers"')[1].split("</table>")[0]
    shown = [float(value) for value in re.findall(r'data-value="([^"]+)"', page)[-3:]]  # the last row is the family's
    (family,) = record["families"]
    more = [family["lost_more"][end] for end in ("value", "ci_low", "ci_high")]
    assert shown == pytest.approx(more, abs=1e-3)

    curves = {curve["model"]: curve["points"] for curve in record["curves"]}
    alone, both = curves[models["target"]]
    # a alone keeps five swaps, the target is right on 3 and 4; b keeps four swaps and two sizes, right on 3 of 6
    assert alone["accuracy"]["value"] == pytest.approx(100 * (2 / 5 + 3 / 6) / 2, abs=1e-3)
    assert both["accuracy"]["value"] == pytest.approx(25)
    assert [row["share"] for row in record["sizes"]] == pytest.approx([100 * (5 + 6) / 48, 100 * 4 / 24], abs=1e-3)

    first, second = record["biases"]
    assert first["chosen_by_others"]["value"] == pytest.approx(100 * 2 / 6, abs=1e-3)  # b's choice: a is right on sizes
    assert second["chosen_by_others"]["value"] == pytest.approx(100 * 1 / 5, abs=1e-3)  # a's choice: b is right on 4
    # the target is right on 3 of 6 of b's choice and on 1 of 4 of the whole: 25 points are difficulty, not bias
    assert first["adjusted"]["value"] == pytest.approx(100 * 2 / 6 - 25, abs=1e-3)
    assert record["wrong_answers"]["common"]["value"] == pytest.approx(100)


def test_the_table_lists_every_candidate_with_every_models_answer(planted: tuple[Workspace, dict[str, str]]) -> None:
    workspace, models = planted
    mine(workspace, "--surrogate", models["a"], "--surrogate", models["b"], "--target", models["target"])
    rows = list(csv.DictReader(io.StringIO((workspace.folder / "mining" / "mining.csv").read_text())))
    assert len(rows) == 24
    assert {row["attribute"] for row in rows} == {"background", "size"}  # no original, control or missing object
    kept = [row for row in rows if row["kept"] == "1"]
    assert [row[f"surrogate {models['a']}"] for row in kept] == ["0"] * 4
    assert [row[f"target {models['target']}"] for row in kept] == ["0", "0", "0", "1"]


def test_mining_again_writes_the_same_bytes(planted: tuple[Workspace, dict[str, str]]) -> None:
    workspace, models = planted
    arguments = ("--surrogate", models["a"], "--surrogate", models["b"], "--target", models["target"])
    texts = []
    for _ in range(2):
        mine(workspace, *arguments)
        names = ("mining/mining.json", "mining/mining.csv", "mining/mining.html", "mined.json")
        texts.append([(workspace.folder / name).read_bytes() for name in names])
    assert texts[0] == texts[1]


def test_no_shared_failure_is_said_with_what_fewer_surrogates_would_keep(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")
    models = [
        saved_answers(tmp_path / f"{place}.csv", workspace, wrong_on("size", [place], "0.05")) for place in range(3)
    ]
    asked = [argument for model in models for argument in ("--surrogate", model)]
    told = refused(workspace, *asked, "--at-least", "2")
    assert "at least 3: 0, at least 2: 0, at least 1: 3" in told
    assert "lower --at-least" in told
    assert "\n" not in told
    assert workspace.mined is None
    assert len(list((workspace.folder / "mining" / "run").glob("*/predictions/*.parquet"))) == 3
    assert "3 of 24 pictures (8 photos) are chosen" in mine(workspace, *asked, "--at-least", "1")[3]
    told = refused(workspace, *asked, "--below", "0.2")  # one wrong at 0.25, two right at 0.75: a mean of 0.58
    assert "below 0.5: 0, below 0.7: 3" in told
    assert "raise --below" in told


def test_a_target_that_is_added_later_is_the_only_one_asked(planted: tuple[Workspace, dict[str, str]]) -> None:
    workspace, models = planted
    asked = ("--surrogate", "python:mining_workspace:counting", "--surrogate", models["a"], "--at-least", "1")
    Counting.shown = 0
    mine(workspace, *asked)
    assert Counting.shown == 48 + 8  # the originals once more, to check how the model is set up
    mine(workspace, *asked, "--target", models["target"])
    assert Counting.shown == 48 + 8
    assert {row["role"] for row in found(workspace)["models"]} == {"surrogate", "target"}


def test_mining_again_after_it_was_finished_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")
    model = saved_answers(tmp_path / "answers.csv", workspace, wrong_on("size", [0]))
    written = []
    for _ in range(2):  # the second knows which models the first one asked
        mine(workspace, "--surrogate", model)
        runs = {path: path.read_bytes() for path in (workspace.folder / "mining" / "run").glob("*/*.json")}
        written.append(written_files(workspace.folder) | runs)
    assert any(path.name == "run.json" for path in runs)
    assert written[0] == written[1]


def test_mining_that_was_stopped_and_goes_on_writes_the_same_files(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")
    models = [saved_answers(tmp_path / f"{name}.csv", workspace, wrong_on("size", [name])) for name in (0, 1)]
    asked = ["--at-least", "1", *(argument for model in models for argument in ("--surrogate", model))]
    mine(workspace, *asked)
    before = written_files(workspace.folder)
    runs = sorted((workspace.folder / "mining" / "run").iterdir())
    shutil.rmtree(runs[1])  # as a kill leaves it: one surrogate not begun, the other half way, no result
    for path in (*sorted((runs[0] / "work" / "parts").iterdir())[::2], runs[0] / "variants.parquet"):
        path.unlink()
    for name in ("mined.json", "mining/mining.json", "mining/mining.csv", "mining/mining.html", "checksums.json"):
        (workspace.folder / name).unlink(missing_ok=True)
    mine(workspace, *asked)
    assert written_files(workspace.folder) == before


def written_files(folder: Path) -> dict[str, bytes]:
    """All files but the parts, which say when they were made, and checksums of records that name the session."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "work" not in path.parts and path.name not in ("run.json", "checksums.json")
    }


def test_a_model_that_changed_since_is_refused_with_the_folder_to_remove(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")
    model = saved_answers(tmp_path / "a.csv", workspace, wrong_on("size", [0]))
    mine(workspace, "--surrogate", model)
    saved_answers(tmp_path / "a.csv", workspace, wrong_on("size", [1]))
    told = refused(workspace, "--surrogate", model)
    assert "--out" not in told
    folder = re.search(r"remove the folder (\S+) to ask it anew", told)
    assert folder is not None
    shutil.rmtree(folder[1])
    mine(workspace, "--surrogate", model)
    assert workspace.mined is not None
    assert set(workspace.mined.kept) == pictures(workspace, "size", [1])


def test_a_surrogate_cannot_be_a_target_under_any_name(
    planted: tuple[Workspace, dict[str, str]], tmp_path: Path
) -> None:
    workspace, models = planted
    assert "is a surrogate too" in refused(workspace, "--surrogate", models["a"], "--target", models["a"])
    copy = tmp_path / "copy.csv"
    copy.write_bytes(Path(models["a"].partition(":")[2]).read_bytes())
    told = refused(workspace, "--surrogate", models["a"], "--target", f"predictions:{copy}")
    assert "has the weights of the surrogate" in told
    told = refused(workspace, "--surrogate", models["a"], "--surrogate", f"predictions:{copy}")
    assert "expected each surrogate once" in told


def test_pictures_that_cannot_be_read_are_said_and_asked_about_when_they_are_back(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")
    surrogate = saved_answers(tmp_path / "a.csv", workspace, wrong_on("size", [0, 1]))
    pictures_there, pictures_away = workspace.folder / "pictures", tmp_path / "away"
    shutil.copytree(pictures_there, pictures_away)
    for path in pictures_there.rglob("*.png"):
        path.unlink()
    assert "could not be read, the first because" in refused(workspace, "--surrogate", surrogate)
    shutil.copytree(pictures_away, pictures_there, dirs_exist_ok=True)
    mine(workspace, "--surrogate", surrogate)
    assert found(workspace)["kept"] == 4


def test_few_kept_pictures_that_all_fail_leave_the_difference_uncertain(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")
    surrogate = saved_answers(tmp_path / "a.csv", workspace, wrong_on("background-swap", [0, 1, 2]))
    target = saved_answers(tmp_path / "t.csv", workspace, wrong_on("background-swap", [0, 1, 2, 3, 4, 5]))
    mine(workspace, "--surrogate", surrogate, "--target", target)
    (row,) = found(workspace)["transfers"]
    (kept_low, _), (_, rest_high) = (proportion_confint(n, m, method="wilson") for n, m in ((3, 3), (3, 21)))
    assert row["more"]["value"] == pytest.approx(100 - 100 * 6 / 24, abs=1e-3)
    assert row["failing"]["ci_low"] == pytest.approx(100 * kept_low, abs=1e-3)
    # seven eighths of the difference to the 21 others; their interval is Wilson's or wider, as they come in photos
    down = math.hypot(1 - kept_low, rest_high - 3 / 21)
    assert row["more"]["ci_low"] <= 87.5 * (1 - 3 / 21 - down) + 0.01
    assert row["more"]["ci_high"] > row["more"]["value"] + 5


def test_one_photo_is_too_few_and_no_interval_leaves_what_is_possible(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace", photos=1)
    everything = either(wrong_on("size", [0]), wrong_on("background-swap", [0]))
    faults = {"a": everything, "b": wrong_on("size", [0]), "c": everything, "t": wrong_on("size", [0], "0.05")}
    models = {name: saved_answers(tmp_path / f"{name}.csv", workspace, wrong) for name, wrong in faults.items()}
    surrogates = [text for name in "abc" for text in ("--surrogate", models[name])]
    told = "\n".join(mine(workspace, *surrogates, "--at-least", "2", "--target", models["t"]))
    assert "3 of 3 pictures (1 photo) are chosen, 100.0 % [0.0, 100.0]" in told
    assert "of the kept pictures. All pictures are kept, so there is nothing to compare with." in told
    assert "The kept pictures are from 1 photo: too few to speak for other photos." in told
    (row,) = found(workspace)["transfers"]
    assert row["more"]["value"] is None
    for bias in found(workspace)["biases"]:
        for estimate in (bias["bias"], bias["adjusted"]):
            assert -100 <= estimate["ci_low"] <= estimate["value"] <= estimate["ci_high"] <= 100


def test_one_surrogate_without_a_target_is_told_that_nothing_tells_of_others(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")
    told = mine(workspace, "--surrogate", saved_answers(tmp_path / "a.csv", workspace, wrong_on("size", range(8))))
    assert any(line.startswith("Whether its failures carry over to other models was not measured") for line in told)
    assert not any("too few" in line or "left out of choosing" in line for line in told)


def test_the_condition_on_the_original_is_named_only_where_dropping_it_would_help(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace", photos=2)
    always = saved_answers(tmp_path / "a.csv", workspace, lambda *_: True)
    never = saved_answers(tmp_path / "b.csv", workspace, lambda *_: False)
    assert "or try --original none, which keeps 6 (" in refused(workspace, "--surrogate", always)
    assert "try --original none" not in refused(workspace, "--surrogate", never)


def test_where_nothing_has_an_original_the_condition_falls_and_that_is_said(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace", originals=False)
    model = saved_answers(tmp_path / "a.csv", workspace, wrong_on("background-swap", [0, 1]))
    lines = mine(workspace, "--surrogate", model)
    assert "No picture has an original, so models need not be right on one." in lines
    mined = workspace.mined
    assert mined is not None
    assert mined.rule == "the surrogate is wrong on the picture, right on the original or not"
    assert set(mined.kept) == pictures(workspace, "background-swap", [0, 1])


def test_an_unscored_answer_is_no_failure_and_is_counted(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")
    swaps = wrong_on("background-swap", range(8))
    silent = wrong_on("background-swap", [0, 1, 2])
    model = saved_answers(tmp_path / "a.csv", workspace, swaps, unanswered=silent)
    lines = mine(workspace, "--surrogate", model)
    mined = workspace.mined
    assert mined is not None
    assert set(mined.kept) == pictures(workspace, "background-swap", [3, 4, 5, 6, 7])
    assert any(line.startswith("3 answers of predictions:") and "do not count" in line for line in lines)


def test_balancing_keeps_equally_many_of_each_and_says_so(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace", 10)
    faults = either(wrong_on("background-swap", range(10)), wrong_on("size", [0, 2, 4], "0.05"))
    model = saved_answers(tmp_path / "a.csv", workspace, faults)
    mine(workspace, "--surrogate", model, "--balance", "attribute")
    mined = workspace.mined
    assert mined is not None
    kept = workspace.chosen(mined.kept)
    assert [sum(e.variant.attribute == name for e in kept) for name in ("background", "size")] == [3, 3]
    assert mined.rule.endswith("balanced, at most 3 of each attribute")
    assert found(workspace)["chosen"] == 13
    mine(workspace, "--surrogate", model, "--balance", "both", "--most-per-group", "2")
    cells = [(e.variant.attribute, e.variant.label) for e in workspace.chosen((workspace.mined or mined).kept)]
    assert sorted(cells.count(cell) for cell in set(cells)) == [2, 2, 2]
    assert "expected --balance" in refused(workspace, "--surrogate", model, "--most-per-group", "2")


def test_targets_are_grouped_by_family_and_a_family_can_be_named(planted: tuple[Workspace, dict[str, str]]) -> None:
    workspace, models = planted
    asked = ("--surrogate", models["a"], "--target", models["target"], "--target", models["b"])
    named = [argument for name in ("target", "b") for argument in ("--family", f"Fishers={models[name]}")]
    mine(workspace, *asked, *named, "--family", f"Fishers={models['a']}")
    (family,) = found(workspace)["families"]
    assert (family["name"], family["unseen"]) == ("Fishers", False)
    # on a's five swaps the target fails on three, b on four: seven of ten
    assert family["failing"]["value"] == pytest.approx(70)
    assert family["failing"]["n"] == 10
    assert "got 'nonsense'" in refused(workspace, *asked, "--family", "nonsense")
    assert "address of a model, got 'x'" in refused(workspace, *asked, "--family", "Fishers=x")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--at-least", "3"], "--at-least of at most 1, the number of surrogates, got 3"),
        (["--at-least", "0"], "at least 1 failing surrogate, got 0"),
        (["--at-least", "1", "--below", "0.5"], "got --at-least and --below"),
        (["--rule", "all", "--at-least", "1"], "--rule all with no number, got --at-least"),
        (["--rule", "mean-probability"], "--below T alone, got no number"),
        (["--below", "2"], "at most 1, got 2"),
    ],
)
def test_contradictory_rules_are_refused(
    planted: tuple[Workspace, dict[str, str]], arguments: list[str], told: str
) -> None:
    workspace, models = planted
    assert told in refused(workspace, "--surrogate", models["a"], *arguments)


def test_the_page_is_one_file_and_runs_no_strangers_script(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace")
    model = saved_answers(tmp_path / "a.csv", workspace, wrong_on("background-swap", [0, 1]))
    other = saved_answers(tmp_path / "b.csv", workspace, wrong_on("size", [0, 1]))
    mine(workspace, "--surrogate", model, "--target", other, "--family", f"<script>alert(1)</script>={other}")
    page = (workspace.folder / "mining" / "mining.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", page)
    assert page.count("data:image/jpeg") == 4  # two kept pictures beside their originals


@pytest.mark.browser
def test_the_page_fits_wide_and_narrow_screens(planted: tuple[Workspace, dict[str, str]]) -> None:
    from playwright.sync_api import sync_playwright

    workspace, models = planted
    mine(workspace, "--surrogate", models["a"], "--surrogate", models["b"], "--target", models["target"])
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        for width in (1280, 390):
            page = browser.new_page(viewport={"width": width, "height": 900})
            troubles: list[str] = []
            page.on("console", lambda message: troubles.append(message.text))  # noqa: B023  # one page, one list
            page.goto((workspace.folder / "mining" / "mining.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == width
            box = page.locator(".scroll:has(#yields)")
            assert box.evaluate("box => box.scrollHeight <= box.clientHeight"), "rows by level are hidden"
            assert troubles == []
        browser.close()


def test_surrogates_of_one_family_are_told_what_their_bias_leaves_out(
    planted: tuple[Workspace, dict[str, str]],
) -> None:
    workspace, models = planted
    asked = ("--surrogate", models["a"], "--surrogate", models["b"])
    assert not any("of one family" in line for line in mine(workspace, *asked))
    named = [argument for name in ("a", "b") for argument in ("--family", f"Fishers={models[name]}")]
    assert any(f"{models['a']} and {models['b']} are of one family (Fishers)" in line
               for line in mine(workspace, *asked, *named))  # fmt: skip


def test_surrogates_that_must_all_fail_are_right_on_nothing_by_construction(
    planted: tuple[Workspace, dict[str, str]],
) -> None:
    workspace, models = planted
    asked = ("--surrogate", models["a"], "--surrogate", models["b"])
    mine(workspace, *asked)
    first = found(workspace)["biases"][0]
    assert [first["chosen_by_all"][end] for end in ("value", "ci_low", "ci_high")] == [0, 0, 0]
    assert first["bias"] == first["chosen_by_others"]  # nothing uncertain is taken off
    mine(workspace, *asked, "--at-least", "1")
    first = found(workspace)["biases"][0]
    assert first["chosen_by_all"]["ci_high"] > first["chosen_by_all"]["value"]
    assert first["bias"]["ci_low"] < first["bias"]["value"] < first["bias"]["ci_high"]


def test_a_surrogate_without_probabilities_cannot_choose_by_their_mean(
    planted: tuple[Workspace, dict[str, str]], tmp_path: Path
) -> None:
    workspace, models = planted
    text = Path(models["a"].partition(":")[2]).read_text().splitlines()
    bare = tmp_path / "bare.csv"
    bare.write_text("\n".join(line.rpartition(",")[0] for line in text if not line.endswith(",0.25")) + "\n")
    told = refused(workspace, "--surrogate", f"predictions:{bare}", "--surrogate", models["b"], "--below", "0.5")
    assert "gives none; use --at-least instead" in told


def test_a_workspace_that_was_moved_is_not_asked_again(tmp_path: Path) -> None:
    asked = ("--surrogate", "python:mining_workspace:counting", "--original", "none")
    Counting.shown = 0
    mine(write_workspace(tmp_path / "workspace", 4), *asked)
    (tmp_path / "workspace").rename(tmp_path / "moved")
    mine(Workspace(tmp_path / "moved"), *asked)
    assert Counting.shown == 7 * 4


def test_a_workspace_of_other_pictures_is_asked_again(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace", 4)
    asked = ("--surrogate", "python:mining_workspace:counting")
    Counting.shown = 0
    mine(workspace, *asked, "--original", "none")
    larger = write_workspace(tmp_path / "workspace", 6)
    mine(larger, *asked, "--original", "none")
    assert Counting.shown == 7 * 4 + 7 * 6
