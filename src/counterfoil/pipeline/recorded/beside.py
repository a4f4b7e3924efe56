"""Published numbers beside a study's own: which row speaks of the same model, which column of the same condition."""

from __future__ import annotations

import math
from collections.abc import Sequence

from counterfoil.numbers import Published, published_numbers
from counterfoil.pipeline.recorded.study import Study
from counterfoil.report import PaperTable
from counterfoil.report.standings import MANY, Leaderboard, Standing

_ALIKE = ("timm", "open_clip")  # schemes whose names say which weights, in the words that published tables use
_ZERO_SHOT = ("open_clip", "clip-hf")
_ACCURACIES = ("top-1", "top-5")
_SUBSET = ("imagenet-a", "imagenet-r")  # published with only the benchmark's classes competing, the others with all
_SHOWN = 20  # published rows in a report, where there are many
_BOUNDS = (", low", ", high")
_COUNTS = {"pictures", "foregrounds", "survival, foregrounds", "scored", "unparsed", "refused", "error"}
_ASIDE = ("folds ", "sigma ")  # columns that explain others


def published_name(model: str) -> str | None:
    """What published tables call a model, as far as its address tells: `timm:NAME@test` is NAME."""
    scheme, _, place = model.partition(" ")[0].partition(":")
    return place.partition("?")[0].partition("@")[0] if scheme in _ALIKE else None


def published_standings(rows: Sequence[Published], models: Sequence[str]) -> list[Standing]:
    """Published rows as lines of a leaderboard, those of the reader's models marked."""
    names = {published_name(model) for model in models}
    return [
        Standing(row.model, row.values, row.source, row.note, remark=row.remark, same=row.model in names)
        for row in rows
    ]  # fmt: skip


def own_standings(study: Study, tables: Sequence[PaperTable], source: str) -> list[Standing]:
    """The study's models with their numbers from every table that has a row of them."""
    return [_own_standing(model, study, tables, source) for model in study.files]


def published_table(study: Study, scored: Sequence[PaperTable], name: str) -> PaperTable:
    """The study's models above what was published, where both speak of the same condition."""
    published = published_standings(published_numbers(name), list(study.files))
    board = Leaderboard(name, (*own_standings(study, scored, "yours"), *published)).ranked()
    shown = board.shortened(_SHOWN) if len(published) > MANY else board
    kept = [row for row in shown.standings if not row.own]
    conditions = list(dict.fromkeys(condition for row in kept for condition in row.values))
    sources = {told: number for number, told in enumerate(dict.fromkeys(row.told for row in kept), 1)}
    return PaperTable(
        f"{name}: your models and published numbers",
        "Numbers as their sources print them, in each source's own measure; sources that disagree stay apart."
        + _left_out(board, shown),
        ("model", *conditions, "source"),
        tuple(_line(row, conditions, sources) for row in shown.standings),
        tuple(f"[{number}] {told}" for told, number in sources.items()),
        kind="published",
        own=frozenset(range(len(study.files))),
        decimals=2,
    )


def _left_out(board: Leaderboard, shown: Leaderboard) -> str:
    left = len(board.standings) - len(shown.standings)
    return (
        f" Shown are rows of your models and the nearest to yours by {board.leading}; {left} more published rows:"
        f" counterfoil leaderboard {board.benchmark} RUN --all."
        if left
        else ""
    )


def _line(row: Standing, conditions: Sequence[str], sources: dict[str, int]) -> tuple[str | float | None, ...]:
    beside = ", ".join(filter(None, (row.beside, "the same model" if row.same else "")))
    source = "yours" if row.own else f"[{sources[row.told]}] {beside}".strip()
    return (row.model, *(row.values.get(name) for name in conditions), source)


def _own_standing(model: str, study: Study, tables: Sequence[PaperTable], source: str) -> Standing:
    """A model's numbers; bounds become the interval of their column."""
    cells = {
        column: float(cell)
        for table in tables
        for row in table.rows
        if row[0] == model
        for column, cell in zip(table.columns[1:], row[1:], strict=True)
        if isinstance(cell, float | int) and math.isfinite(cell)  # of nothing there is no mean
        if column not in _COUNTS and not column.startswith(_ASIDE)
    }
    told = {column: _condition(column, model, study) for column in cells if not column.endswith(_BOUNDS)}
    bounded = [column for column in told if all(f"{column}{bound}" in cells for bound in _BOUNDS)]
    intervals = {told[column]: (cells[f"{column}, low"], cells[f"{column}, high"]) for column in bounded}
    values = {condition: cells[column] for column, condition in told.items()}
    return Standing(model, values, source, own=True, intervals=intervals)


def _condition(column: str, model: str, study: Study) -> str:
    """The condition under which a column of ours is published: zero-shot and another scoring are others."""
    benchmark = study.run.collection.split(" ")[0]
    if column not in _ACCURACIES:
        return column
    if model.partition(":")[0] in _ZERO_SHOT:
        return f"{column}, zero-shot"
    subset = study.run.scoring.startswith("subset")
    if subset == (benchmark in _SUBSET):
        return column
    return f"{column}, {'sub-set' if subset else 'all columns'}"
