"""The whole way on demo photos: build, mine, three people in real Chromium, decide, freeze, check, evaluate, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from counterfoil.cli import commands, main
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.model_loaders import load_model
from counterfoil.store.parquet import read_table
from verify_browser import Server, administrator, all_sent, at_work, chromium, opened, press

pytestmark = pytest.mark.browser

SURROGATES = ("embedded:efficientnet-lite0", "embedded:efficientnet-lite1")
UNSEEN = "embedded:pp-lcnetv2"
RECIPE = """
about: A few edits that networks fail on.
working_size: 256
judge_fills: false
edits:
  - edit: control
  - edit: background-swap
  - edit: texture
  - {edit: size, settings: {rate: 0.05}}
"""


def counterfoil(*arguments: object) -> str:
    done = CliRunner().invoke(commands, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def refused(arguments: list[object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that must fail says."""
    monkeypatch.setattr("sys.argv", ["counterfoil", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code not in (0, None)
    told = capsys.readouterr()
    return told.out + told.err


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Demo photos, edited, and of them what two networks fail on."""
    folder = tmp_path_factory.mktemp("way")
    (folder / "recipe.yaml").write_text(RECIPE)
    made = folder / "workspace"
    counterfoil("build", "--images", "demo:", "--limit", 8, "--recipe", folder / "recipe.yaml", "--out", made)
    chosen = [part for name in SURROGATES for part in ("--surrogate", name)]
    counterfoil("mine", made, *chosen, "--at-least", 1)
    return made


@pytest.fixture(scope="module")
def mined(workspace: Path) -> dict[str, str]:
    """Id to class of what mining kept."""
    table = read_table(workspace / "variants.parquet")
    kept = set(json.loads((workspace / "mined.json").read_text())["kept"])
    return {variant: label for variant, label in zip(table["id"], table["label"], strict=True) if variant in kept}


@pytest.fixture(scope="module")
def doubted(mined: dict[str, str]) -> str:
    """The class that two of three people will not recognise."""
    assert len(set(mined.values())) > 1, "the mined pictures have to be of several classes for this test"
    return sorted(mined.values())[0]


@pytest.fixture(scope="module")
def verified(workspace: Path, doubted: str) -> Path:
    """The workspace after three people answered in Chromium and the majority decided."""
    server = Server(workspace)
    server.start()
    try:
        with sync_playwright() as playwright:
            browser = chromium(playwright)
            board = administrator(browser, server)
            for name, doubts in (("Ann", True), ("Ben", True), ("Cleo", False)):
                answer_by_class(at_work(browser, board.invite(name)), imagenet1k().name_of(doubted) if doubts else "")
            board.page.reload()
            board.page.wait_for_function(
                "() => /^(\\d+) of \\1 answers/.test(document.getElementById('lead').innerText)"
            )
            browser.close()
    finally:
        server.kill()
    counterfoil("verify", "decide", workspace)
    return workspace


def answer_by_class(page: Page, doubted: str) -> None:
    """No to the first question about one class, yes to everything else."""
    while True:
        page.wait_for_function("() => current !== null || document.getElementById('waiting').innerText.includes('all')")
        if page.evaluate("current === null"):
            break
        press(page, "ny" if page.inner_text("#class-name") == doubted else "yy")
    all_sent(page)


@pytest.fixture(scope="module")
def benchmark(verified: Path) -> Path:
    out = verified.parent / "benchmark"
    counterfoil("freeze", verified, "--name", "whole-way", "--version", "1.0.0", "--out", out)
    return out


@pytest.fixture(scope="module")
def run(benchmark: Path) -> Path:
    out = benchmark.parent / "run"
    counterfoil("evaluate", benchmark, "--model", UNSEEN, "--out", out)
    return out


def test_the_majority_of_three_people_decides(verified: Path, mined: dict[str, str], doubted: str) -> None:
    decisions = json.loads((verified / "verified.json").read_text())["decisions"]
    assert {row["variant_id"] for row in decisions} == set(mined)
    for row in decisions:
        assert row["kept"] == (mined[row["variant_id"]] != doubted)
        assert sum(row["answers"]["recognisable"].values()) == 3
    assert any(row["kept"] for row in decisions)


def test_the_benchmark_holds_what_was_mined_and_confirmed(benchmark: Path, mined: dict[str, str], doubted: str) -> None:
    manifest = read_table(benchmark / "manifest.parquet")
    test = {variant for variant, split in zip(manifest["id"], manifest["split"], strict=True) if split == "test"}
    assert test == {variant for variant, label in mined.items() if label != doubted}
    record = json.loads((benchmark / "benchmark.json").read_text())
    assert set(record["surrogates"]) == set(SURROGATES)
    assert "whole" in counterfoil("check", benchmark)


def test_one_flipped_bit_is_named_and_not_evaluated(
    benchmark: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = sorted((benchmark / "data" / "test").rglob("*.png"))[0]
    before = picture.read_bytes()
    picture.write_bytes(before[:-20] + bytes([before[-20] ^ 1]) + before[-19:])
    try:
        assert picture.name in refused(["check", benchmark], monkeypatch, capsys)
        asked = ["evaluate", benchmark, "--model", UNSEEN, "--out", benchmark.parent / "broken"]
        assert picture.name in refused(asked, monkeypatch, capsys)
    finally:
        picture.write_bytes(before)


def test_the_unseen_model_is_evaluated_on_exactly_the_frozen_pictures(benchmark: Path, run: Path) -> None:
    manifest = read_table(benchmark / "manifest.parquet")
    model = load_model(UNSEEN)
    images = [np.array(Image.open(benchmark / name).convert("RGB")) for name in manifest["file"]]
    best = [model.labels[place] for place in model(images).argmax(axis=1)]
    assert predictions(run) == dict(zip(manifest["id"], best, strict=True))
    record = json.loads((run / "run.json").read_text())
    assert record["collection_digest"] == json.loads((benchmark / "benchmark.json").read_text())["digest"]


def predictions(run: Path) -> dict[str, Any]:
    """Variant id to the model's first answer."""
    (path,) = (run / "predictions").glob("*.parquet")
    table = read_table(path)
    return dict(zip(table["variant_id"], table["rank_1"], strict=True))


def test_the_report_names_the_benchmark_and_who_chose_its_pictures(run: Path, tmp_path: Path) -> None:
    counterfoil("report", run, "--out", tmp_path)
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        page = opened(browser)
        page.goto((tmp_path / "report.html").as_uri())
        text = page.inner_text("body")
        browser.close()
    assert "whole-way 1.0.0" in text
    assert all(name.removeprefix("embedded:") in text for name in SURROGATES)
