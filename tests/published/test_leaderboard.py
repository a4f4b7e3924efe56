"""Published numbers: every file is sound, and the leaderboard shows them beside one's own."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, sync_playwright

from archives import class_archives, edit_archives
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.published.catalogue import BENCHMARK_OF, evaluate_collection, make_paper_tables
from counterfoil.published.leaderboard import build_leaderboard, render_html, render_json, render_markdown, render_text
from counterfoil.published.published_numbers import (
    MANY,
    Leaderboard,
    LeaderboardRow,
    list_benchmarks,
    match_published_rows,
    name_in_tables,
    read_own_numbers,
    read_published_numbers,
)
from counterfoil.study.runs import open_runs
from locations import ROOT
from verify_browser import chromium

PAGES = ROOT / "docs" / "published"
TIMM = ("imagenet-val", "imagenet-a", "imagenet-r", "imagenet-v2", "imagenet-sketch")


def board(benchmark: str, *own: LeaderboardRow) -> Leaderboard:
    rows = match_published_rows(read_published_numbers(benchmark), [standing.model for standing in own])
    return Leaderboard(benchmark, (*own, *rows)).ranked()


def timm_rows(benchmark: str) -> dict[tuple[str, str], dict[str, float]]:
    """timm's rows by model and size."""
    rows = [
        row for row in read_published_numbers(benchmark) if row.source.startswith("huggingface/pytorch-image-models")
    ]
    return {(row.model, row.remark): dict(row.values) for row in rows}


@pytest.mark.parametrize("benchmark", list_benchmarks())
def test_every_shipped_row_has_a_source_and_plausible_values(benchmark: str) -> None:
    rows = read_published_numbers(benchmark)
    assert rows
    for row in rows:
        assert row.source
        assert all(0 <= value <= 100 for value in row.values.values()), row
    assert len({(row.model, row.source, row.remark) for row in rows}) == len(rows), "one model twice in one source"


@pytest.mark.parametrize("benchmark", TIMM)
def test_rows_of_timm_name_weights_and_size_and_more_are_right_among_five(benchmark: str) -> None:
    rows = timm_rows(benchmark)
    assert len(rows) > 100
    for (model, size), values in rows.items():
        assert "." in model
        assert " px, crop " in size
        assert values["top-1"] < values["top-5"]


@pytest.mark.parametrize("benchmark", ["imagenet-v2", "imagenet-sketch"])
def test_every_model_of_timm_is_worse_than_on_the_validation_pictures_by_as_much_as_is_known(benchmark: str) -> None:
    """A slip of a digit in copying would show: the drops to V2 lie close together, those to sketches are large."""
    known = timm_rows("imagenet-val")
    drops = [known[key]["top-1"] - values["top-1"] for key, values in timm_rows(benchmark).items()]
    low, high = (7, 14) if benchmark == "imagenet-v2" else (18, 57)
    assert low < min(drops) <= max(drops) < high


def test_a_readme_and_its_abstract_that_disagree_stay_two_rows() -> None:
    rows = [row for row in read_published_numbers("ximagenet-12") if row.model == "ResNet50"]
    assert {18.3, 22.41, 53.91} <= {row.values["rand_bg"] for row in rows}
    assert {14.8, 68.55} <= {row.values["seg_img"] for row in rows}
    assert len({row.source for row in rows}) == 2


def test_the_gap_of_the_backgrounds_challenge_is_the_difference_of_its_columns() -> None:
    rows = [row for row in read_published_numbers("imagenet-9") if "bg_gap" in row.values]
    assert len(rows) == 5
    for row in rows:
        assert row.values["mixed_same"] - row.values["mixed_rand"] == pytest.approx(row.values["bg_gap"], abs=0.051)


def test_a_contributor_adds_a_row_by_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"source": "our paper", "rows": [{"model": "Net", "values": {"rand_bg": 40}}]}))
    (row,) = read_own_numbers(file, "ximagenet-12")
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
        read_own_numbers(tmp_path / "wrong.json", "imagenet-9")
    assert "\n" not in str(told.value)


