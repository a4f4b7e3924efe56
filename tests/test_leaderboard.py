"""Published numbers: every file is sound, and the leaderboard shows them beside one's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, sync_playwright

from archives import edited, sets
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.numbers import benchmarks, published_numbers, read_numbers
from counterfoil.pipeline import evaluate_collection
from counterfoil.pipeline.leaderboard import leaderboard
from counterfoil.published import ARCHIVES
from counterfoil.report.leaderboard import Leaderboard, Standing, as_html, as_json, as_markdown, as_text


def board(benchmark: str, *own: Standing) -> Leaderboard:
    rows = [Standing(row.model, row.values, row.source, row.note) for row in published_numbers(benchmark)]
    return Leaderboard(benchmark, (*own, *rows))


@pytest.mark.parametrize("benchmark", benchmarks())
def test_every_shipped_row_has_a_source_and_plausible_values(benchmark: str) -> None:
    rows = published_numbers(benchmark)
    assert rows
    for row in rows:
        assert row.source
        assert all(0 <= value <= 100 for value in row.values.values()), row
    assert len({(row.model, row.source, row.note) for row in rows}) == len(rows), "one model twice in one source"


def test_a_readme_and_its_abstract_that_disagree_stay_two_rows() -> None:
    rows = [row for row in published_numbers("ximagenet-12") if row.model == "ResNet50"]
    assert {18.3, 22.41, 53.91} <= {row.values["rand_bg"] for row in rows}
    assert {14.8, 68.55} <= {row.values["seg_img"] for row in rows}
    assert len({row.source for row in rows}) == 2


def test_the_gap_of_the_backgrounds_challenge_is_the_difference_of_its_columns() -> None:
    rows = [row for row in published_numbers("imagenet-9") if "bg_gap" in row.values]
    assert len(rows) == 5
    for row in rows:
        assert row.values["mixed_same"] - row.values["mixed_rand"] == pytest.approx(row.values["bg_gap"], abs=0.051)


def test_a_contributor_adds_a_row_by_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"source": "our paper", "rows": [{"model": "Net", "values": {"rand_bg": 40}}]}))
    (row,) = read_numbers(file, "ximagenet-12")
    assert (row.model, row.values["rand_bg"], row.source) == ("Net", 40, "our paper")


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        "[" * 100_000,
        '{"rows": []}',
        '{"source": "x", "rows": []}',
        '{"source": "x", "rows": [{"model": "a", "values": {"c": "high"}}]}',
        '{"source": "x", "rows": [{"model": "a", "values": {"c": NaN}}]}',
        '{"source": "x", "rows": [{"model": "a", "values": {"c": 1}, "score": 2}]}',
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "wrong.json").write_text(wrong)
    with pytest.raises(UserError, match="expected") as told:
        read_numbers(tmp_path / "wrong.json", "imagenet-9")
    assert "\n" not in str(told.value)


def test_every_form_holds_every_number() -> None:
    own = Standing("mine | <b>", {"rand_bg": 31.234}, "your run", own=True, intervals={"rand_bg": (28.0, 34.5)})
    shown = board("ximagenet-12", own)
    for form in (as_text, as_markdown, as_html):
        text = form(shown)
        assert "31.23" in text
        assert "34.5" in text
        assert all(f"{value:.2f}" in text for row in shown.standings for value in row.values.values())
    assert "mine \\| <b>" in as_markdown(shown)
    assert "mine | &lt;b&gt;" in as_html(shown)
    rows = json.loads(as_json(shown))["rows"]
    assert len(rows) == len(shown.standings)
    assert rows[0]["own"] is True


@pytest.mark.parametrize("benchmark", [name for name in benchmarks() if name in ARCHIVES])
def test_the_page_of_a_benchmark_shows_the_table_that_is_shipped(benchmark: str) -> None:
    page = (Path(__file__).parents[1] / "docs" / "published" / f"{benchmark}.md").read_text(encoding="utf-8")
    shown = page.split("<!-- published -->\n")[1].split("<!-- /published -->")[0]
    assert shown == as_markdown(board(benchmark)).split("\n", 2)[2]


@pytest.mark.parametrize("archive", ARCHIVES)
def test_every_archive_has_a_page_with_its_command(archive: str) -> None:
    base = archive.removesuffix("-challenge")
    page = (Path(__file__).parents[1] / "docs" / "published" / f"{base}.md").read_text(encoding="utf-8")
    assert archive in page
    assert f"counterfoil evaluate {base}:PATH" in page
    assert "**Licence.**" in page


def test_runs_over_a_benchmark_without_published_numbers_stand_alone(tmp_path: Path) -> None:
    run, file = tmp_path / "run", tmp_path / "mine.json"
    archive = sets.imagenet_sketch(tmp_path / "set")
    evaluate_collection(f"imagenet-sketch:{archive}", ["python:archives.telling:tells"], run, workers=1)
    file.write_text(json.dumps({"source": "our paper", "rows": [{"model": "Net", "values": {"top-1": 40}}]}))
    rows = leaderboard("imagenet-sketch", [run], [file]).standings
    assert [(row.own, row.values["top-1"]) for row in rows] == [(True, 75.0), (False, 40.0)]
    with pytest.raises(UserError, match="no published numbers of imagenet-sketch"):
        leaderboard("imagenet-sketch")


def test_what_a_run_has_no_number_of_is_left_out(tmp_path: Path) -> None:
    """Originals and control alone: there is no kind to take the mean drop over."""
    archive, run = edited.imagenet_e(tmp_path / "set"), tmp_path / "run"
    for folder in archive.iterdir():
        if folder.is_dir() and folder.name not in ("ori", "rec"):
            shutil.rmtree(folder)
    evaluate_collection(f"imagenet-e:{archive}", ["python:archives.telling:tells"], run, workers=1)
    own = json.loads(as_json(leaderboard("imagenet-e", [run])))["rows"][0]
    assert own["values"] == pytest.approx({"original": 500 / 6, "Inver": 500 / 6, "drop, Inver": 0})


def test_the_command_prints_and_writes(tmp_path: Path) -> None:
    printed = CliRunner().invoke(commands, ["leaderboard", "imagenet-9"], catch_exceptions=False)
    assert "ResNet-152" in printed.output
    CliRunner().invoke(
        commands, ["leaderboard", "imagenet-9", "--format", "html", "--out", str(tmp_path / "b.html")],
        catch_exceptions=False,
    )  # fmt: skip
    assert "<table>" in (tmp_path / "b.html").read_text()


def test_a_narrow_terminal_gets_tables_that_fit_with_every_number() -> None:
    own = Standing("mine", {f"scenario {n}": 10.5 + n for n in range(12)}, "your run", own=True)
    shown = board("ximagenet-12", own)
    text = as_text(shown, width=80)
    tables = text.split("Columns")[0]
    assert max(map(len, tables.splitlines())) <= 80 < max(map(len, as_text(shown).splitlines()))
    assert all(f"{value:.2f}" in tables for row in shown.standings for value in row.values.values())


@pytest.mark.parametrize("form", [as_text, as_markdown])
def test_a_strangers_line_breaks_and_pipes_stay_in_their_row(form: Callable[[Leaderboard], str]) -> None:
    names = ("one\ntwo|three", "one two-three")
    odd, plain = (form(Leaderboard("x", (Standing(name, {"a\nb": 1.0}, "so\nurce"),))) for name in names)
    assert odd.count("\n") == plain.count("\n")
    assert "one two" in odd


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield instance
        instance.close()


@pytest.mark.browser
def test_the_page_sorts_and_filters(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "board.html").write_text(as_html(board("ximagenet-12")))
    page = browser.new_page(viewport={"width": 390, "height": 800})
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto((tmp_path / "board.html").as_uri())
    column = [head.strip() for head in page.locator("thead th").all_inner_texts()].index("rand_bg")
    page.get_by_role("button", name="rand_bg").click()
    cells = page.locator(f"tbody tr td:nth-child({column + 1})").all_inner_texts()
    values = [float(cell) for cell in cells if cell != "–"]
    assert values == sorted(values, reverse=True)
    page.get_by_label("Filter").fill("clip")
    assert page.locator("tbody tr:visible").count() == 2
    assert page.locator("#count").inner_text().startswith("2 of")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, "the page itself scrolls sideways"
    assert page.get_by_text("scroll the table sideways").is_visible()
    assert faults == []
