"""Answers and details from whole prediction tables, column by column: no Python object per answer.

A text column is an array of texts, or a pair (words, codes) as a dictionary-coded file holds it: that is 10x faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Answers, Condition, coded
from counterfoil.analyse.details import NO_LABEL, Details
from counterfoil.errors import UserError

DETAIL_COLUMNS = (  # what `details_from_tables` reads
    "variant_id", "sample_id", "label", "attribute", "edit", "level", "replicate", "object_share", "outcome", "correct",
    "true_score", "rank_1", "score_1", "score_2",
)  # fmt: skip

TextColumn: TypeAlias = "NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]"
Tables: TypeAlias = Mapping[str, Mapping[str, Any]]  # by model, then by column


class _Text(NamedTuple):
    words: tuple[str, ...]
    codes: NDArray[np.intp]


def answers_from_tables(tables: Tables, *, conditions: Sequence[Condition] = ()) -> Answers:
    """Prediction tables, by model, as answers; conditions that are not given come in the order of first appearance."""
    _refuse_nothing(tables)
    known_conditions, condition = _conditions(tables, conditions)
    samples, sample = _text(tables, "sample_id")
    outcomes, outcome = _text(tables, "outcome")
    return Answers(
        tuple(tables),
        known_conditions,
        samples,
        model=np.repeat(np.arange(len(tables)), [len(table["correct"]) for table in tables.values()]),
        condition=condition,
        sample=sample,
        replicate=_numbers(tables, "replicate").astype(np.intp),
        correct=_numbers(tables, "correct").astype(bool),
        scored=np.array([word == "scored" for word in outcomes], dtype=bool)[outcome],
        object_share=_numbers(tables, "object_share").astype(np.float64),
    )


def details_from_tables(
    tables: Tables,
    *,
    lenders: Mapping[str, str] | None = None,
    centres: Mapping[str, tuple[float, float]] | None = None,
) -> Details:
    """Prediction tables, by model, with all they say; lenders' classes and objects' centres by variant id."""
    answers = answers_from_tables(tables)
    variants = _text(tables, "variant_id")
    lent = _Text(tuple((lenders or {}).get(word, "") for word in variants.words), variants.codes)
    labels, (label, answer, lender) = _labels([_text(tables, "label"), _text(tables, "rank_1"), lent])
    first, second = (_numbers(tables, name).astype(np.float64) for name in ("score_1", "score_2"))
    places = np.array([(centres or {}).get(word, (np.nan, np.nan)) for word in variants.words]).reshape(-1, 2)
    return Details(
        answers,
        labels,
        label=label,
        answer=answer,
        true_score=_numbers(tables, "true_score").astype(np.float64),
        top_score=first,
        other_score=np.where(label == answer, second, first),
        lender=lender,
        centre=places[variants.codes],
    )


def _refuse_nothing(tables: Tables) -> None:
    if not tables:
        raise UserError("expected the predictions of one model at least, got none")


def _numbers(tables: Tables, name: str) -> NDArray[Any]:
    return np.concatenate([table[name] for table in tables.values()])


def _text(tables: Tables, name: str) -> _Text:
    return _merged(table[name] for table in tables.values())


def _merged(columns: Iterable[TextColumn]) -> _Text:
    """One coding of several columns, words in the order of first appearance in their dictionaries."""
    places: dict[str, int] = {}
    parts = []
    for column in columns:
        words, codes = column if isinstance(column, tuple) else coded(column)
        own = np.array([places.setdefault(word, len(places)) for word in words], dtype=np.intp)
        parts.append(own[codes] if len(own) else np.zeros(0, np.intp))
    return _Text(tuple(places), np.concatenate(parts))


def _labels(columns: Sequence[_Text]) -> tuple[tuple[str, ...], list[NDArray[np.intp]]]:
    """The labels that occur, sorted, and each column's positions among them; the empty text is no label."""
    known = sorted({word for column in columns for word in column.words} - {""})
    places = {"": NO_LABEL, **{word: place for place, word in enumerate(known)}}
    coded_columns = [
        np.array([places[word] for word in column.words], dtype=np.intp)[column.codes] for column in columns
    ]
    return tuple(known), coded_columns


def _conditions(tables: Tables, known: Sequence[Condition]) -> tuple[tuple[Condition, ...], NDArray[np.intp]]:
    """Conditions from their three columns; only distinct triples become Python objects."""
    parts = [_text(tables, name) for name in Condition._fields]
    shape = [max(1, len(part.words)) for part in parts]
    triple = np.ravel_multi_index([part.codes for part in parts], shape)
    first = np.full(math.prod(shape), len(triple), np.intp)
    np.minimum.at(first, triple, np.arange(len(triple)))
    present = np.argsort(first, kind="stable")[: int((first < len(triple)).sum())]
    found = [Condition(*(part.words[part.codes[first[place]]] for part in parts)) for place in present]
    order, positions = coded([*known, *found])
    lookup = np.zeros(math.prod(shape), np.intp)
    lookup[present] = positions[len(known) :]
    return order, lookup[triple]
