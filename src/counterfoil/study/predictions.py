"""The table of one model's predictions, read once; answers and details of several models from such tables.

A text column is an array of texts, or a pair (words, codes) as in a dictionary-coded file, which is 10x faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.statistics.answers import NO_LABEL, Answers, Codes, Condition, Details, encode_labels, shorten_codes
from counterfoil.store.packed_texts import PackedTexts
from counterfoil.store.parquet import DictionaryColumn, find_texts, read_dictionary_table
from counterfoil.store.prediction_tables import RANKS
from counterfoil.store.table_columns import KeptColumn, TableColumns, pack_column, shorten_column, unpack_column
from counterfoil.types import TOOL_CHECKS

_RANK_COLUMNS = tuple(f"rank_{place + 1}" for place in range(RANKS))
ANSWER_COLUMNS = ("sample_id", "attribute", "edit", "level", "replicate", "object_share", "outcome", "correct")
SCORE_COLUMNS = ("label", "true_score", "rank_1", "score_1", "score_2")  # what details have besides
DETAIL_COLUMNS = (*ANSWER_COLUMNS, *SCORE_COLUMNS)
# With more models, tables are read a few at a time, and there are too many pairs to show: the letters of ties remain.
MOST_MODELS_AT_ONCE = 12
_ANSWER_FIELDS = ("model", "condition", "sample", "replicate", "correct", "scored", "object_share")
REPORT_COLUMNS = (*DETAIL_COLUMNS, *_RANK_COLUMNS[1:])

FirstAnswers: TypeAlias = dict[str, tuple[str, float]]  # by variant: the answer and its confidence
Tables: TypeAlias = Mapping[str, Mapping[str, Any]]  # by model, then by column


@dataclass(frozen=True)
class Predictions:
    """One model's table of answers; a column is read on first use, and kept."""

    path: Path
    keep: bool = True  # False reads columns anew on every use: the tables of a hundred models fill the memory
    _columns: dict[str, NDArray[Any] | DictionaryColumn | KeptColumn] = field(
        default_factory=dict, repr=False, compare=False
    )
    _firsts: dict[frozenset[str], FirstAnswers] = field(default_factory=dict, repr=False, compare=False)

    def columns(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return these columns without the rows of tool checks, texts as objects, made anew on every call."""
        return {name: _expand(column) for name, column in self.coded_columns(names).items()}

    def coded_columns(self, names: Sequence[str]) -> dict[str, NDArray[Any] | DictionaryColumn]:
        """Return these columns without the rows of tool checks, texts as distinct words and codes."""
        columns, ordinary = self._read(names), self._ordinary
        return columns if ordinary is None else {name: _select(values, ordinary) for name, values in columns.items()}

    def all_columns(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return these columns with the rows of tool checks: pictures made again with another fill or mask."""
        return {name: _expand(column) for name, column in self._read(names).items()}

    @property
    def has_checks(self) -> bool:
        """Whether there are rows of tool checks."""
        return self._ordinary is not None

    @cached_property
    def _ordinary(self) -> NDArray[np.bool_] | None:
        """Which rows are no tool checks; None where all are."""
        column = self._read(["attribute"])["attribute"]
        words, codes = column if isinstance(column, DictionaryColumn) else encode_labels(column)
        rows = np.array([word not in TOOL_CHECKS for word in words], bool)[codes]
        return None if rows.all() else rows

    def _read(self, names: Sequence[str]) -> dict[str, NDArray[Any] | DictionaryColumn]:
        """The columns as they are stored; those not read yet are read together."""
        missing = [name for name in names if name not in self._columns]
        read: dict[str, NDArray[Any] | DictionaryColumn] = {}
        if missing:
            table = read_dictionary_table(self.path, missing)
            read = {name: shorten_column(column) for name, column in table.items()}
            self._columns.update({name: pack_column(column) for name, column in read.items()} if self.keep else {})
        return {name: read[name] if name in read else unpack_column(self._columns[name]) for name in names}

    @cached_property
    def top5_correct(self) -> NDArray[np.bool_]:
        """For each answer, whether the true label is among the five best."""
        table = self.columns(["label", *_RANK_COLUMNS])
        named = np.asarray(table["label"] != "", bool)  # imported answers may not say the photos' classes
        matches = [np.asarray(table[rank] == table["label"], bool) & named for rank in _RANK_COLUMNS]
        return np.asarray(np.logical_or.reduce(matches), bool)

    @cached_property
    def ranks_five(self) -> bool:
        """Whether the model ever ranks five answers; one with a single answer, or with fewer classes, does not."""
        return any(self.columns(_RANK_COLUMNS[-1:])[_RANK_COLUMNS[-1]])

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """The number of answers that were not scored, by outcome."""
        outcomes = Counter(self.columns(["outcome"])["outcome"])
        return {name: times for name, times in outcomes.items() if name != "scored"}

    @cached_property
    def labels(self) -> set[str]:
        """The labels that occur, true or answered."""
        return {label for column in self.columns(["label", "rank_1"]).values() for label in set(column)} - {""}

    def first_answers(self, wanted: set[str]) -> FirstAnswers:
        """The first answer and its confidence, for the wanted variants that were scored; kept, being few."""
        key = frozenset(wanted)
        if key not in self._firsts:
            self._firsts[key] = self._read_first_answers(key) if key else {}
        return self._firsts[key]

    def _read_first_answers(self, wanted: frozenset[str]) -> FirstAnswers:
        names, rows = find_texts(self.path, "variant_id", wanted)
        table = {name: _select(column, rows) for name, column in self._read(["outcome", "rank_1", "score_1"]).items()}
        outcome, answer, score = (_expand(column) for column in table.values())
        return {name: (answer[row], float(score[row])) for row, name in enumerate(names) if outcome[row] == "scored"}

    def locate_in(self, manifest: TableColumns) -> NDArray[np.int64]:
        """The place of each answer's picture in a manifest, -1 where it is not there."""
        places = manifest.locate("id", self.path, "variant_id")
        return places if self._ordinary is None else places[self._ordinary]


def open_predictions(files: Mapping[str, Path]) -> dict[str, Predictions]:
    """The tables of these models; their columns are kept only where there are few."""
    keep = len(files) <= MOST_MODELS_AT_ONCE
    return {model: Predictions(path, keep) for model, path in files.items()}


def _expand(column: NDArray[Any] | DictionaryColumn) -> NDArray[Any]:
    """A column as the file has it: texts as objects, whole numbers in eight bytes."""
    if not isinstance(column, DictionaryColumn):
        return column.astype(np.int64) if column.dtype.kind == "i" else column
    texts: NDArray[Any] = column.dictionary[column.indices]
    return texts


def _select(
    column: NDArray[Any] | DictionaryColumn, rows: NDArray[np.bool_] | NDArray[np.intp]
) -> NDArray[Any] | DictionaryColumn:
    if isinstance(column, DictionaryColumn):
        return DictionaryColumn(column.dictionary, column.indices[rows])
    return column[rows]


def answers_from_tables(tables: Tables) -> Answers:
    """Convert prediction tables, by model, to answers; conditions are in the order of first appearance."""
    return collect_answers(tables.items())


def collect_answers(tables: Iterable[tuple[str, Mapping[str, Any]]]) -> Answers:
    """Convert prediction tables to answers one after the other, so that only one has to be in memory."""
    models: list[str] = []
    samples: dict[str, int] = {}
    conditions: dict[Condition, int] = {}
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in _ANSWER_FIELDS}
    for model, table in tables:
        columns["model"].append(np.full(len(table["correct"]), len(models), np.int16))
        models.append(model)
        columns["sample"].append(_encode(table["sample_id"], samples))
        columns["condition"].append(_encode_conditions(table, conditions))
        columns["replicate"].append(shorten_codes(table["replicate"]))
        columns["correct"].append(table["correct"].astype(bool, copy=False))
        words, codes = _words_and_codes(table["outcome"])
        columns["scored"].append(np.array([word == "scored" for word in words], dtype=bool)[codes])
        columns["object_share"].append(table["object_share"].astype(np.float64, copy=False))
    if not models:
        raise UserError("expected the predictions of one model at least, got none")
    joined = {name: _join(columns.pop(name)) for name in _ANSWER_FIELDS}
    names = PackedTexts([*samples])
    return Answers(models=tuple(models), conditions=tuple(conditions), samples=names, **cast(Any, joined))


