"""The result tables of a run: variants.parquet and a table of predictions per model, written and read back."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.store.parquet import DictionaryColumn, Kind, TableWriter
from counterfoil.store.run_checksums import refuse_changed
from counterfoil.store.sealed_record import read_sealed
from counterfoil.store.table_columns import TableColumns
from counterfoil.types import (
    EditLevel,
    PhotoInput,
    Prediction,
    Preprocessing,
    Provenance,
    Run,
    Sample,
    SanityRecord,
    SetupTrial,
    Skipped,
    Variant,
)

RANKS = 5
ROWS_IN_MEMORY = 20_000
VARIANT_COLUMNS: dict[str, Kind] = {
    "id": "text", "sample_id": "text", "label": "text", "image": "text", "mask": "text", "sample_digest": "text",
    "attribute": "text", "edit": "text", "level": "text", "settings": "text", "seed": "unsigned", "donor_id": "text",
    "replicate": "int", "working_size": "int", "sha256": "text", "object_share": "double",
}  # fmt: skip
CENTRE_COLUMNS: dict[str, Kind] = {"centre_x": "double", "centre_y": "double"}  # manifests of older runs lack them
PROVENANCE_COLUMNS: dict[str, Kind] = {  # older ones lack these too; those of the donor are empty where there is none
    "origin": "text", "licence": "text", "donor_origin": "text", "donor_licence": "text",
}  # fmt: skip
VERSION_COLUMNS: dict[str, Kind] = {"version": "int"}  # of the edit; older manifests lack it: version 1
TOOL_COLUMNS: dict[str, Kind] = {"fill": "text", "hole_share": "double", "anchor": "text"}  # older ones lack these
_NO_DONOR = Provenance()
MANIFEST_COLUMNS: dict[str, Kind] = {
    **VARIANT_COLUMNS, **CENTRE_COLUMNS, **PROVENANCE_COLUMNS, **VERSION_COLUMNS, **TOOL_COLUMNS,
}  # fmt: skip
PREDICTION_COLUMNS: dict[str, Kind] = {
    "variant_id": "text", "sample_id": "text", "label": "text", "attribute": "text", "edit": "text", "level": "text",
    "replicate": "int", "object_share": "double", "outcome": "text", "correct": "bool", "true_score": "float",
    **{f"rank_{i + 1}": "text" for i in range(RANKS)}, **{f"score_{i + 1}": "float" for i in range(RANKS)},
    "text": "text",
}  # fmt: skip


def make_table_name(model: str) -> str:
    """A model's address as a file name that every file system allows."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-.") or "model"
    return name if len(name) <= 100 else f"{name[:90]}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


class ToolTrace(NamedTuple):
    """How a picture was made, where that shows."""

    fill: str = ""  # the fill that it shows: "exemplar", "MI-GAN"
    hole_share: float = float("nan")  # percent of the picture that was filled, shadow and reflection included
    anchor: str = ""  # the photo's borders that cut the object, which stays at them: "bottom"


_NO_TRACE = ToolTrace()


@dataclass(frozen=True)
class RenderedVariant:
    """A rendered variant: the hash of its pixels, and the object's share of the picture and centre."""

    variant: Variant
    sha256: str
    object_share: float  # percent
    centre_x: float = float("nan")  # of the object, as a share of the picture from the left; NaN where unknown
    centre_y: float = float("nan")  # from the top
    tool: ToolTrace = _NO_TRACE


@dataclass
class _Table:
    writer: TableWriter
    columns: Mapping[str, Kind]
    rows: list[Sequence[Any]] = field(default_factory=list)

    def add(self, row: Sequence[Any]) -> None:
        self.rows.append(row)
        if len(self.rows) >= ROWS_IN_MEMORY:
            self.flush()

    def flush(self) -> None:
        values = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.columns)
        self.writer.write({name: list(column) for name, column in zip(self.columns, values, strict=True)})
        self.rows = []


def manifest_row(
    sample: Sample, rendered: RenderedVariant, donor: Provenance, working_size: int | None
) -> tuple[Any, ...]:
    """A row of the manifest; `donor` is the provenance of the donor photo, where there is one."""
    variant = rendered.variant
    return (
        variant.id, sample.id, variant.label, sample.image, sample.mask or "", sample.digest, variant.attribute,
        variant.edit, variant.level, variant.settings, variant.seed, variant.donor_id or "", variant.replicate,
        working_size or 0, rendered.sha256, rendered.object_share, rendered.centre_x, rendered.centre_y,
        *sample.provenance, *donor, variant.version, *rendered.tool,
    )  # fmt: skip


