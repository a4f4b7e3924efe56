"""Tables by the papers' own rules, and their published numbers: found by the name of the collection.

A benchmark's glue is a function from a `Study` to `PaperTable`s, registered in `PAPERS` under the collection's name
(what `Collection.name` says, before a blank: "imagenet-d texture" finds "imagenet-d"). It reads what it needs from
`study.files` (answers per model), `study.answers` and `study.run`, and may be called for several runs over the same
pictures. The page, summary.json and the Markdown export show what it gives back; nothing else needs to be told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from counterfoil.numbers import Published, benchmarks, published_numbers
from counterfoil.pipeline.published import RULES
from counterfoil.pipeline.recorded.study import Study
from counterfoil.report import PaperTable

PaperRule: TypeAlias = Callable[[Study], Sequence[PaperTable]]

PAPERS: dict[str, PaperRule] = {**RULES}


def paper_tables(study: Study) -> Sequence[PaperTable]:
    """What the paper behind the study's collection would print; nothing where no paper is known."""
    name = study.run.collection.split(" ")[0]
    scored = tuple(PAPERS[name](study)) if name in PAPERS else ()
    return (*scored, *_beside(scored, list(study.files), name)) if name in benchmarks() else scored


def _beside(scored: Sequence[PaperTable], models: Sequence[str], name: str) -> Sequence[PaperTable]:
    """The study's models above what was published, where both speak of the same condition."""
    published = published_numbers(name)
    conditions = list(dict.fromkeys(condition for row in published for condition in row.values))
    sources = {told: number for number, told in enumerate(dict.fromkeys(map(_source, published)), 1)}
    own = [(model, *(_value(scored, model, condition) for condition in conditions), "yours") for model in models]
    others = [
        (row.model, *(row.values.get(condition) for condition in conditions), f"[{sources[_source(row)]}]")
        for row in published
    ]
    return [
        PaperTable(
            f"{name}: your models and published numbers",
            "Numbers as their sources print them, in each source's own measure; sources that disagree stay apart.",
            ("model", *conditions, "source"),
            (*own, *others),
            tuple(f"[{number}] {told}" for told, number in sources.items()),
            kind="published",
            own=frozenset(range(len(own))),
            decimals=2,
        )
    ]


def _source(row: Published) -> str:
    return f"{row.source}; {row.note}" if row.note else row.source


def _value(scored: Sequence[PaperTable], model: str, condition: str) -> str | float | None:
    """A model's number under a condition, from whichever table has it."""
    found = [
        row[table.columns.index(condition)]
        for table in scored
        if condition in table.columns
        for row in table.rows
        if row[0] == model
    ]
    return found[0] if found else None