def _join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The parts one after the other; a single one is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _words_and_codes(column: Any) -> tuple[Sequence[str], NDArray[Any]]:
    """The distinct words of a text column, and the position of each row's word among them."""
    return column if isinstance(column, tuple) else encode_labels(column)


def _encode(column: Any, places: dict[str, int]) -> Codes:
    """The place of each row's word among all that occurred so far; new words are added."""
    words, codes = _words_and_codes(column)
    own = np.array([places.setdefault(word, len(places)) for word in words], dtype=np.intp)
    return shorten_codes(own)[codes] if len(own) else np.zeros(0, np.int8)


def _encode_conditions(table: Mapping[str, Any], places: dict[Condition, int]) -> Codes:
    """The place of each row's condition; only distinct triples become Python objects, in order of first appearance."""
    parts = [_words_and_codes(table[name]) for name in Condition._fields]
    triple = np.ravel_multi_index([codes for _, codes in parts], [max(1, len(words)) for words, _ in parts])
    distinct, first, code = np.unique(triple, return_index=True, return_inverse=True)
    place_of = np.zeros(len(distinct), np.intp)
    for number in np.argsort(first, kind="stable"):
        row = first[number]
        condition = Condition(*(str(words[codes[row]]) for words, codes in parts))
        place_of[number] = places.setdefault(condition, len(places))
    return shorten_codes(place_of)[code]


def details_from_tables(
    tables: Tables,
    *,
    answers: Answers | None = None,
    donors: Mapping[str, str] | None = None,
    centres: Mapping[str, tuple[float, float]] | None = None,
) -> Details:
    """Convert prediction tables, by model, to labels and scores; donors' classes and objects' centres by variant id.

    `answers` are those of the same tables, where they were converted before.
    """
    answers = answers_from_tables(tables) if answers is None else answers
    centre = _look_up_centres(tables, centres or {}, len(answers.sample))
    return build_details(tables, answers, PictureFacts(_look_up(tables, donors or {}), centre))


