"""A run's answers as tables for pandas and Arrow: one row per answer, or per photo with both answers side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.plugins import import_extra
from counterfoil.store.prediction_tables import PREDICTION_COLUMNS
from counterfoil.study.predictions import Predictions
from counterfoil.study.runs import Study

Columns = dict[str, NDArray[Any]]
_ANSWER = {"rank_1": "answer", "score_1": "confidence", "correct": "right"}  # column of a table to its name here
_KEYS = ("label", "attribute", "edit", "level", "replicate", "outcome", "true_score", "variant_id")


def list_answers(study: Study) -> Columns:
    """Every answer of every model, the columns of the prediction tables with the model before them."""
    names = list(PREDICTION_COLUMNS)
    return _stack([{"model": _repeat(model, columns), **columns} for model, columns in _read(study, names)])


def pair_answers(study: Study) -> Columns:
    """One row per photo, model and edited picture: the answer to the unedited photo beside that to the edited one."""
    names = ["sample_id", *_KEYS, *_ANSWER]
    return _stack([_pair(model, columns) for model, columns in _read(study, names)])


def _read(study: Study, names: list[str]) -> list[tuple[str, Columns]]:
    tables: list[tuple[str, Predictions]] = list(study.predictions.items())
    return [(model, table.columns(names)) for model, table in tables]


def _pair(model: str, columns: Columns) -> Columns:
    """The edited answers of one model with the answer to the original of the same photo; NaN or "" without one."""
    is_original = columns["attribute"] == "original"
    scored = columns["outcome"] == "scored"
    row_of = {columns["sample_id"][row]: row for row in np.flatnonzero(is_original & scored)}
    edited = np.flatnonzero(~is_original)
    before = np.array([row_of.get(name, -1) for name in columns["sample_id"][edited]], np.intp)
    pairs: Columns = {
        "model": np.full(len(edited), model, object),
        "photo": columns["sample_id"][edited],
        **{name: columns[name][edited] for name in ("label", "attribute", "edit", "level", "replicate")},
        "original_answer": _take(columns["rank_1"], before, ""),
        "answer": columns["rank_1"][edited],
        "original_confidence": _take(columns["score_1"].astype(np.float64), before, np.nan),
        "confidence": columns["score_1"][edited].astype(np.float64),
        "original_right": _take(columns["correct"].astype(object), before, None),
        "right": columns["correct"][edited],
        "outcome": columns["outcome"][edited],
        "variant_id": columns["variant_id"][edited],
    }
    return pairs


def _take(values: NDArray[Any], rows: NDArray[np.intp], missing: object) -> NDArray[Any]:
    """The values at these rows; `missing` where there is no row."""
    padded = np.append(values, np.array([missing], values.dtype))
    return np.asarray(padded[rows])


def _repeat(model: str, columns: Columns) -> NDArray[Any]:
    return np.full(len(next(iter(columns.values()))), model, object)


def _stack(tables: list[Columns]) -> Columns:
    names = list(tables[0]) if tables else []
    return {name: np.concatenate([table[name] for table in tables]) for name in names}


def to_frame(columns: Columns) -> Any:
    """The columns as a data frame of pandas; raises `UserError` where pandas is not installed."""
    return import_extra("pandas", "pandas").DataFrame(columns)


def to_arrow_table(columns: Columns) -> Any:
    """The columns as a table of pyarrow."""
    import pyarrow as pa

    return pa.table({name: pa.array(values.tolist()) for name, values in columns.items()})
