"""Answers made elsewhere become a run: a table of models, photos, conditions and answers, without pictures.

`import_answers` reads the table (store/answer_table.py), gives every picture that was answered a variant, writes the
tables of a run and its report. Everything that reads the folder of a run then works on it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.registry import EDITS
from counterfoil.errors import UserError, did_you_mean
from counterfoil.report.content import build_content
from counterfoil.report.csv_tables import skipped_to_csv
from counterfoil.report.page import write_report
from counterfoil.run_config import environment
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.families import DIVISORS, MAIN_FAMILY
from counterfoil.store.answer_table import AnswerColumns, AnswerTable, read_answer_table, read_factors
from counterfoil.store.files import write_atomically
from counterfoil.store.folder_lock import MAY_DIFFER, claim_folder
from counterfoil.store.parquet import DictionaryColumn, Kind, TableWriter, release_memory, write_table
from counterfoil.store.prediction_tables import MANIFEST_COLUMNS, PREDICTION_COLUMNS, RANKS, locate_predictions
from counterfoil.store.run_checksums import record_checksums
from counterfoil.study.runs import Study, open_runs
from counterfoil.study.thumbnails import ThumbnailCache
from counterfoil.types import TOOL_CHECKS, Run, Skipped

FACTOR_COLUMNS: dict[str, Kind] = {"sample_id": "text", "factor": "text"}  # factors.parquet; "" for a photo without any
_ORIGINAL = Condition("original", "original", "none")
_ROWS_AT_ONCE = 65_536
Codes: TypeAlias = NDArray[np.signedinteger[Any]]
_NOTE = "The answers were made elsewhere and imported from a table: no picture was seen by this program."


@dataclass(frozen=True, kw_only=True)
class ImportConfig:
    """What is imported, and how its columns are read."""

    answers: tuple[Path, ...]
    columns: AnswerColumns = field(default_factory=AnswerColumns)
    models: tuple[str, ...] = ()  # of each file, where the files have no column of models
    original: str = "original"  # the condition of the unedited pictures
    attribute: str = ""  # of all conditions, which are then its levels
    sample_pattern: str = ""  # the part of the sample column that names the photo, as a regular expression
    no_answer: str = ""  # the prediction that stands for "no answer"
    annotations: Path | None = None  # factors of the photos, as 0 and 1
    command: str = ""


def import_answers(config: ImportConfig, out: Path) -> Study:
    """Write a run's folder, with its report, from answers made elsewhere.

    Args:
        config: The table and the names of its columns.
        out: The folder of the run; an earlier import of the same answers is written again.

    Returns:
        The run, read back.

    Raises:
        UserError: Where the table cannot be read or is not complete.
    """
    _write_tables(config, out)
    release_memory()
    study = open_runs([out])
    write_report(out, build_content(study, ThumbnailCache((out,), lambda variant: None)))
    return study


def _write_tables(config: ImportConfig, out: Path) -> None:
    """The record and the tables of the run; the rows are gone before the report is made."""
    rows = _prepare(config)
    run = _describe_run(config, rows)
    claim_folder(out, asdict(run), MAY_DIFFER | {"images", "collection"})
    _write_manifest(out, rows)
    for model, path in locate_predictions(out, rows.models).items():
        _write_predictions(path, rows, rows.models.index(model))
    if rows.factors is not None:
        write_table(out / "factors.parquet", FACTOR_COLUMNS, rows.factors)
    write_atomically(out / "skipped.csv", skipped_to_csv(rows.skipped))
    record_checksums(out)


@dataclass(frozen=True)
class _Rows:
    """The answers as codes, sorted by model, photo, condition and replicate."""

    models: tuple[str, ...]
    samples: NDArray[np.object_]
    conditions: tuple[Condition, ...]  # the original first
    labels: NDArray[np.object_]  # by sample; "" where unknown
    model: Codes
    sample: Codes
    condition: Codes
    replicate: Codes
    correct: NDArray[np.bool_]
    given: NDArray[np.bool_]  # whether there is an answer
    prediction: DictionaryColumn | None
    confidence: NDArray[np.float64] | None
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    factors: Mapping[str, DictionaryColumn] | None = None

    @cached_property
    def variant_key(self) -> NDArray[np.int64]:
        """A number for the picture of each row."""
        replicates = int(self.replicate.max(initial=0)) + 1
        return (self.sample.astype(np.int64) * len(self.conditions) + self.condition) * replicates + self.replicate

    @cached_property
    def variants(self) -> _Variants:
        """The distinct pictures, by photo, the original first."""
        keys, rows = np.unique(self.variant_key, return_index=True)
        about = [f"\n{c.attribute}\n{c.edit}\n{c.level}\n" for c in self.conditions]
        names = zip(
            self.sample[rows].tolist(), self.condition[rows].tolist(), self.replicate[rows].tolist(), strict=True
        )
        ids = np.fromiter(
            (hashlib.sha256(f"{self.samples[s]}{about[c]}{r}".encode()).hexdigest()[:16].encode() for s, c, r in names),
            "S16", len(keys),
        )  # fmt: skip
        return _Variants(keys, rows, ids)


class _Variants(NamedTuple):
    keys: NDArray[np.int64]  # sorted
    rows: NDArray[np.intp]  # a row of each
    ids: NDArray[np.bytes_]


def _prepare(config: ImportConfig) -> _Rows:
    """Read and check everything before a file is written."""
    table = read_answer_table(
        config.answers, config.columns, models=config.models, needs_condition=config.annotations is None
    )
    samples, sample = _name_samples(table.texts["sample"], config.sample_pattern)
    factors = None if config.annotations is None else _Factors.read(config, samples)
    labels, unlabelled = _find_labels(table, config, samples, sample, factors)
    correct, given = _judge(table, config, labels, sample)
    conditions, condition = _name_conditions(table, config)
    models, model = table.texts["model"]
    kept = ~np.isin(sample, unlabelled)
    if not kept.any():
        raise UserError(f"expected classes for the photos of {config.answers[0]} in {config.annotations}, got none")
    key = (model.astype(np.int64) * len(conditions) + condition) * len(samples) + sample
    order = np.argsort(key, kind="stable")
    order = order[kept[order]]
    prediction = table.texts.get("prediction")
    return _Rows(
        models=tuple(models),
        samples=samples,
        conditions=conditions,
        labels=labels,
        model=model[order],
        sample=sample[order],
        condition=condition[order],
        replicate=_number_replicates(key[order]),
        correct=correct[order],
        given=given[order],
        prediction=None if prediction is None else DictionaryColumn(prediction.dictionary, prediction.indices[order]),
        confidence=None if table.confidence is None else table.confidence[order],
        skipped=tuple(
            Skipped(str(samples[s]), "source", "", "its class is not in the annotations") for s in unlabelled
        ),
        notes=_write_notes(config, table, conditions, condition, sample),
        factors=None if factors is None else factors.rows,
    )


def _name_samples(column: DictionaryColumn, pattern: str) -> tuple[NDArray[np.object_], Codes]:
    """The photos and each row's photo, by the part of the name that the pattern selects."""
    if not pattern:
        return column.dictionary, column.indices
    names = _select_parts(column.dictionary, pattern)
    places: dict[str, int] = {}
    own = np.array([places.setdefault(name, len(places)) for name in names], np.int32)
    return np.array([*places], object), own[column.indices]