class TextCodes(NamedTuple):
    """A column of texts: the distinct words, and the position of each row's word among them."""

    words: tuple[str, ...]
    codes: Codes

    def of_rows(self) -> TextCodes:
        """The column with those words alone that occur in a row."""
        there = np.flatnonzero(np.bincount(self.codes, minlength=len(self.words)))
        place_of = np.zeros(len(self.words), np.intp)
        place_of[there] = np.arange(len(there))
        return TextCodes(tuple(self.words[place] for place in there), shorten_codes(place_of)[self.codes])


class PictureFacts(NamedTuple):
    """What the manifest says about the picture of each answer."""

    donor: TextCodes  # the class of the donor, empty where there is none
    centre: NDArray[np.float64]  # (rows, 2), object's centre as x and y, NaN where it is not known

    @classmethod
    def unknown(cls, rows: int) -> PictureFacts:
        """Of answers to pictures of which the manifest says neither."""
        return cls(TextCodes(("",), np.zeros(rows, np.int8)), _no_centres(rows))

    @classmethod
    def of(
        cls, places: NDArray[np.int64], donors: DictionaryColumn | None, centres: NDArray[np.float64] | None
    ) -> PictureFacts:
        """The facts of answers by the places of their pictures in a manifest, -1 where they have none."""
        there = places >= 0
        words = ("",) if donors is None else ("", *donors.dictionary)
        donor = np.zeros(len(places), np.min_scalar_type(-len(words)))
        if donors is not None:
            donor[there] = donors.indices[places[there]] + 1
        centre = _no_centres(len(places))
        if centres is not None:
            centre = centre.copy()
            centre[there] = centres[places[there]]
        return cls(TextCodes(words, donor).of_rows(), centre)


def _no_centres(rows: int) -> NDArray[np.float64]:
    """No known centre in any row; one NaN stands for all."""
    return np.broadcast_to(np.array(np.nan), (rows, 2))


def build_details(tables: Tables, answers: Answers, facts: PictureFacts) -> Details:
    """Convert prediction tables, by model, to labels and scores; `answers` are those of the same tables."""
    labels, (label, answer, donor) = _labels([_text(tables, "label"), _text(tables, "rank_1"), facts.donor])
    first, second = (_numbers(tables, name) for name in ("score_1", "score_2"))
    return Details(
        answers=answers,
        labels=labels,
        label=label,
        answer=answer,
        true_score=_numbers(tables, "true_score"),
        top_score=first,
        other_score=np.where(label == answer, second, first),
        donor=donor,
        centre=facts.centre,
    )


def _numbers(tables: Tables, name: str) -> NDArray[Any]:
    return _join([table[name] for table in tables.values()])


def _text(tables: Tables, name: str) -> TextCodes:
    """A column of all tables under one coding, words in the order of first appearance."""
    places: dict[str, int] = {}
    parts = []
    for table in tables.values():
        column = table[name]
        words, codes = _words_and_codes(column)
        own = np.array([places.setdefault(word, len(places)) for word in words], dtype=np.intp)
        parts.append(shorten_codes(own)[codes] if len(own) else np.zeros(0, np.int8))
    return TextCodes(tuple(places), _join(parts))


def _look_up(tables: Tables, texts: Mapping[str, str]) -> TextCodes:
    """The text of each row's variant; empty where it has none. Only distinct texts become entries of the coding."""
    places = {"": 0}
    parts = [np.zeros(0, np.intp)]
    for table in tables.values():
        if not texts:
            parts.append(np.zeros(len(table["score_1"]), np.intp))
            continue
        words, codes = _words_and_codes(table["variant_id"])
        own = (places.setdefault(texts.get(word, ""), len(places)) for word in words)
        parts.append(np.fromiter(own, np.intp, len(words))[codes])
    return TextCodes(tuple(places), np.concatenate(parts))


def _look_up_centres(
    tables: Tables, centres: Mapping[str, tuple[float, float]], rows: int
) -> NDArray[np.float64]:  # (rows, 2), x and y
    """The object's centre in each row's variant; NaN where it is not known."""
    if not centres:
        return _no_centres(rows)
    unknown, parts = (np.nan, np.nan), []
    for table in tables.values():
        words, codes = _words_and_codes(table["variant_id"])
        own = [np.fromiter((centres.get(word, unknown)[axis] for word in words), np.float64, len(words))
               for axis in (0, 1)]  # fmt: skip
        parts.append(np.stack(own, axis=1)[codes])
    return np.concatenate(parts)


def _labels(columns: Sequence[TextCodes]) -> tuple[tuple[str, ...], list[Codes]]:
    """The labels that occur, sorted, and each column's positions among them; the empty text is not a label."""
    known = sorted({word for column in columns for word in column.words} - {""})
    places = {"": NO_LABEL, **{word: place for place, word in enumerate(known)}}
    kind = np.min_scalar_type(-len(places))
    return tuple(known), [np.array([places[word] for word in column.words], kind)[column.codes] for column in columns]
