"""The leaderboard of a benchmark: the user's runs above published numbers, as text, Markdown, JSON and HTML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from counterfoil.errors import UserError
from counterfoil.published.catalogue import make_paper_tables
from counterfoil.published.published_numbers import (
    MANY,
    Leaderboard,
    LeaderboardRow,
    join_lines,
    make_own_rows,
    match_published_rows,
    read_own_numbers,
    read_published_numbers,
)
from counterfoil.report.page import TEMPLATES, embed_script
from counterfoil.study.runs import open_runs


def build_leaderboard(benchmark: str, runs: Sequence[str | Path] = (), files: Sequence[Path] = ()) -> Leaderboard:
    """Build the rows of a benchmark: the models of these runs, rows of the user's files, published rows."""
    published = read_published_numbers(benchmark)
    own = [row for run in runs for row in _own_rows(benchmark, Path(run))]
    added = [row for file in files for row in read_own_numbers(file, benchmark)]
    others = match_published_rows([*added, *published], [row.model for row in own])
    return Leaderboard(benchmark, (*own, *others)).ranked()


def _own_rows(benchmark: str, run: Path) -> list[LeaderboardRow]:
    study = open_runs([run])
    about = study.run.collection or "no collection"
    if about.split(" ")[0] != benchmark:
        raise UserError(
            f"expected a run over {benchmark}, got '{run}', which is over {about};"
            f" `counterfoil evaluate {benchmark}:PATH --out RUN` makes one"
        )
    tables = [table for table in make_paper_tables(study) if table.kind == "scored"]
    # Give the number of pictures, so that part of an archive is not taken for the whole.
    return make_own_rows(study, tables, f"your run {run.name}, n = {study.run.samples:,}")


_TEMPLATES = Path(__file__).parent / "templates"
_NONE = "–"
_SAME = "the same model"
_GAP = 2  # characters between columns
_MEASURES = "Columns called drop: points of accuracy lost; called by a condition alone: top-1 accuracy in percent."
_RIGHT = "top-1, top-5: percent right{}; zero-shot: chosen from class names, which is another condition."
_OF_200 = ", where only the 200 classes' columns compete unless the row says otherwise"
_OTHER_MEASURES = {
    "imagenet-9": "Columns: accuracy over nine super-classes in percent; bg_gap: points from mixed_same to mixed_rand;"
    " challenge: percent of foregrounds right on every background.",
    "imagenet-x": "Columns: error ratios, the error on a factor divided by the error on all pictures.",
    "imagenet-c": "Columns: errors in percent, and corruption errors relative to AlexNet's (CE, mCE); clean error: on"
    " the validation pictures.",
    "imagenet-a": _RIGHT.format(_OF_200),
    "imagenet-r": _RIGHT.format(_OF_200),
    "imagenet-v2": _RIGHT.format(""),
    "imagenet-sketch": _RIGHT.format(""),
    "imagenet-val": _RIGHT.format(""),
    "objectnet": _RIGHT.format(", where all columns compete unless the row says otherwise")
    + " Sub-set: only the 113 classes' columns compete.",
}


def describe_columns(board: Leaderboard) -> str:
    """Describe what the columns measure."""
    return _OTHER_MEASURES.get(board.benchmark, _MEASURES)


def render_text(board: Leaderboard, width: int | None = None, most: int | None = None) -> str:
    """Return the table for a terminal of this width, with numbered sources below.

    Columns that do not fit go into a further table below, with the models repeated.
    """
    whole = len(board.rows)
    board = board if most is None or whole <= most else board.shortened(most)
    notes = _number_sources(board.rows)
    table = [_head(board), *(_cells(board, row, notes) for row in board.rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = [line for columns in _fit_columns(widths, width) for line in _table(table, widths, columns)]
    left = whole - len(board.rows)
    more = [f"{left} more published rows: --all shows them.", ""] if left else []
    notes_below = [*more, describe_columns(board), "", *(f"[{number}] {note}" for note, number in notes.items())]
    return "\n".join([*lines, *notes_below]).strip() + "\n"


def _fit_columns(widths: Sequence[int], width: int | None) -> list[list[int]]:
    """Group the columns so that each group fits, with model (first) and source (last) in each."""
    last = len(widths) - 1
    room = math.inf if width is None else width - widths[0] - _GAP - widths[last]
    groups: list[list[int]] = [[]]
    for column in range(1, last):
        if groups[-1] and sum(widths[place] + _GAP for place in (*groups[-1], column)) > room:
            groups.append([])
        groups[-1].append(column)
    return [[0, *group, last] for group in groups]


def _table(table: Sequence[Sequence[str]], widths: Sequence[int], columns: Sequence[int]) -> list[str]:
    """The lines of some columns; rows without a number in any of them are left out."""
    numbers = columns[1:-1]
    rows = [row for row in table if not numbers or any(row[column] != _NONE for column in numbers)]
    chosen = [widths[column] for column in columns]
    lines = [(" " * _GAP).join(_align([row[column] for column in columns], chosen)).rstrip() for row in rows]
    return [lines[0], (" " * _GAP).join("-" * width for width in chosen), *lines[1:], ""]


def render_markdown(board: Leaderboard) -> str:
    """Return the table for a README or a pull request."""
    notes = _number_sources(board.rows)
    rule = ["---", *["---:"] * len(board.conditions), "---"]
    body = [_cells(board, row, notes) for row in board.rows]
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (_head(board), rule, *body)]
    sources = [f"[{number}] {note}  " for note, number in notes.items()]
    return "\n".join([f"## {board.benchmark}", "", *rows, "", describe_columns(board), "", *sources]) + "\n"


def render_json(board: Leaderboard) -> str:
    """Return the whole leaderboard as JSON."""
    return json.dumps(
        {
            "benchmark": board.benchmark,
            "conditions": board.conditions,
            "rows": [asdict(row) for row in board.rows],
        },
        indent=1,
        allow_nan=False,
    )


def render_html(board: Leaderboard) -> str:
    """Return one self-contained page; a click on a column sorts, typing filters."""
    environment = Environment(
        loader=FileSystemLoader([_TEMPLATES, TEMPLATES]), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("leaderboard.html").render(
        board=board,
        measures=describe_columns(board),
        long=len(board.rows) > MANY,
        origins=list(dict.fromkeys(row.source for row in board.rows)),
        sources=_number_sources(board.rows),
        **embed_script("leaderboard.js", templates=_TEMPLATES),
    )


def _number_sources(rows: Sequence[LeaderboardRow]) -> dict[str, int]:
    return {told: number for number, told in enumerate(dict.fromkeys(row.source_text for row in rows), 1)}


def _cells(board: Leaderboard, row: LeaderboardRow, notes: Mapping[str, int]) -> list[str]:
    values = [_value(row, name) for name in board.conditions]
    beside = ", ".join(part for part in (row.short_remark, _SAME if row.same else "") if part)
    source = f"[{notes[row.source_text]}] {beside}".strip()
    return [join_lines(f"{'* ' if row.own else ''}{row.model}"), *values, source]


def _head(board: Leaderboard) -> list[str]:
    return ["model", *map(join_lines, board.conditions), "source"]


def _value(row: LeaderboardRow, condition: str) -> str:
    if condition not in row.values:
        return _NONE
    interval = row.intervals.get(condition)
    value = f"{row.values[condition]:.2f}"
    return value if interval is None else f"{value} [{interval[0]:.1f}, {interval[1]:.1f}]"


def _align(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Column alignment: text to the left, numbers to the right."""
    last = len(row) - 1
    return [
        cell.ljust(width) if place in (0, last) else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
