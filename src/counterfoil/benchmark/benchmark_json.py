"""benchmark.json: the record of a frozen benchmark, with its digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from counterfoil.benchmark.layouts import LayoutName
from counterfoil.benchmark.manifest import Manifest, check_inside
from counterfoil.errors import UserError
from counterfoil.labels.label_space import LabelSpace
from counterfoil.store.files import RECORD

VERSION = r"[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClassNote(_Part):
    """A class, its readable name, and the model labels that count as it."""

    label: str
    name: str
    ids: tuple[str, ...]


class LabelNote(_Part):
    """The label space that the benchmark's classes belong to."""

    space: str
    classes: tuple[ClassNote, ...]


class MiningNote(_Part):
    """How models selected the pictures."""

    rule: str
    kept: int


class AnnotatorNote(_Part):
    """How one annotator (anonymous) did on the hidden controls."""

    answers: int
    controls: int
    controls_right: int
    repeats: int
    repeats_same: int
    median_seconds: float
    counted: bool


class VerificationNote(_Part):
    """How people verified the pictures."""

    rule: str
    questions: Mapping[str, str]
    annotators: int
    agreement: Mapping[str, Mapping[str, float | None]]
    confirmed: int
    records: tuple[AnnotatorNote, ...] = ()
    doubts: tuple[str, ...] = ()

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out empty fields that earlier versions did not have, so that their digests still hold."""
        return {name: value for name, value in dump(self).items() if value or name not in ("records", "doubts")}


class Counts(_Part):
    """Number of pictures by kind, and number left out by reason."""

    pictures: int
    test: int
    reference: int
    samples: int
    attributes: Mapping[str, int]
    left_out: Mapping[str, int]


class FileNote(_Part):
    """A file of the benchmark that is not itself a picture."""

    sha256: str
    size: int
    content: str = ""  # hash of the file's content, where the bytes depend on the version of pyarrow

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out an empty content, which format 1 did not have, so that digests of its records still hold."""
        return {name: value for name, value in dump(self).items() if value or name != "content"}


class BenchmarkRecord(_Part):
    """All of benchmark.json."""

    format: Literal[1, 2] = 2  # 1: the digest covers the bytes of every file; 2: for tables it covers the content
    name: str
    version: str = Field(pattern=rf"^{VERSION}$")
    description: str
    url: str
    published: str  # the date that its authors give, not the date of the freeze
    layout: LayoutName
    labels: LabelNote
    scoring: Literal["all", "subset"]
    surrogates: Mapping[str, str]
    mining: MiningNote | None
    verification: VerificationNote | None
    counts: Counts
    licences: Mapping[str, int]
    notes: tuple[str, ...]
    made_with: Mapping[str, Any]
    content_digest: str  # of the pictures and their labels, independent of the layout
    files: Mapping[str, FileNote] = {}
    digest: str = ""

    @property
    def space(self) -> LabelSpace:
        """The classes as a label space for the evaluation."""
        classes = self.labels.classes
        return LabelSpace(
            self.labels.space,
            tuple(one.label for one in classes),
            tuple(one.name for one in classes),
            tuple(one.ids for one in classes),
        )

    def computed_digest(self) -> str:
        """Hash over the record, which names the hash of every file; the manifest names the hash of every picture.

        For a file with a content hash, that hash replaces the hash of its bytes, so any pyarrow gives the same digest.
        """
        content = self.model_dump(mode="json", exclude={"digest"})
        if self.format > 1:
            tables = {name: {"content": note.content} for name, note in self.files.items() if note.content}
            content["files"] = {**content["files"], **tables}
        return _hash(content)

    def sealed(self, files: Mapping[str, FileNote]) -> BenchmarkRecord:
        """Return the record with its files and its digest."""
        whole = self.model_copy(update={"files": dict(sorted(files.items()))})
        return whole.model_copy(update={"digest": whole.computed_digest()})

    def text(self) -> str:
        """Return the text of benchmark.json."""
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def digest_content(manifest: Manifest) -> str:
    """Hash over every picture's id, label, bytes and pixels, independent of order and layout."""
    columns = ("id", "split", "label", "file_sha256", "pixel_sha256")
    return _hash(sorted(zip(*(map(str, manifest.table[name]) for name in columns), strict=True)))


def read_benchmark_record(folder: Path) -> BenchmarkRecord:
    """Read the record of a benchmark folder; raises `UserError` where it cannot be read."""
    path = folder / RECORD
    if not path.is_file():
        raise UserError(
            f"expected the folder of a benchmark, got '{folder}', which holds no {RECORD};"
            " `counterfoil freeze WORKSPACE --out FOLDER` makes one"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        record = BenchmarkRecord.model_validate(content)
        record.text().encode()  # JSON may hold lone surrogates, which cannot be encoded for a digest
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(
            f"expected {path} as counterfoil writes it, got at {place or 'its top'}: {first['msg']};"
            " a newer counterfoil may have written it, or somebody changed it"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"expected JSON in {path}, which cannot be read: {error}; get the benchmark again") from error
    for file in record.files:
        check_inside(file, path)
    return record


def _hash(content: object) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
