"""Speed of the statistics against common alternatives: grouping, and tables of predictions.

    python bench/analyse.py [--models 50] [--repeats 3]

CPU seconds of one process with one thread, measured in turns; only the ratios are meaningful. Needs pandas.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is there

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers
from counterfoil.statistics.drops import measure_drops
from counterfoil.store.parquet import DictionaryColumn, Kind, TableWriter, dictionary_encode, read_dictionary_table
from counterfoil.study.predictions import answers_from_tables
from figures import note_figure

CONDITIONS, PHOTOS = 12, 5_000
KINDS: dict[str, Kind] = {
    "variant_id": "text", "sample_id": "text", "label": "text", "attribute": "text", "edit": "text", "level": "text",
    "replicate": "int", "object_share": "double", "outcome": "text", "correct": "bool", "true_score": "float",
    "rank_1": "text", "score_1": "float",
}  # fmt: skip
GROUPED = ("attribute", "edit", "level", "correct", "outcome", "sample_id", "object_share", "replicate")

Table = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    wanted = parser.parse_args()
    rng = np.random.default_rng(0)
    print(f"{wanted.models} models x {CONDITIONS} conditions x {PHOTOS} photos")
    tables = {f"model-{place}": prediction_table(rng) for place in range(wanted.models)}
    with tempfile.TemporaryDirectory() as folder:
        writing(Path(folder), tables, wanted.repeats)
        grouping(Path(folder), tables, wanted.repeats)


def prediction_table(rng: np.random.Generator) -> Table:
    """One model's answers, photo by photo, as the evaluation hands them over."""
    photo, condition = np.repeat(np.arange(PHOTOS), CONDITIONS), np.tile(np.arange(CONDITIONS), PHOTOS)
    labels = np.array([f"n{10_000_000 + 37 * place}" for place in range(1_000)], object)
    samples = np.array([f"{labels[p % 1_000]}/ILSVRC2012_val_{p:08d}" for p in range(PHOTOS)], object)
    levels = np.array(["none", *(f"level-{place}" for place in range(1, CONDITIONS))], object)
    kinds = np.array(["original"] + ["background"] * (CONDITIONS - 1), object)
    rows = PHOTOS * CONDITIONS
    correct = rng.random(rows) < 0.7
    return {
        "variant_id": np.array([f"{place:016x}" for place in range(rows)], object), "sample_id": samples[photo],
        "label": labels[photo % 1_000], "attribute": kinds[condition], "edit": kinds[condition],
        "level": levels[condition], "replicate": np.zeros(rows, np.int64), "object_share": rng.random(rows) * 40,
        "outcome": np.full(rows, "scored", object), "correct": correct, "true_score": rng.random(rows, np.float32),
        "rank_1": np.where(correct, labels[photo % 1_000], labels[rng.integers(0, 1_000, rows)]),
        "score_1": rng.random(rows, np.float32),
    }  # fmt: skip


def writing(folder: Path, tables: Mapping[str, Table], repeats: int) -> None:
    frames = {model: pd.DataFrame(table).assign(model=model) for model, table in tables.items()}
    columns = {model: {name: encoded(column) for name, column in table.items()} for model, table in tables.items()}
    texts = median_seconds(lambda: write_tables(folder, tables), repeats)
    ours = median_seconds(lambda: write_tables(folder, columns), repeats)
    csv = median_seconds(lambda: write_csv(folder, frames), 1)
    rows = median_seconds(lambda: write_rows(folder, frames), 1)
    print(f"write {len(tables) * CONDITIONS * PHOTOS:,} rows: {ours:.2f} s; pandas CSV {csv / ours:.1f}x, "
          f"SQLite rows {rows / ours:.1f}x; from uncoded texts {csv / texts:.1f}x, {rows / texts:.1f}x")  # fmt: skip
    note_figure("write tables, against pandas CSV", csv / ours)
    note_figure("write tables, against SQLite rows", rows / ours)


def encoded(column: NDArray[Any]) -> NDArray[Any] | DictionaryColumn:
    return dictionary_encode(column) if column.dtype == object else column