def test_every_form_holds_every_number() -> None:
    own = LeaderboardRow(
        model="mine | <b>", values={"rand_bg": 31.234}, source="your run", own=True, intervals={"rand_bg": (28.0, 34.5)}
    )
    shown = board("ximagenet-12", own)
    for form in (render_text, render_markdown, render_html):
        text = form(shown)
        assert "31.23" in text
        assert "34.5" in text
        assert all(f"{value:.2f}" in text for row in shown.rows for value in row.values.values())
    assert "mine \\| <b>" in render_markdown(shown)
    assert "mine | &lt;b&gt;" in render_html(shown)
    rows = json.loads(render_json(shown))["rows"]
    assert len(rows) == len(shown.rows)
    assert rows[0]["own"] is True


def shown_in_page(benchmark: str) -> str:
    page = (PAGES / f"{benchmark}.md").read_text(encoding="utf-8")
    return page.split("<!-- published -->\n")[1].split("<!-- /published -->")[0]


def table_rows(markdown: str) -> list[dict[str, str]]:
    """The rows of a Markdown table by column, the sources' numbers replaced by their words."""
    lines = markdown.splitlines()
    told = dict(line.rstrip().split(" ", 1) for line in lines if line.startswith("["))
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")]
    rows = [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]
    return [row | {"source": row["source"].replace(mark := row["source"].split()[0], told[mark])} for row in rows]


@pytest.mark.parametrize("benchmark", [name for name in list_benchmarks() if name in BENCHMARK_OF])
def test_the_page_of_a_benchmark_shows_rows_that_are_shipped_and_says_how_many_there_are(benchmark: str) -> None:
    shown, whole = shown_in_page(benchmark), board(benchmark)
    shipped = table_rows(render_markdown(whole))
    rows = table_rows(shown)
    for row in rows:
        assert any(row.items() <= other.items() for other in shipped), row
    assert {row.source for row in whole.rows} <= whole_sources(shown)
    if len(whole.rows) > MANY:
        assert f"{len(rows)} of {len(shipped)} rows" in shown
        assert f"counterfoil benchmark leaderboard {benchmark} --all" in shown
    else:
        assert len(rows) == len(shipped)


def whole_sources(markdown: str) -> set[str]:
    """What stands below a table, up to each semicolon."""
    told = [line.split(" ", 1)[1].rstrip() for line in markdown.splitlines() if line.startswith("[")]
    return {line.split("; ")[0] for line in told}


