"""The tables as they were published; two sources that disagree stay two rows.

A folder per benchmark holds JSON files: `source`, a `note` for the whole table, and `rows` of a model with its values
by condition. Adding a row to the leaderboard is adding a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from counterfoil.errors import UserError, did_you_mean

if TYPE_CHECKING:  # Python 3.10 has it elsewhere
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


class Published(BaseModel):
    """One model's numbers in one source."""

    model_config = ConfigDict(frozen=True)

    benchmark: str
    model: str
    values: Mapping[str, float]  # by condition, in the source's own measure
    source: str
    note: str  # of the whole table
    remark: str  # of this row alone


def benchmarks() -> list[str]:
    """The benchmarks that numbers are known of."""
    return sorted(folder.name for folder in _shipped().iterdir() if folder.is_dir() and any(_files(folder)))


def published_numbers(benchmark: str) -> list[Published]:
    """Every published row of a benchmark, the sources in order of their files' names."""
    if benchmark not in benchmarks():
        raise UserError(
            f"expected a benchmark with published numbers ({', '.join(benchmarks())}), got '{benchmark}'"
            f"{did_you_mean(benchmark, benchmarks())}"
        )
    return [
        row for file in _files(_shipped() / benchmark) for row in _parsed(file.read_text("utf-8"), file.name, benchmark)
    ]


def read_numbers(path: Path, benchmark: str) -> list[Published]:
    """One's own file of numbers, in the form of the shipped ones."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"expected a JSON file of numbers, got {path}, which cannot be read: {error}") from error
    return list(_parsed(text, str(path), benchmark))


def _shipped() -> Traversable:
    return resources.files("counterfoil.numbers")


def _files(folder: Traversable) -> list[Traversable]:
    return sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)


def _parsed(text: str, where: str, benchmark: str) -> Iterator[Published]:
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
        yield Published(
            benchmark=benchmark, model=row.model, values=row.values, source=table.source,
            note=table.note, remark=row.note,
        )  # fmt: skip
