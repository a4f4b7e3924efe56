"""One's own runs beside what was published of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.numbers import benchmarks, published_numbers, read_numbers
from counterfoil.pipeline.published import RULES
from counterfoil.pipeline.recorded.papers import paper_tables
from counterfoil.pipeline.recorded.study import open_runs
from counterfoil.report import PaperTable
from counterfoil.report.leaderboard import Leaderboard, Standing

_BOUNDS = (", low", ", high")
_COUNTS = {"pictures", "foregrounds", "survival, foregrounds", "scored", "unparsed", "refused", "error"}
_ASIDE = ("folds ", "sigma ")  # columns that explain others


def leaderboard(benchmark: str, runs: Sequence[str | Path] = (), files: Sequence[Path] = ()) -> Leaderboard:
    """The standings of a benchmark: the models of these runs, rows of one's own files, the published ones."""
    unpublished = benchmark in RULES and benchmark not in benchmarks()
    if unpublished and not runs and not files:
        raise UserError(f"no published numbers of {benchmark} are here: give runs over it, or rows in --numbers FILE")
    published = [] if unpublished else published_numbers(benchmark)
    own = [standing for run in runs for standing in _standings(benchmark, Path(run))]
    added = [row for file in files for row in read_numbers(file, benchmark)]
    others = [Standing(row.model, row.values, row.source, row.note) for row in (*added, *published)]
    return Leaderboard(benchmark, (*own, *others))


def _standings(benchmark: str, run: Path) -> list[Standing]:
    study = open_runs([run])
    about = study.run.collection or "no collection"
    if about.split(" ")[0] != benchmark:
        raise UserError(
            f"expected a run over {benchmark}, got '{run}', which is over {about};"
            f" `counterfoil evaluate {benchmark}:PATH --out RUN` makes one"
        )
    tables = [table for table in paper_tables(study) if table.kind == "scored"]
    return [_standing(model, tables, run) for model in study.files]


def _standing(model: str, tables: Sequence[PaperTable], run: Path) -> Standing:
    """A model's numbers from every table that has a row of it; bounds become the interval of their column."""
    cells = {
        column: float(cell)
        for table in tables
        for row in table.rows
        if row[0] == model
        for column, cell in zip(table.columns[1:], row[1:], strict=True)
        if isinstance(cell, float | int) and math.isfinite(cell)  # of nothing there is no mean
        if column not in _COUNTS and not column.startswith(_ASIDE)
    }
    values = {column: value for column, value in cells.items() if not column.endswith(_BOUNDS)}
    bounded = [column for column in values if all(f"{column}{bound}" in cells for bound in _BOUNDS)]
    intervals = {column: (cells[f"{column}, low"], cells[f"{column}, high"]) for column in bounded}
    return Standing(model, values, f"your run {run.name}", "", own=True, intervals=intervals)
