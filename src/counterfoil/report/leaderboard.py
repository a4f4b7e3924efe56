"""Published numbers and one's own in one table: for the terminal, as Markdown, as JSON, as a page that sorts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_PAGE = Path(__file__).parent / "page"
OWN = "this run"


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard: a model's numbers in one source."""

    model: str
    values: Mapping[str, float]  # by condition
    source: str
    note: str = ""
    own: bool = False  # from a run of the reader's, not published
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """Where the numbers are from, and what to know of them."""
        return f"{self.source}; {self.note}" if self.note else self.source


@dataclass(frozen=True)
class Leaderboard:
    """What is known of a benchmark: one's own models first, then what was published."""

    benchmark: str
    standings: tuple[Standing, ...]

    @property
    def conditions(self) -> list[str]:
        """The columns, one's own first, each once."""
        return list(dict.fromkeys(name for standing in self.standings for name in standing.values))


def as_text(board: Leaderboard) -> str:
    """The table for a terminal; the sources stand below it, numbered."""
    notes = _notes(board.standings)
    rows = [_cells(board, standing, notes) for standing in board.standings]
    table = [["model", *board.conditions, "source"], *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in table]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, "", *(f"[{number}] {note}" for note, number in notes.items())]).rstrip() + "\n"


def as_markdown(board: Leaderboard) -> str:
    """The table for a README or a pull request."""
    notes = _notes(board.standings)
    head = ["model", *board.conditions, "source"]
    rule = ["---", *["---:"] * len(board.conditions), "---"]
    body = [_cells(board, standing, notes) for standing in board.standings]
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (head, rule, *body)]
    told = [f"[{number}] {note}  " for note, number in notes.items()]
    return "\n".join([f"## {board.benchmark}", "", *rows, "", *told]) + "\n"


def as_json(board: Leaderboard) -> str:
    """Everything, for programs."""
    return json.dumps(
        {
            "benchmark": board.benchmark,
            "conditions": board.conditions,
            "rows": [asdict(row) for row in board.standings],
        },
        indent=1,
        allow_nan=False,
    )


def as_html(board: Leaderboard) -> str:
    """One self-contained page; a click on a column sorts, typing filters."""
    script = (_PAGE / "leaderboard.js").read_text(encoding="utf-8")
    environment = Environment(loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("leaderboard.html").render(
        board=board,
        sources=_notes(board.standings),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _notes(standings: Sequence[Standing]) -> dict[str, int]:
    return {told: number for number, told in enumerate(dict.fromkeys(row.told for row in standings), 1)}


def _cells(board: Leaderboard, standing: Standing, notes: Mapping[str, int]) -> list[str]:
    values = [_value(standing, name) for name in board.conditions]
    return [f"{'* ' if standing.own else ''}{standing.model}", *values, f"[{notes[standing.told]}]"]


def _value(standing: Standing, condition: str) -> str:
    if condition not in standing.values:
        return "–"
    interval = standing.intervals.get(condition)
    told = f"{standing.values[condition]:.2f}"
    return told if interval is None else f"{told} [{interval[0]:.1f}, {interval[1]:.1f}]"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Words to the left, numbers to the right."""
    last = len(row) - 1
    return [
        cell.ljust(width) if place in (0, last) else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
