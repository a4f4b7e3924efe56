"""A run's tables of answers as columns: no row ever becomes a Python object, no column is read twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Answers, answers_from_tables
from counterfoil.analyse.prediction_tables import DETAIL_COLUMNS
from counterfoil.store import read_table
from counterfoil.store.results import RANKS

_ANSWER_COLUMNS = ("sample_id", "attribute", "edit", "level", "replicate", "object_share", "outcome", "correct")
_RANK_COLUMNS = tuple(f"rank_{place + 1}" for place in range(RANKS))
REPORT_COLUMNS = (*DETAIL_COLUMNS, *_RANK_COLUMNS[1:])


@dataclass(frozen=True)
class Predictions:
    """One model's table of answers; a column is read when it is first asked for, and kept."""

    path: Path
    _columns: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)

    def columns(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """These columns; those that were not read yet are read together."""
        missing = [name for name in names if name not in self._columns]
        if missing:
            self._columns.update(read_table(self.path, missing))
        return {name: self._columns[name] for name in names}

    @cached_property
    def among_five(self) -> NDArray[np.bool_]:
        """Of each answer whether the true label is among the five best."""
        table = self.columns(["label", *_RANK_COLUMNS])
        among = np.zeros(len(table["label"]), bool)
        for rank in _RANK_COLUMNS:
            among |= np.asarray(table[rank] == table["label"], bool)
        return among

    @cached_property
    def ranks_five(self) -> bool:
        """Whether the model ever ranks five answers: one that says one alone, or knows but four classes, does not."""
        return any(self.columns(_RANK_COLUMNS[-1:])[_RANK_COLUMNS[-1]])

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """How often an answer ended otherwise than scored, by how."""
        outcomes = Counter(self.columns(["outcome"])["outcome"])
        return {name: times for name, times in outcomes.items() if name != "scored"}

    @cached_property
    def labels(self) -> set[str]:
        """The labels that occur, true or answered."""
        return {label for column in self.columns(["label", "rank_1"]).values() for label in set(column)} - {""}

    def first_answers(self, wanted: set[str]) -> dict[str, tuple[str, float]]:
        """The first answer and its confidence, of the wanted variants that were scored."""
        table = self.columns(["variant_id", "outcome", "rank_1", "score_1"])
        rows = [row for row, name in enumerate(table["variant_id"]) if name in wanted]
        return {
            table["variant_id"][row]: (table["rank_1"][row], float(table["score_1"][row]))
            for row in rows
            if table["outcome"][row] == "scored"
        }


def answers_of(predictions: Mapping[str, Predictions]) -> Answers:
    """Every answer of every model, in the order of the models."""
    return answers_from_tables({model: table.columns(_ANSWER_COLUMNS) for model, table in predictions.items()})


def among_five(predictions: Mapping[str, Predictions]) -> NDArray[np.bool_]:
    """Whether the true label is among the five best, row by row as in `answers_of`."""
    return np.concatenate([table.among_five for table in predictions.values()])