def prediction_row(rendered: RenderedVariant, prediction: Prediction) -> tuple[Any, ...]:
    """A row of a model's answers."""
    variant = rendered.variant
    missing = RANKS - len(prediction.ranked)
    ranked, scores = (*prediction.ranked, *[""] * missing), (*prediction.scores, *[float("nan")] * missing)
    correct = bool(prediction.ranked) and prediction.ranked[0] == variant.label
    return (
        variant.id, variant.sample_id, variant.label, variant.attribute, variant.edit, variant.level,
        variant.replicate, rendered.object_share, prediction.outcome, correct, prediction.true_score,
        *ranked, *scores, prediction.text,
    )  # fmt: skip


class ResultTables:
    """Writes a run's tables row by row; they get their names when all are complete."""

    def __init__(self, folder: Path, models: Sequence[str], working_size: int | None) -> None:
        self._working_size = working_size or 0
        self._stack = ExitStack()
        self._variants = self._open(folder / "variants.parquet", MANIFEST_COLUMNS)
        files = locate_predictions(folder, models)
        self._predictions = {model: self._open(path, PREDICTION_COLUMNS) for model, path in files.items()}

    def _open(self, path: Path, columns: Mapping[str, Kind]) -> _Table:
        return _Table(self._stack.enter_context(TableWriter(path, columns)), columns)

    def add_variant(self, sample: Sample, rendered: RenderedVariant, donor: Provenance = _NO_DONOR) -> None:
        """Add a row to the manifest; `donor` is the provenance of the donor photo, where there is one."""
        self._variants.add(manifest_row(sample, rendered, donor, self._working_size))

    def add_prediction(self, model: str, rendered: RenderedVariant, prediction: Prediction) -> None:
        """Add one model's answer to one variant."""
        self._predictions[model].add(prediction_row(rendered, prediction))

    def __enter__(self) -> ResultTables:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            for table in (self._variants, *self._predictions.values()):
                table.flush()
        self._stack.__exit__(kind, error, trace)


def _make_distinct_names(models: Sequence[str]) -> Iterator[str]:
    """File names for models, numbered where two addresses give the same name."""
    used: set[str] = set()
    for model in models:
        plain = make_table_name(model)
        choices = itertools.chain([plain], (f"{plain}-{number}" for number in itertools.count(2)))
        name = next(choice for choice in choices if choice.lower() not in used)
        used.add(name.lower())
        yield name


def read_variants(table: Mapping[str, Any]) -> list[Variant]:
    """The rows of `variants.parquet` as records."""
    texts = ("id", "sample_id", "label", "attribute", "edit", "level", "settings")
    versions = table["version"] if "version" in table else itertools.repeat(1, len(table["id"]))
    rest = zip(table["seed"], table["donor_id"], table["replicate"], versions, strict=True)
    rows = zip(*(table[name] for name in texts), strict=True)
    return [
        Variant(
            **dict(zip(texts, row, strict=True)),
            seed=int(seed),
            donor_id=donor or None,
            replicate=int(replicate),
            version=int(version),
        )
        for row, (seed, donor, replicate, version) in zip(rows, rest, strict=True)
    ]


def read_provenance(table: Mapping[str, Any]) -> list[tuple[Provenance, ...]]:
    """For each row of a manifest the provenance of its photo, then of its donor; empty where not recorded."""
    if not PROVENANCE_COLUMNS.keys() <= table.keys():
        return [()] * len(table["id"])
    rows = zip(table["donor_id"], *(table[name] for name in PROVENANCE_COLUMNS), strict=True)
    return [
        (Provenance(origin, licence), *([Provenance(donor_origin, donor_licence)] if donor else []))
        for donor, origin, licence, donor_origin, donor_licence in rows
    ]


def read_centres(table: TableColumns, attributes: Collection[str]) -> NDArray[np.float64] | None:  # (rows, 2)
    """The object's centre in the variants of these attributes, NaN in others; None where not recorded."""
    if not CENTRE_COLUMNS.keys() <= table.keys():
        return None
    centres = np.stack([np.asarray(table.read(name)) for name in CENTRE_COLUMNS], axis=1)
    if not np.isfinite(centres[:, 0]).any():
        return None
    words, codes = table.texts("attribute")
    centres[~np.array([word in attributes for word in words], bool)[codes]] = np.nan
    return centres


def read_donor_labels(table: TableColumns) -> DictionaryColumn | None:
    """For each variant the class of the photo that its background is from, else an empty text; None without donors."""
    donors = table.texts("donor_id")
    if not any(donors.dictionary):
        return None
    photos, labels = (table.texts(name) for name in ("sample_id", "label"))
    words = np.array([*labels.dictionary, ""], object)
    label_of = np.full(len(photos.dictionary), len(words) - 1)  # of a photo without a row that counts nothing is known
    label_of[photos.indices] = labels.indices
    known = dict(zip(photos.dictionary, label_of.tolist(), strict=True))
    lent = np.fromiter((known.get(donor, len(words) - 1) for donor in donors.dictionary), np.intp)
    return DictionaryColumn(words, lent[donors.indices])