@pytest.mark.parametrize("benchmark", [name for name in list_benchmarks() if name in BENCHMARK_OF])
def test_the_pages_are_as_their_script_writes_them(benchmark: str) -> None:
    spec = importlib.util.spec_from_file_location("make_tables", PAGES / "make_tables.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert shown_in_page(benchmark) == script.block(benchmark), "python docs/published/make_tables.py writes it again"


@pytest.mark.parametrize("archive", BENCHMARK_OF)
def test_every_archive_has_a_page_with_its_command(archive: str) -> None:
    base = archive.partition("-challenge")[0]
    page = (ROOT / "docs" / "published" / f"{base}.md").read_text(encoding="utf-8")
    assert archive in page
    assert f"counterfoil evaluate {base}:PATH" in page
    assert "**Licence.**" in page


def test_a_run_stands_above_rows_of_ones_own_file_and_what_was_published(tmp_path: Path) -> None:
    run, file = tmp_path / "run", tmp_path / "mine.json"
    archive = class_archives.imagenet_sketch(tmp_path / "set")
    evaluate_collection(f"imagenet-sketch:{archive}", ["python:archives.class_colours:tells"], run, workers=1)
    file.write_text(json.dumps({"source": "our paper", "rows": [{"model": "Net", "values": {"top-1": 99}}]}))
    rows = build_leaderboard("imagenet-sketch", [run], [file]).rows
    assert [(row.own, row.values["top-1"]) for row in rows[:2]] == [(True, 75.0), (False, 99.0)]
    assert rows[0].source == "your run run, n = 4"  # of 50,889: nobody takes it for the whole
    assert len(rows) == 2 + len(read_published_numbers("imagenet-sketch"))
    beside = make_paper_tables(open_runs([run]))[-1]
    assert len(beside.rows) == 1 + 20
    assert "161 more published rows: counterfoil benchmark leaderboard imagenet-sketch RUN --all" in beside.rule
    values = [row[1] for row in beside.rows[1:] if isinstance(row[1], float)]
    others = [row.values["top-1"] for row in rows[2:] if "top-1" in row.values]
    assert sorted(values) == sorted(sorted(others, key=lambda value: abs(value - 75))[: len(values)])


def test_another_scoring_than_the_published_one_is_a_column_of_its_own(tmp_path: Path) -> None:
    run = tmp_path / "run"
    archive = class_archives.imagenet_a_archive(tmp_path / "set")
    model = "python:archives.class_colours:tells"
    evaluate_collection(f"imagenet-a:{archive}", [model], run, workers=1, scoring="all")
    own = build_leaderboard("imagenet-a", [run]).rows[0]
    assert set(own.values) == {"top-1, all columns", "top-5, all columns"}
    assert set(own.intervals) == {"top-1, all columns"}


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("timm:resnet50.a1_in1k", "resnet50.a1_in1k"),
        ("timm:resnet50.a1_in1k@test", "resnet50.a1_in1k"),
        ("timm:resnet50.a1_in1k (subset: 200 classes)", "resnet50.a1_in1k"),
        ("open_clip:ViT-B-32/openai", "ViT-B-32/openai"),
        ("torchvision:resnet50", None),  # which weights it stands for, its name does not say
        ("onnx:resnet50.a1_in1k", None),
    ],
)
def test_a_model_is_the_published_one_if_its_address_says_so(address: str, name: str | None) -> None:
    assert name_in_tables(address) == name


def test_published_rows_of_ones_own_model_stand_right_below_it_and_say_so() -> None:
    own = LeaderboardRow(model="timm:resnet50.a1_in1k@test", values={"top-1": 16.0}, source="your run", own=True)
    shown = board("imagenet-a", own)
    assert [(row.model, row.same) for row in shown.rows[1:4]] == [
        ("resnet50.a1_in1k", True),
        ("resnet50.a1_in1k", True),
        ("eva02_large_patch14_448.mim_m38m_ft_in22k_in1k", False),
    ]
    assert "288 px, crop 1, the same model" in render_text(shown, most=5)
    assert render_html(shown).count("the same model, published") == 2


def test_a_long_board_is_ranked_and_a_short_one_stays_as_its_sources_have_it() -> None:
    values = [row.values["top-1"] for row in board("imagenet-a").rows if "top-1" in row.values]
    assert values == sorted(values, reverse=True)
    short = read_published_numbers("ximagenet-12")
    assert [row.model for row in board("ximagenet-12").rows] == [row.model for row in short]
    errors = Leaderboard(
        "imagenet-c", tuple(LeaderboardRow(model=str(n), values={"mCE": float(n % 50)}, source="s") for n in range(60))
    )
    assert errors.ranked().rows[0].values["mCE"] == 0


def test_of_a_long_board_a_terminal_shows_the_best_or_the_nearest_and_counts_the_rest() -> None:
    best = render_text(board("imagenet-a"), most=3).splitlines()
    assert [line.split()[0] for line in best[2:5]] == [
        "eva02_large_patch14_448.mim_m38m_ft_in22k_in1k", "eva02_L_pt_m38m_medft_in21k_ft_in1k_p14", "EVA",
    ]  # fmt: skip
    assert "178 more published rows: --all shows them." in best
    near = render_text(
        board("imagenet-a", LeaderboardRow(model="mine", values={"top-1": 45.0}, source="your run", own=True)), most=3
    ).splitlines()
    assert near[2].startswith("* mine")
    assert {float(line.split()[1]) for line in near[3:6]} <= {43.12, 43.33, 45.24, 45.27, 46.67}


