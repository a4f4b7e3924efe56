"""Predictions that another program made, read from CSV or Parquet.

Each row names a picture (`variant_id`, or `file` for unedited photos), a `class` and, where known, its `probability`;
several rows of one picture are its ranking, and in Parquet a row may hold lists of both. A picture without a row is
counted as an error, never as a wrong answer.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.model_options import Request
from counterfoil.models.model_protocol import ModelBase
from counterfoil.models.weight_files import check_file
from counterfoil.store.files import hash_file
from counterfoil.store.parquet import open_parquet
from counterfoil.store.prediction_tables import RANKS
from counterfoil.types import Model, Prediction, Preprocessing, Variant

_PICTURE = ("variant_id", "file", "filename", "file_name", "image")
_CLASS = ("class", "label", "prediction")
_PROBABILITY = ("probability", "score", "confidence")
_RUN_COLUMNS = {"variant_id", "outcome", *(f"{name}_{rank + 1}" for name in ("rank", "score") for rank in range(RANKS))}

Ranking = list[tuple[str, float]]  # class and probability, best first


@dataclass(frozen=True)
class SavedPredictions(ModelBase):
    """Saved answers of a model that is not loaded."""

    name: str
    labels: tuple[str, ...]
    digest: str
    rankings: Mapping[str, Ranking] = field(repr=False)
    preprocessing: Preprocessing | None = None

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Raises `UserError`: there is no model to run on new pictures."""
        raise UserError(f"expected pictures that {self.name} has answers for; it cannot look at new ones")

    @property
    def gives_scores(self) -> bool:
        """False: there are only answers."""
        return False

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """The saved answer to each variant."""
        return [self._answer(variant) for variant in variants]

    def _answer(self, variant: Variant) -> Prediction:
        ranking = self.rankings.get(variant.id)
        if ranking is None and variant.attribute == "original" and variant.sample_id is not None:
            names = (variant.sample_id, PurePosixPath(variant.sample_id).name, PurePosixPath(variant.sample_id).stem)
            ranking = next((self.rankings[name] for name in names if name in self.rankings), None)
        if ranking is None:
            return Prediction(variant.id, (), (), float("nan"), "error", f"{self.name} has no row for this picture")
        best = ranking[:RANKS]
        true_score = dict(ranking).get(variant.label, 0.0)
        return Prediction(variant.id, tuple(label for label, _ in best), tuple(score for _, score in best), true_score)


def load_predictions(request: Request) -> Model:
    """The saved answers in a file."""
    path = Path(request.place)
    check_file(path, "predictions as CSV or Parquet")
    columns = _read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _read_csv(path)
    rankings = _read_run_table(columns) if columns.keys() >= _RUN_COLUMNS else _read_rankings(path, columns)
    space = request.options.classes
    known = space.labels if space else imagenet1k().labels
    answered = dict.fromkeys(label for ranking in rankings.values() for label, _ in ranking)
    labels = known if all(label in set(known) for label in answered) else tuple({**answered, **dict.fromkeys(known)})
    return SavedPredictions(request.address, tuple(labels), hash_file(path), rankings)


def _read_csv(path: Path) -> Mapping[str, Sequence[Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:  # a quoted name may hold a line break
            rows = list(csv.reader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"expected predictions as CSV, got {path}: {error}") from error
    header, body = rows[0], [row for row in rows[1:] if row]
    short = next((number for number, row in enumerate(body, 2) if len(row) != len(header)), None)
    if short is not None:
        raise UserError(f"expected {len(header)} columns in every row of {path}, row {short} has another number")
    return {name: [row[place] for row in body] for place, name in enumerate(header)}


def _read_parquet(path: Path) -> Mapping[str, Sequence[Any]]:
    """The columns of any program's Parquet file."""
    with open_parquet(path) as file:
        columns: Mapping[str, Sequence[Any]] = file.read().to_pydict()
    return columns


def _read_run_table(columns: Mapping[str, Sequence[Any]]) -> dict[str, Ranking]:
    """The rankings of a run's own table of predictions, where the model gave one."""
    ranks = range(1, RANKS + 1)
    labels, scores = (
        list(zip(*(columns[f"{name}_{rank}"] for rank in ranks), strict=True)) for name in ("rank", "score")
    )
    return {
        variant: [
            (label, math.nan if score is None else float(score))
            for label, score in zip(row, given, strict=True)
            if label
        ]
        for variant, row, given, outcome in zip(columns["variant_id"], labels, scores, columns["outcome"], strict=True)
        if outcome == "scored"
    }


def _read_rankings(path: Path, columns: Mapping[str, Sequence[Any]]) -> dict[str, Ranking]:
    pictures = _find_column(path, columns, _PICTURE)
    classes = _find_column(path, columns, _CLASS)
    there = any(name in columns for name in _PROBABILITY)
    probabilities = _find_column(path, columns, _PROBABILITY) if there else ["1"] * len(pictures)
    rankings: dict[str, Ranking] = {}
    for number, (picture, label, given) in enumerate(zip(pictures, classes, probabilities, strict=True), 2):
        ranking = rankings.setdefault(_decode_text(path, number, picture), [])
        for one, probability in _split_answers(path, number, label, given):
            ranking.append(
                (_resolve_class(_decode_text(path, number, one)), _parse_probability(path, number, probability))
            )
    if not rankings:
        raise UserError(f"expected predictions in {path}, got none")
    return {picture: _sort_ranking(path, picture, ranking) for picture, ranking in rankings.items()}


def _split_answers(path: Path, number: int, label: Any, given: Any) -> list[tuple[Any, Any]]:
    """The answers of one row: one class, or a list of classes with a list of as many probabilities."""
    if not isinstance(label, list):
        return [(label, given)]
    probabilities = given if isinstance(given, list) else [given] * len(label)
    if len(probabilities) != len(label):
        raise UserError(
            f"expected as many probabilities as classes in row {number} of {path}, got {len(probabilities)} for"
            f" {len(label)}"
        )
    return list(zip(label, probabilities, strict=True))


def _decode_text(path: Path, number: int, value: Any) -> str:
    """A picture's or a class's name; some programs write texts as bytes."""
    if value is None:
        raise UserError(f"expected a picture and a class in row {number} of {path}, got an empty cell")
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError as error:
        raise UserError(f"expected text in UTF-8 in row {number} of {path}, got other bytes") from error


def _sort_ranking(path: Path, picture: str, ranking: Ranking) -> Ranking:
    if len({label for label, _ in ranking}) < len(ranking):
        raise UserError(f"expected each class once for '{picture}' in {path}, got one twice")
    return sorted(ranking, key=lambda answer: -answer[1])


def _resolve_class(text: str) -> str:
    """ImageNet classes may be given by an unambiguous name."""
    labels = imagenet1k().lookup(text)
    return labels[0] if len(labels) == 1 else text


def _parse_probability(path: Path, number: int, given: Any) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not 0 <= value <= 1:
        raise UserError(f"expected a probability from 0 to 1 in row {number} of {path}, got '{given}'")
    return value


def _find_column(path: Path, columns: Mapping[str, Sequence[Any]], names: Iterable[str]) -> Sequence[Any]:
    for name in names:
        if name in columns:
            return columns[name]
    raise UserError(f"expected a column '{next(iter(names))}' in {path}, got {', '.join(columns)}")