def write_tables(folder: Path, tables: Mapping[str, Table]) -> None:
    for model, table in tables.items():
        with TableWriter(folder / f"{model}.parquet", KINDS) as writer:
            writer.write(table)


def write_csv(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    for place, frame in enumerate(frames.values()):
        frame.to_csv(folder / "all.csv", mode="a" if place else "w", header=not place, index=False)


def write_rows(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    (folder / "all.sqlite").unlink(missing_ok=True)
    with sqlite3.connect(folder / "all.sqlite") as database:
        columns = [*KINDS, "model"]
        database.execute(f"CREATE TABLE predictions ({', '.join(columns)})")
        for frame in frames.values():
            marks = ", ".join("?" * len(columns))
            rows = frame[columns].itertuples(index=False, name=None)
            database.executemany(f"INSERT INTO predictions VALUES ({marks})", rows)


def grouping(folder: Path, tables: Mapping[str, Table], repeats: int) -> None:
    """Accuracy by model and level: from columns in memory, and from the files."""
    answers = answers_from_tables(tables)
    in_memory = median_seconds(lambda: replace(answers).tally, repeats)
    by_photo = median_seconds(lambda: read_answers(folder, list(tables)).tally, repeats)
    print(f"group {len(answers.model):,} predictions by model, condition and photo: {in_memory:.2f} s in memory, "
          f"{by_photo:.2f} s from files")  # fmt: skip
    ours = median_seconds(lambda: group_tables(folder, list(tables)), repeats)
    csv = median_seconds(lambda: group_csv(folder), 1)
    rows = median_seconds(lambda: group_rows(folder), 1)
    print(f"  by model and level from files: {ours:.3f} s; pandas on CSV {csv / ours:.1f}x, SQLite {rows / ours:.1f}x")
    note_figure("accuracy from files, against pandas on CSV", csv / ours)
    note_figure("accuracy from files, against SQLite", rows / ours)
    whole = median_seconds(lambda: measure_drops(answers), 1)
    print(f"  all drops with intervals and tests: {whole:.2f} s")
    check(answers, group_tables(folder, list(tables)), group_csv(folder))


def read_answers(folder: Path, models: list[str]) -> Answers:
    return answers_from_tables({model: read_dictionary_table(folder / f"{model}.parquet", GROUPED) for model in models})


def group_tables(folder: Path, models: list[str]) -> dict[str, dict[str, float]]:
    return {
        model: group_table(read_dictionary_table(folder / f"{model}.parquet", ["level", "correct", "outcome"]))
        for model in models
    }


def group_table(table: Mapping[str, Any]) -> dict[str, float]:
    scored = (table["outcome"].dictionary == "scored")[table["outcome"].indices]
    level = table["level"].indices[scored]
    rates = np.bincount(level, table["correct"][scored]) / np.bincount(level)
    return dict(zip(table["level"].dictionary, rates.tolist(), strict=True))


def group_csv(folder: Path) -> pd.Series:
    frame = pd.read_csv(folder / "all.csv", usecols=["model", "level", "correct", "outcome"])
    means: pd.Series = frame[frame.outcome == "scored"].groupby(["model", "level"]).correct.mean()
    return means


def group_rows(folder: Path) -> list[tuple[str, str, float]]:
    with sqlite3.connect(folder / "all.sqlite") as database:
        wanted = "SELECT model, level, AVG(correct) FROM predictions WHERE outcome = 'scored' GROUP BY model, level"
        return database.execute(wanted).fetchall()


def check(answers: Answers, grouped: dict[str, dict[str, float]], reference: pd.Series) -> None:
    tally = answers.tally
    rates = tally.right.sum(axis=2) / tally.scored.sum(axis=2)
    for place, model in enumerate(answers.models):
        theirs = [reference[model, condition.level] for condition in answers.conditions]
        np.testing.assert_allclose(rates[place], theirs)
        np.testing.assert_allclose([grouped[model][condition.level] for condition in answers.conditions], theirs)


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds of this process: what neighbours do does not count."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