def test_the_command_limits_what_a_terminal_shows_unless_all_is_asked_for() -> None:
    code = (
        "from counterfoil.cli import commands\n"
        "for options in ([], ['--all']):\n"
        "    commands(['leaderboard', 'imagenet-r', *options], standalone_mode=False)\n"
        "    print('=' * 9)\n"
    )
    limited, whole, _ = _in_a_terminal(code).split(b"=" * 9)
    assert limited.count(b"\n") < 65
    assert b"more published rows: --all shows them." in limited
    assert whole.count(b"\n") > 165


def _in_a_terminal(code: str) -> bytes:
    """What Python prints where its output is a terminal."""
    reader, writer = pty.openpty()
    told = b""
    with subprocess.Popen([sys.executable, "-c", code], stdout=writer, env=os.environ | {"COLUMNS": "120"}) as process:
        os.close(writer)
        try:
            while part := os.read(reader, 65536):
                told += part
        except OSError:  # how Linux says that the other side of a terminal is closed
            pass
        assert process.wait() == 0
    os.close(reader)
    return told


def test_what_a_run_has_no_number_of_is_left_out(tmp_path: Path) -> None:
    """Originals and control alone: there is no kind to take the mean drop over."""
    archive, run = edit_archives.imagenet_e(tmp_path / "set"), tmp_path / "run"
    for folder in archive.iterdir():
        if folder.is_dir() and folder.name not in ("ori", "rec"):
            shutil.rmtree(folder)
    evaluate_collection(f"imagenet-e:{archive}", ["python:archives.class_colours:tells"], run, workers=1)
    own = json.loads(render_json(build_leaderboard("imagenet-e", [run])))["rows"][0]
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
    own = LeaderboardRow(
        model="mine", values={f"scenario {n}": 10.5 + n for n in range(12)}, source="your run", own=True
    )
    shown = board("ximagenet-12", own)
    text = render_text(shown, width=80)
    tables = text.split("Columns")[0]
    assert max(map(len, tables.splitlines())) <= 80 < max(map(len, render_text(shown).splitlines()))
    assert all(f"{value:.2f}" in tables for row in shown.rows for value in row.values.values())


@pytest.mark.parametrize("form", [render_text, render_markdown])
def test_a_strangers_line_breaks_and_pipes_stay_in_their_row(form: Callable[[Leaderboard], str]) -> None:
    names = ("one\ntwo|three", "one two-three")
    odd, plain = (
        form(Leaderboard("x", (LeaderboardRow(model=name, values={"a\nb": 1.0}, source="so\nurce"),))) for name in names
    )
    assert odd.count("\n") == plain.count("\n")
    assert "one two" in odd


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        instance = chromium(playwright)
        yield instance
        instance.close()


@pytest.mark.browser
def test_the_page_sorts_and_filters(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "board.html").write_text(render_html(board("ximagenet-12")))
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


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1440])
def test_a_long_page_fits_and_shows_one_source_or_ones_own_models(tmp_path: Path, browser: Browser, width: int) -> None:
    own = LeaderboardRow(model="timm:resnet50.a1_in1k", values={"top-1": 10.2}, source="your run", own=True)
    (tmp_path / "board.html").write_text(render_html(board("imagenet-a", own)))
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto((tmp_path / "board.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.get_by_label("Source").select_option(label="alibaba/easyrobust, README at 737ada682c1e")
    assert page.locator("#count").inner_text() == "20 of 182 rows"
    page.get_by_label("Source").select_option(label="all")
    page.get_by_label("only yours").check()
    models = page.locator("tbody tr:visible th").all_inner_texts()
    assert [model.split()[0] for model in models] == ["timm:resnet50.a1_in1k", "resnet50.a1_in1k", "resnet50.a1_in1k"]
    page.get_by_label("only yours").uncheck()
    page.get_by_role("button", name="top-1, zero-shot").click()
    assert page.locator("tbody tr").first.inner_text().startswith("EVA02-L-14-336")
    head = page.locator("thead th").first
    page.locator(".scroll").evaluate("box => box.scrollTop = 900")
    assert head.evaluate("cell => cell.getBoundingClientRect().top") == page.locator(".scroll").evaluate(
        "box => box.getBoundingClientRect().top + box.clientTop"
    )