def _select_parts(names: NDArray[np.object_], pattern: str) -> list[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UserError(f"expected a regular expression in --sample-pattern, got '{pattern}': {error}") from error
    parts = []
    for name in names:
        match = compiled.search(name)
        if match is None:
            raise UserError(f"expected --sample-pattern '{pattern}' to be found in every sample, got '{name}'")
        parts.append(match.group(1 if compiled.groups else 0) or "")
    return parts


def _find_labels(
    table: AnswerTable,
    config: ImportConfig,
    samples: NDArray[np.object_],
    sample: Codes,
    factors: _Factors | None,
) -> tuple[NDArray[np.object_], list[int]]:
    """The class of every photo, "" where unknown, and the photos left out since they cannot be scored without one."""
    column = table.texts.get("label")
    if column is not None:
        return _labels_of_rows(table, config, column, samples, sample), []
    if factors is not None and factors.labels is not None:
        missing = [place for place, label in enumerate(factors.labels) if label == ""]
        return factors.labels, missing if table.correct is None else []
    if table.correct is None:
        raise UserError(
            f"expected a column '{config.columns.label}' with the true class beside '{config.columns.prediction}' in"
            f" {config.answers[0]}, got none; say --label-column NAME, or --annotations FILE with such a column"
        )
    return np.full(len(samples), "", object), []


def _labels_of_rows(
    table: AnswerTable,
    config: ImportConfig,
    column: DictionaryColumn,
    samples: NDArray[np.object_],
    sample: Codes,
) -> NDArray[np.object_]:
    label = np.zeros(len(samples), np.int64)
    label[sample[::-1]] = column.indices[::-1]  # the first row of each photo
    other = np.flatnonzero(label[sample] != column.indices)
    if len(other):
        row = int(other[0])
        one, two = column.dictionary[label[sample[row]]], column.dictionary[column.indices[row]]
        raise UserError(
            f"expected one class per photo in the column '{config.columns.label}', got '{one}' and '{two}' for"
            f" '{samples[sample[row]]}' in {table.locate(row)}; say --sample-column or --sample-pattern if these are"
            " two photos"
        )
    labels: NDArray[np.object_] = column.dictionary[label]
    if table.correct is None and "" in set(labels):
        raise UserError(f"expected a class in every cell of the column '{config.columns.label}', got an empty one")
    return labels


def _judge(
    table: AnswerTable, config: ImportConfig, labels: NDArray[np.object_], sample: Codes
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each row is right, and whether it is an answer at all."""
    column = table.texts.get("prediction")
    if column is None:
        assert table.correct is not None  # the header was checked
        return table.correct, np.ones(len(table), bool)
    nothing = {"", *([config.no_answer] if config.no_answer else [])}
    given = np.array([word not in nothing for word in column.dictionary], bool)[column.indices]
    if table.correct is not None:
        return table.correct, given
    places = {word: place for place, word in enumerate(column.dictionary)}
    wanted = np.array([places.get(label, -1) for label in labels], np.int64)
    if (wanted[sample] < 0).all():
        raise UserError(
            f"expected predictions in the words of the classes, got '{column.dictionary[column.indices[0]]}' where the"
            f" class is '{labels[sample[0]]}', and no prediction is any photo's class; write both alike"
        )
    return wanted[sample] == column.indices, given


def _name_conditions(table: AnswerTable, config: ImportConfig) -> tuple[tuple[Condition, ...], Codes]:
    """The conditions, the original first, and each row's condition."""
    if "condition" not in table.texts:
        return (_ORIGINAL,), np.zeros(len(table), np.int32)
    texts = table.texts["condition"]
    if config.original not in set(texts.dictionary):
        known = ", ".join(map(str, texts.dictionary[:8])) + (", ..." if len(texts.dictionary) > 8 else "")
        raise UserError(
            f"expected the condition '{config.original}' for the unedited pictures, got {known}"
            f"{did_you_mean(config.original, texts.dictionary)}; say --original NAME"
        )
    roles: list[str] = [role for role in ("condition", "attribute", "edit", "level") if role in table.texts]
    shape = [len(table.texts[role].dictionary) for role in roles]
    code = np.ravel_multi_index([table.texts[role].indices for role in roles], shape)
    codes, own = np.unique(code, return_inverse=True)
    named = []
    for places in zip(*np.unravel_index(codes, shape), strict=True):
        words: dict[str, str] = {
            role: str(table.texts[role].dictionary[p]) for role, p in zip(roles, places, strict=True)
        }
        named.append(_name_condition(words, config))
    conditions = tuple(dict.fromkeys([_ORIGINAL, *named]))
    index = np.array([conditions.index(condition) for condition in named], np.int32)
    return conditions, index[own]


def _name_condition(words: Mapping[str, str], config: ImportConfig) -> Condition:
    """Attribute, edit and level of a condition; a text such as "size 0.05" names an edit of this program."""
    text = words["condition"]
    if text == config.original:
        return _ORIGINAL
    first, _, rest = text.partition(" ")
    edit, level = words.get("edit", ""), words.get("level", "")
    if not edit and config.attribute:
        edit, level = config.attribute, level or text
    elif not edit and not level and first in EDITS:
        edit, level = first, rest
    edit = edit or text
    own = EDITS[edit].attribute if edit in EDITS else edit
    attribute = words.get("attribute", "") or config.attribute or own
    if attribute == "original" or edit == "original":
        raise UserError(
            f"expected another attribute than 'original' for the condition '{text}': only '{config.original}' is the"
            " unedited picture; say --original NAME"
        )
    if attribute in TOOL_CHECKS:
        raise UserError(
            f"expected another attribute than '{attribute}' for the condition '{text}': the program keeps that name for"
            " its own checks and shows none of them; rename it"
        )
    return Condition(attribute, edit, level)


def _number_replicates(key: NDArray[np.int64]) -> Codes:
    """0, 1, ... within each run of equal keys of a sorted array."""
    start = np.r_[True, key[1:] != key[:-1]]
    first = np.maximum.accumulate(np.where(start, np.arange(len(key)), 0))
    return (np.arange(len(key)) - first).astype(np.int32)


def _write_notes(
    config: ImportConfig,
    table: AnswerTable,
    conditions: tuple[Condition, ...],
    condition: Codes,
    sample: Codes,
) -> tuple[str, ...]:
    notes = [_NOTE]
    has_original = np.zeros(int(sample.max(initial=0)) + 1, bool)
    has_original[sample[condition == 0]] = True
    alone = [
        f"{row.edit} {row.level}".strip()
        for place, row in enumerate(conditions)
        if place and not has_original[sample[condition == place]].any()
    ]
    if alone:
        notes.append(
            f"No photo of {', '.join(alone)} has an unedited picture under the same name, so there are accuracies and"
            " no drops; --sample-pattern selects the part of a name that pictures of one photo share."
        )
    attributes = {row.attribute for row in conditions} - {"original"}
    if len(attributes) > DIVISORS[MAIN_FAMILY]:
        notes.append(
            f"The conditions are {len(attributes)} attributes, and the corrections for many tests are made for"
            f" {DIVISORS[MAIN_FAMILY]}: some findings may be chance; --attribute NAME makes the conditions one family."
        )
    if table.correct is not None and "prediction" in table.texts:
        notes.append(f"Right or wrong is what the column '{config.columns.correct}' says.")
    return tuple(notes)


class _Factors(NamedTuple):
    """The annotations of the photos that were answered."""

    rows: Mapping[str, DictionaryColumn]  # columns of factors.parquet
    labels: NDArray[np.object_] | None  # the class of each photo of the answers; "" where not annotated

    @classmethod
    def read(cls, config: ImportConfig, samples: NDArray[np.object_]) -> _Factors:
        """Read the file, and keep the photos that were answered."""
        assert config.annotations is not None
        photo, flags, label = read_factors(config.annotations, config.columns.sample, config.columns.label)
        names = _select_parts(photo.dictionary, config.sample_pattern) if config.sample_pattern else photo.dictionary
        places = {name: place for place, name in enumerate(samples)}
        own = np.array([places.get(name, -1) for name in names], np.int64)[photo.indices]  # by row of the annotations
        known = own >= 0
        if not known.any():
            raise UserError(
                f"expected annotations of the photos of {config.answers[0]}, got none in {config.annotations}: the"
                f" first is '{names[photo.indices[0]]}', the first answer is to '{samples[0]}'"
            )
        photos, times = np.unique(own[known], return_counts=True)
        if (times > 1).any():
            raise UserError(
                f"expected one row per photo in {config.annotations}, got {times.max()} for"
                f" '{samples[photos[times.argmax()]]}'; leave one"
            )
        words = np.array(["", *flags], object)
        plain = known & ~np.logical_or.reduce(list(flags.values()))
        parts = [(own[plain], 0)] + [(own[known & flag], place) for place, flag in enumerate(flags.values(), 1)]
        rows = {
            "sample_id": DictionaryColumn(samples, np.concatenate([part for part, _ in parts])),
            "factor": DictionaryColumn(words, np.concatenate([np.full(len(part), place) for part, place in parts])),
        }
        if label is None:
            return cls(rows, None)
        labels = np.full(len(samples), "", object)
        labels[own[known]] = label.dictionary[label.indices[known]]
        return cls(rows, labels)


def _describe_run(config: ImportConfig, rows: _Rows) -> Run:
    names = ", ".join(path.name for path in config.answers)
    digest = hashlib.sha256(rows.variants.ids.tobytes())
    return Run(
        command=config.command,
        images=", ".join(str(path.absolute()) for path in config.answers),
        masks=None,
        recipe="",
        recipe_digest="",
        seed=0,
        samples=len(np.unique(rows.sample)),
        models=rows.models,
        model_digests={model: _hash_answers(rows, place) for place, model in enumerate(rows.models)},
        preprocessing=dict.fromkeys(rows.models),
        environment=environment(),
        scoring="imported",
        collection=f"answers imported from {names}",
        collection_digest=digest.hexdigest(),
        notes=rows.notes,
    )


def _hash_answers(rows: _Rows, model: int) -> str:
    """Tells two sets of answers under one name apart, where weights would."""
    own = rows.model == model
    digest = hashlib.sha256(np.packbits(rows.correct[own]).tobytes())
    digest.update(rows.variant_key[own].tobytes())
    return digest.hexdigest()


def _write_manifest(out: Path, rows: _Rows) -> None:
    """variants.parquet: every picture that was answered, without pixels."""
    variants = rows.variants
    with TableWriter(out / "variants.parquet", MANIFEST_COLUMNS) as writer:
        for start in range(0, len(variants.keys), _ROWS_AT_ONCE):
            part = variants.rows[start : start + _ROWS_AT_ONCE]
            writer.write(_manifest_columns(rows, part, variants.ids[start : start + _ROWS_AT_ONCE]))
        if not len(variants.keys):
            writer.write(_manifest_columns(rows, variants.rows, variants.ids))


def _manifest_columns(rows: _Rows, part: NDArray[np.intp], ids: NDArray[np.bytes_]) -> dict[str, Any]:
    count = len(part)
    empty, unknown = _repeat("", count), np.full(count, np.nan)
    unset = {"text": empty, "double": unknown, "int": np.zeros(count, np.int64), "unsigned": np.zeros(count, np.uint64)}
    return {
        **{name: unset[kind] for name, kind in MANIFEST_COLUMNS.items()},
        **_shared_columns(rows, part),
        "id": _decode(ids),
        "image": DictionaryColumn(rows.samples, rows.sample[part]),
        "sample_digest": DictionaryColumn(rows.samples, rows.sample[part]),
        "settings": _repeat("{}", count),
        "version": np.ones(count, np.int64),
    }


def _write_predictions(path: Path, rows: _Rows, model: int) -> None:
    own = np.flatnonzero(rows.model == model)
    own = own[np.argsort(rows.variant_key[own], kind="stable")]
    with TableWriter(path, PREDICTION_COLUMNS) as writer:
        for part in _split(own):
            writer.write(_prediction_columns(rows, part))


def _split(rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    for start in range(0, max(1, len(rows)), _ROWS_AT_ONCE):
        yield rows[start : start + _ROWS_AT_ONCE]


def _prediction_columns(rows: _Rows, part: NDArray[np.intp]) -> dict[str, Any]:
    count = len(part)
    empty, unknown = _repeat("", count), np.full(count, np.nan)
    confidence = unknown if rows.confidence is None else rows.confidence[part]
    outcomes = DictionaryColumn(np.array(["unparsed", "scored"], object), rows.given[part].astype(np.int64))
    return {
        **dict.fromkeys((f"rank_{rank + 1}" for rank in range(RANKS)), empty),
        **dict.fromkeys((f"score_{rank + 1}" for rank in range(RANKS)), unknown),
        **_shared_columns(rows, part),
        "variant_id": _decode(rows.variants.ids[np.searchsorted(rows.variants.keys, rows.variant_key[part])]),
        "object_share": unknown,
        "outcome": outcomes,
        "correct": rows.correct[part] & rows.given[part],
        "true_score": np.where(rows.correct[part], confidence, np.nan),
        "rank_1": _first_answers(rows, part),
        "score_1": confidence,
        "text": empty,
    }


def _first_answers(rows: _Rows, part: NDArray[np.intp]) -> DictionaryColumn:
    """The predictions; where only right and wrong are known, the class of the right answers."""
    if rows.prediction is not None:
        return DictionaryColumn(rows.prediction.dictionary, rows.prediction.indices[part].astype(np.int64))
    names = np.array(["", *rows.labels], object)
    return DictionaryColumn(names, np.where(rows.correct[part], rows.sample[part] + 1, 0).astype(np.int64))


def _shared_columns(rows: _Rows, part: NDArray[np.intp]) -> dict[str, Any]:
    """What the manifest and the predictions both say of a picture."""
    fields = {
        name: DictionaryColumn(np.array([getattr(c, name) for c in rows.conditions], object), rows.condition[part])
        for name in Condition._fields
    }
    return {
        **fields,
        "sample_id": DictionaryColumn(rows.samples, rows.sample[part]),
        "label": DictionaryColumn(rows.labels, rows.sample[part]),
        "replicate": rows.replicate[part],
    }


def _decode(ids: NDArray[np.bytes_]) -> list[str]:
    return [name.decode() for name in ids.tolist()]


def _repeat(text: str, count: int) -> DictionaryColumn:
    return DictionaryColumn(np.array([text], object), np.zeros(count, np.int64))
