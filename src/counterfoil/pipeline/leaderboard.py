"""One's own runs beside what was published of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.numbers import published_numbers, read_numbers
from counterfoil.pipeline.recorded.beside import own_standings, published_standings
from counterfoil.pipeline.recorded.papers import paper_tables
from counterfoil.pipeline.recorded.study import open_runs
from counterfoil.report.leaderboard import Leaderboard, Standing


def leaderboard(benchmark: str, runs: Sequence[str | Path] = (), files: Sequence[Path] = ()) -> Leaderboard:
    """The standings of a benchmark: the models of these runs, rows of one's own files, the published ones."""
    published = published_numbers(benchmark)
    own = [standing for run in runs for standing in _standings(benchmark, Path(run))]
    added = [row for file in files for row in read_numbers(file, benchmark)]
    others = published_standings([*added, *published], [standing.model for standing in own])
    return Leaderboard(benchmark, (*own, *others)).ranked()


def _standings(benchmark: str, run: Path) -> list[Standing]:
    study = open_runs([run])
    about = study.run.collection or "no collection"
    if about.split(" ")[0] != benchmark:
        raise UserError(
            f"expected a run over {benchmark}, got '{run}', which is over {about};"
            f" `counterfoil evaluate {benchmark}:PATH --out RUN` makes one"
        )
    tables = [table for table in paper_tables(study) if table.kind == "scored"]
    # How many: a part of an archive must not be taken for the whole.
    return own_standings(study, tables, f"your run {run.name}, n = {study.run.samples:,}")
