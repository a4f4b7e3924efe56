"""Published numbers of a benchmark, read from JSON files and matched to the models of a run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from counterfoil.errors import UserError, did_you_mean
from counterfoil.report.content import PaperTable
from counterfoil.study.runs import Study

if TYPE_CHECKING:
    from importlib.abc import Traversable


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    values: Mapping[str, FiniteFloat] = Field(min_length=1)
    note: str = ""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(min_length=1)
    note: str = ""
    rows: tuple[_Row, ...] = Field(min_length=1)


class PublishedRow(BaseModel):
    """One model's numbers in one source."""

    model_config = ConfigDict(frozen=True)

    benchmark: str
    model: str
    values: Mapping[str, float]  # by condition, in the source's own measure
    source: str
    note: str  # of the whole table
    remark: str  # of this row alone


def list_benchmarks() -> list[str]:
    """List the benchmarks that have published numbers."""
    return sorted(_folders())


def read_published_numbers(benchmark: str) -> list[PublishedRow]:
    """Read every published row of a benchmark, sources in the order of their file names."""
    if benchmark not in list_benchmarks():
        raise UserError(
            f"expected a benchmark with published numbers ({', '.join(list_benchmarks())}), got '{benchmark}'"
            f"{did_you_mean(benchmark, list_benchmarks())}"
        )
    return [
        row for file in _files(_folders()[benchmark]) for row in _parse(file.read_text("utf-8"), file.name, benchmark)
    ]


def read_own_numbers(path: Path, benchmark: str) -> list[PublishedRow]:
    """Read the user's own file of numbers, in the form of the shipped ones."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"expected a JSON file of numbers, got {path}, which cannot be read: {error}") from error
    return list(_parse(text, str(path), benchmark))


def _folders() -> dict[str, Traversable]:
    """The folders of numbers by benchmark: from benchmarks with a folder of their own, then all others."""
    published = resources.files("counterfoil.published")
    own = {place.name.replace("_", "-"): place / "numbers" for place in published.iterdir() if place.is_dir()}
    others = {place.name: place for place in (published / "numbers").iterdir()}
    return {name: place for name, place in (own | others).items() if place.is_dir() and _files(place)}


def _files(folder: Traversable) -> list[Traversable]:
    return sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)


def _parse(text: str, where: str, benchmark: str) -> Iterator[PublishedRow]:
    try:
        table = _Table.model_validate(json.loads(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"expected JSON with source and rows in {where}, got no JSON: {error}") from error
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise UserError(
            f"expected source, note and rows of model, values and note in {where}: '{place}': {fault['msg']}"
        ) from error
    for row in table.rows:
        yield PublishedRow(
            benchmark=benchmark, model=row.model, values=row.values, source=table.source,
            note=table.note, remark=row.note,
        )  # fmt: skip


MANY = 40  # rows; longer leaderboards are ranked and shown in part
_SHORT = 24  # characters; longer remarks are printed below the table
_PLAIN = "top-1"
_LOWER_IS_BETTER = ("mCE", "CE, ", "error", "clean error", "mean error", "drop", "mean drop", "bg_gap")


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow:
    """One row of the leaderboard: a model's numbers in one source."""

    model: str
    values: Mapping[str, float]  # by condition
    source: str
    note: str = ""  # of the whole source
    own: bool = False  # from a run of the user, not published
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    remark: str = ""  # of this row alone
    same: bool = False  # published, of a model that the user ran too

    @property
    def source_text(self) -> str:
        """The source of the numbers, with its notes."""
        remark = "" if self.short_remark else self.remark
        return join_lines("; ".join(part for part in (self.source, remark, self.note) if part))

    @property
    def short_remark(self) -> str:
        """The remark where it is short enough for the row."""
        return join_lines(self.remark) if len(self.remark) <= _SHORT else ""


@dataclass(frozen=True)
class Leaderboard:
    """The rows of a benchmark: the user's models first, then published ones."""

    benchmark: str
    rows: tuple[LeaderboardRow, ...]

    @property
    def conditions(self) -> list[str]:
        """The columns, the user's first, each once."""
        return list(dict.fromkeys(name for row in self.rows for name in row.values))

    @property
    def leading(self) -> str:
        """The condition to sort by: plain top-1, else the most common one, preferably one that the user has too."""
        own = {name for row in self.rows if row.own for name in row.values}
        counted = Counter(name for row in self.rows if not row.own for name in row.values)
        shared = {name: count for name, count in counted.items() if name in own} or counted or Counter(own)
        return _PLAIN if _PLAIN in shared else max(self.conditions, key=lambda name: shared.get(name, 0))

    def ranked(self) -> Leaderboard:
        """Sort a long board: the user's rows, published rows of the same models, then the best."""
        if len(self.rows) <= MANY:
            return self
        conditions = [self.leading, *(name for name in self.conditions if name != self.leading)]
        return replace(self, rows=tuple(sorted(self.rows, key=lambda row: _rank(row, conditions))))

    def shortened(self, most: int) -> Leaderboard:
        """Keep at most `most` of the other rows: the nearest to the user's numbers, or the first without any."""
        name = self.leading
        own = [row.values[name] for row in self.rows if row.own and name in row.values]
        others = [row for row in self.rows if not row.own and not row.same]
        if own:
            others = sorted(others, key=lambda row: _distance(row, name, own))
        kept = {id(row) for row in others[:most]}
        return replace(self, rows=tuple(r for r in self.rows if r.own or r.same or id(r) in kept))


def join_lines(text: str) -> str:
    """Return text from outside without line breaks, which would end a table row."""
    return " ".join(text.split())


