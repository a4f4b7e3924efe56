"""Tables by the papers' own rules, and their published numbers: found by the name of the collection.

A benchmark's glue is a function from a `Study` to `PaperTable`s, registered in `PAPERS` under the collection's name
(what `Collection.name` says, before a blank: "imagenet-d texture" finds "imagenet-d"). It reads what it needs from
`study.predictions` (by model), `study.answers` and `study.run`, and may be called for several runs over the same
pictures. The page, summary.json and the Markdown export show what it gives back; nothing else needs to be told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from counterfoil.numbers import benchmarks
from counterfoil.pipeline.published import RULES
from counterfoil.pipeline.recorded.beside import published_table
from counterfoil.pipeline.recorded.study import Study
from counterfoil.report import PaperTable

PaperRule: TypeAlias = Callable[[Study], Sequence[PaperTable]]

PAPERS: dict[str, PaperRule] = {**RULES}


def paper_tables(study: Study) -> Sequence[PaperTable]:
    """What the paper behind the study's collection would print; nothing where no paper is known."""
    name = study.run.collection.split(" ")[0]
    scored = tuple(PAPERS[name](study)) if name in PAPERS else ()
    return (*scored, published_table(study, scored, name)) if name in benchmarks() else scored