def locate_predictions(folder: Path, models: Sequence[str]) -> dict[str, Path]:
    """The file of each model's answers."""
    names = _make_distinct_names(models)
    return {model: folder / "predictions" / f"{name}.parquet" for model, name in zip(models, names, strict=True)}


def read_run_record(folder: Path) -> dict[str, Any]:
    """The record of a finished run: run.json, with summary.json where there is a report."""
    if not (folder / "variants.parquet").is_file():
        raise UserError(
            f"expected the folder of a finished run, got '{folder}', which holds no variants.parquet;"
            " `counterfoil run --out FOLDER` makes one"
        )
    refuse_changed(folder)
    record: dict[str, Any] = {}
    for name in ("run.json", "summary.json"):
        if (folder / name).is_file():
            content = read_sealed(folder / name)
            record |= content.get("run", {}) if name == "summary.json" else content
    if not record:
        raise UserError(f"expected run.json or summary.json in '{folder}', found neither")
    if not _is_of_kind(record.get("models", []), "tuple[str, ...]"):
        raise UserError(f"expected the names of models in the record of '{folder}', which is damaged; run it again")
    return record


def read_run(folder: Path) -> Run:
    """The record of the run in a folder; fields that an older run lacks are empty."""
    record = read_run_record(folder)
    try:
        return _parse_run(record)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"expected the record of a run in '{folder}', which is damaged: {error}; run it again"
        ) from error


def _parse_run(content: Mapping[str, Any]) -> Run:
    record = {"command": "", "environment": {}, "samples": 0, "masks": None, **content}
    known = {item.name: record[item.name] for item in fields(Run) if item.name in record}
    for item in fields(Run):
        if item.name in known and not _is_of_kind(known[item.name], str(item.type)):
            raise TypeError(f"'{item.name}' is {json.dumps(known[item.name])[:80]}")
    applied = {
        model: _parse_preprocessing(record_entry) for model, record_entry in known.get("preprocessing", {}).items()
    }
    lists = {name: tuple(known.get(name, ())) for name in ("models", "notes", "rendered_edits")}
    main = {attribute: EditLevel(*place) for attribute, place in known.get("main_edits", {}).items()}
    sanity = {model: parse_sanity(entry) for model, entry in known.get("sanity", {}).items()}
    pairs = tuple((EditLevel(*kind), EditLevel(*other)) for kind, other in known.get("references", ()))
    parsed = {"preprocessing": applied, "main_edits": main, "sanity": sanity, "references": pairs}
    return Run(**{**known, **lists, **parsed})


def _is_of_kind(value: Any, kind: str) -> bool:
    """Whether a plain field has the type that its annotation says; others are parsed."""
    if kind == "Mapping[str, str]":
        return isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values())
    if kind == "tuple[str, ...]":
        return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    kinds: dict[str, tuple[type, ...]] = {
        "str": (str,), "str | None": (str, type(None)), "int": (int,), "bool": (bool,)
    }  # fmt: skip
    return isinstance(value, kinds.get(kind, (object,)))


def read_sanity(folder: Path | None, identities: Mapping[str, str]) -> dict[str, SanityRecord]:
    """What an earlier session of the run in a folder tried, for the models that are still the same."""
    if folder is None or not (folder / "run.json").is_file():
        return {}
    record = read_sealed(folder / "run.json")
    try:
        known, tried = record.get("identities", {}), record.get("sanity", {})
        same = [model for model in tried if known.get(model) == identities.get(model)]
        return {model: parse_sanity(tried[model]) for model in same}
    except (AttributeError, KeyError, TypeError) as error:
        raise UserError(f"expected the record of a run in '{folder}', which is damaged: {error}") from error


def parse_sanity(entry: Mapping[str, Any]) -> SanityRecord:
    """What was tried at the start of a run, from its record."""
    return SanityRecord(**{**entry, "trials": tuple(SetupTrial(**trial) for trial in entry["trials"])})


def read_skipped(folder: Path) -> list[Skipped]:
    """The rows of skipped.csv; empty where the run was stopped before its report."""
    path = folder / "skipped.csv"
    if not path.is_file():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [Skipped(**row) for row in csv.DictReader(file)]  # type: ignore[arg-type]  # text in, text out
    except (UnicodeDecodeError, TypeError, csv.Error) as error:
        raise UserError(f"expected skipped.csv as counterfoil writes it, got {path}: {error}; run it again") from error


def _parse_preprocessing(entry: Mapping[str, Any] | None) -> Preprocessing | None:
    if entry is None:
        return None
    kind = PhotoInput if "takes" in entry else Preprocessing
    known = {field.name for field in fields(kind)}  # the name of a library's own transform is for the reader alone
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return kind(**{name: value for name, value in values.items() if name in known})