def _rank(row: LeaderboardRow, conditions: Sequence[str]) -> tuple[bool, bool, int, float]:
    """Sort key: by the first condition that a row has; rows with only later conditions come after."""
    place, name = next((place, name) for place, name in enumerate(conditions) if name in row.values)
    sign = 1 if name.startswith(_LOWER_IS_BETTER) else -1
    return not row.own, not row.same, place, sign * row.values[name]


def _distance(row: LeaderboardRow, name: str, own: Sequence[float]) -> float:
    return min(abs(row.values[name] - value) for value in own) if name in row.values else float("inf")


_ALIKE = ("timm", "open_clip")  # schemes whose names identify the weights in the words of published tables
_ZERO_SHOT = ("open_clip", "clip-hf")
_ACCURACIES = ("top-1", "top-5")
_SUBSET = ("imagenet-a", "imagenet-r")  # published with only the benchmark's classes competing; others with all
_SHOWN = 20  # published rows in a report, where there are many
_BOUNDS = (", low", ", high")
_COUNTS = {"pictures", "foregrounds", "survival, foregrounds", "scored", "unparsed", "refused", "error"}
_ASIDE = ("folds ", "sigma ")  # columns that explain others


def name_in_tables(model: str) -> str | None:
    """The name of a model in published tables, as far as its address tells: `timm:NAME@test` is NAME."""
    scheme, _, place = model.partition(" ")[0].partition(":")
    return place.partition("?")[0].partition("@")[0] if scheme in _ALIKE else None


def match_published_rows(rows: Sequence[PublishedRow], models: Sequence[str]) -> list[LeaderboardRow]:
    """Return published rows as leaderboard rows, with the user's models marked."""
    names = {name_in_tables(model) for model in models}
    return [
        LeaderboardRow(
            model=row.model,
            values=row.values,
            source=row.source,
            note=row.note,
            remark=row.remark,
            same=row.model in names,
        )
        for row in rows
    ]


def make_own_rows(study: Study, tables: Sequence[PaperTable], source: str) -> list[LeaderboardRow]:
    """Return the study's models with their numbers from every table that has a row for them."""
    return [_make_own_row(model, study, tables, source) for model in study.files]


def make_published_table(study: Study, scored: Sequence[PaperTable], name: str) -> PaperTable:
    """Return a table of the study's models above published rows of the same conditions."""
    published = match_published_rows(read_published_numbers(name), list(study.files))
    board = Leaderboard(name, (*make_own_rows(study, scored, "yours"), *published)).ranked()
    shown = board.shortened(_SHOWN) if len(published) > MANY else board
    kept = [row for row in shown.rows if not row.own]
    conditions = list(dict.fromkeys(condition for row in kept for condition in row.values))
    sources = {source: number for number, source in enumerate(dict.fromkeys(row.source_text for row in kept), 1)}
    return PaperTable(
        title=f"{name}: your models and published numbers",
        rule="Numbers as their sources print them, in each source's own measure; sources that disagree stay apart."
        + _describe_left_out(board, shown),
        columns=("model", *conditions, "source"),
        rows=tuple(_line(row, conditions, sources) for row in shown.rows),
        footnotes=tuple(f"[{number}] {source}" for source, number in sources.items()),
        kind="published",
        own=frozenset(range(len(study.files))),
        decimals=2,
    )


def _describe_left_out(board: Leaderboard, shown: Leaderboard) -> str:
    left = len(board.rows) - len(shown.rows)
    return (
        f" Shown are rows of your models and the nearest to yours by {board.leading}; {left} more published rows:"
        f" counterfoil benchmark leaderboard {board.benchmark} RUN --all."
        if left
        else ""
    )


def _line(row: LeaderboardRow, conditions: Sequence[str], sources: dict[str, int]) -> tuple[str | float | None, ...]:
    beside = ", ".join(filter(None, (row.short_remark, "the same model" if row.same else "")))
    source = "yours" if row.own else f"[{sources[row.source_text]}] {beside}".strip()
    return (row.model, *(row.values.get(name) for name in conditions), source)


def _make_own_row(model: str, study: Study, tables: Sequence[PaperTable], source: str) -> LeaderboardRow:
    """A model's numbers; bounds become the interval of their column."""
    cells = {
        column: float(cell)
        for table in tables
        for row in table.rows
        if row[0] == model
        for column, cell in zip(table.columns[1:], row[1:], strict=True)
        if isinstance(cell, float | int) and math.isfinite(cell)  # a mean over nothing is NaN
        if column not in _COUNTS and not column.startswith(_ASIDE)
    }
    conditions = {column: _condition(column, model, study) for column in cells if not column.endswith(_BOUNDS)}
    bounded = [column for column in conditions if all(f"{column}{bound}" in cells for bound in _BOUNDS)]
    intervals = {conditions[column]: (cells[f"{column}, low"], cells[f"{column}, high"]) for column in bounded}
    values = {condition: cells[column] for column, condition in conditions.items()}
    return LeaderboardRow(model=model, values=values, source=source, own=True, intervals=intervals)


def _condition(column: str, model: str, study: Study) -> str:
    """The condition under which a column of ours is published; zero-shot and other scoring are separate conditions."""
    benchmark = study.run.collection.split(" ")[0]
    if column not in _ACCURACIES:
        return column
    if model.partition(":")[0] in _ZERO_SHOT:
        return f"{column}, zero-shot"
    subset = study.run.scoring.startswith("subset")
    if subset == (benchmark in _SUBSET):
        return column
    return f"{column}, {'sub-set' if subset else 'all columns'}"
