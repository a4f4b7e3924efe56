"""A run's tables of answers as columns: no row ever becomes a Python object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Answers, answers_from_tables
from counterfoil.store import read_table
from counterfoil.store.results import RANKS

_COLUMNS = ("sample_id", "attribute", "edit", "level", "replicate", "object_share", "outcome", "correct")


def read_answers(files: Mapping[str, Path]) -> Answers:
    """Every answer of every model; `files` says where each model's are, in the order of the table."""
    return answers_from_tables({model: read_table(path, _COLUMNS) for model, path in files.items()})


def read_top5(files: Mapping[str, Path]) -> NDArray[np.bool_]:
    """Whether the true label is among the five best, row by row as in `read_answers`."""
    return np.concatenate([_among_the_best(path) for path in files.values()])


def ranks_five(path: Path) -> bool:
    """Whether a model ever ranks five answers: one that says a single one, or knows but four classes, does not."""
    return any(read_table(path, [f"rank_{RANKS}"])[f"rank_{RANKS}"])


def read_said(path: Path, wanted: set[str]) -> dict[str, tuple[str, float]]:
    """The first answer and its confidence, of the wanted variants that were scored."""
    table = read_table(path, ["variant_id", "outcome", "rank_1", "score_1"])
    rows = [row for row, name in enumerate(table["variant_id"]) if name in wanted]
    return {
        table["variant_id"][row]: (table["rank_1"][row], float(table["score_1"][row]))
        for row in rows
        if table["outcome"][row] == "scored"
    }


def read_outcomes(path: Path) -> dict[str, int]:
    """How often an answer ended otherwise than scored, by how."""
    return {
        name: times for name, times in Counter(read_table(path, ["outcome"])["outcome"]).items() if name != "scored"
    }


def _among_the_best(path: Path) -> NDArray[np.bool_]:
    ranks = [f"rank_{place + 1}" for place in range(RANKS)]
    table = read_table(path, ["label", *ranks])
    found = np.zeros(len(table["label"]), bool)
    for rank in ranks:
        found |= np.asarray(table[rank] == table["label"], bool)
    return found
