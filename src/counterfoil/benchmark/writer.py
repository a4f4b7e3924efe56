"""Write a benchmark folder: the draft of all its parts, its record, then all files at once."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal, Protocol

from counterfoil.benchmark.benchmark_json import (
    VERSION,
    AnnotatorNote,
    BenchmarkRecord,
    ClassNote,
    Counts,
    LabelNote,
    MiningNote,
    VerificationNote,
    digest_content,
)
from counterfoil.benchmark.card import CARD, CONTACT, draw_contact_sheet, render_card
from counterfoil.benchmark.croissant import CROISSANT, render_croissant
from counterfoil.benchmark.diff import (
    CHANGELOG,
    BenchmarkDiff,
    BenchmarkVersion,
    compare_versions,
    read_version,
    render_changelog,
)
from counterfoil.benchmark.integrity import THREADS, add_content_hashes, hash_files, list_files
from counterfoil.benchmark.layouts import LAYOUTS, LayoutFolder, LayoutName
from counterfoil.benchmark.licences import UNKNOWN
from counterfoil.benchmark.manifest import Manifest, ManifestRow, read_manifest, sort_rows, write_manifest
from counterfoil.errors import Unusable, UserError, expect_kind
from counterfoil.labels.label_space import LabelSpace
from counterfoil.progress import Extent, show_progress
from counterfoil.sources.pixels import decode_picture, hash_pixels
from counterfoil.store.atomic_folder import write_folder_atomically
from counterfoil.store.files import RECORD
from counterfoil.types import MiningResult, VerificationResult

IN_DOUBT = "what people said is in doubt"  # begins the notes that a freeze prints as warnings
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class Title:
    """The name, version and description of a benchmark."""

    name: str
    version: str
    description: str = ""
    url: str = ""
    published: str = ""  # YYYY-MM-DD

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            expect_kind(text, str, f"the {name} of the benchmark as a text")
        if not _NAME.fullmatch(self.name):
            raise UserError(f"expected a name of letters, digits, '.', '_' and '-', got '{self.name}'")
        if self.description.encode("utf-8", "replace").decode() != self.description:
            raise UserError("expected a description in UTF-8, got other bytes")
        if not re.fullmatch(VERSION, self.version):
            raise UserError(f"expected a version such as 1.0.0, got '{self.version}'")
        if self.url and not re.fullmatch(r"https?://\S+", self.url):
            raise UserError(f"expected a URL such as https://example.org/benchmark, got '{self.url}'")
        if self.published and not _is_date(self.published):
            raise UserError(f"expected a date such as 2027-01-31, got '{self.published}'")


@dataclass(frozen=True, kw_only=True)
class BenchmarkDraft:
    """All parts of a benchmark."""

    title: Title
    layout: LayoutName
    entries: tuple[ManifestRow, ...]
    space: LabelSpace
    scoring: Literal["all", "subset"] = "all"
    mined: MiningResult | None = None  # where mining selected the pictures
    verified: VerificationResult | None = None  # where people selected among them
    left_out: Mapping[str, int] = field(default_factory=dict)  # number by reason
    made_with: Mapping[str, Any] = field(default_factory=dict)

    def record(self, manifest: Manifest) -> BenchmarkRecord:
        """The content of benchmark.json, except the files and the digest."""
        title = self.title
        return BenchmarkRecord(
            name=title.name, version=title.version, description=title.description, url=title.url,
            published=title.published, layout=self.layout, labels=self.labels, scoring=self.scoring,
            surrogates=dict(self.mined.surrogates) if self.mined else {}, mining=self._mining,
            verification=self._verification, counts=self._counts, notes=self._notes,
            licences=_sort_counts(Counter(entry.licence or UNKNOWN for entry in self.entries)),
            made_with=self.made_with, content_digest=digest_content(manifest),
        )  # fmt: skip

    @property
    def labels(self) -> LabelNote:
        """The classes that occur, in the order of their space."""
        used = {entry.variant.label for entry in self.entries}
        return LabelNote(
            space=self.space.name,
            classes=tuple(
                ClassNote(label=label, name=self.space.name_of(label), ids=self.space.ids_of(label) or (label,))
                for label in self.space.labels
                if label in used
            ),
        )

    @property
    def _mining(self) -> MiningNote | None:
        return MiningNote(rule=self.mined.rule, kept=len(self.mined.kept)) if self.mined else None

    @property
    def _verification(self) -> VerificationNote | None:
        if self.verified is None:
            return None
        verified = self.verified
        agreement = {
            question: {measure: value if math.isfinite(value) else None for measure, value in measures.items()}
            for question, measures in verified.agreement.items()
        }
        return VerificationNote(
            rule=verified.rule, questions=dict(verified.questions), annotators=verified.annotators, agreement=agreement,
            confirmed=sum(entry.verdict == "confirmed" for entry in self.entries),
            records=tuple(AnnotatorNote(**asdict(row)) for row in verified.records), doubts=verified.doubts,
        )  # fmt: skip

    @property
    def _counts(self) -> Counts:
        splits = Counter(entry.split for entry in self.entries)
        return Counts(
            pictures=len(self.entries), test=splits["test"], reference=splits["reference"],
            samples=len({entry.variant.sample_id for entry in self.entries}),
            attributes=_sort_counts(Counter(entry.variant.attribute for entry in self.entries)),
            left_out={reason: number for reason, number in sorted(self.left_out.items()) if number},
        )  # fmt: skip

    @property
    def _notes(self) -> tuple[str, ...]:
        """Notes that every report on the benchmark must print."""
        notes = []
        if self.verified is None:
            notes.append("nobody has confirmed the pictures of this benchmark")
        else:
            notes += [f"{IN_DOUBT}: {doubt}" for doubt in self.verified.doubts]
        if self.mined is not None and self.mined.surrogates:
            notes.append(
                f"the pictures were chosen because {', '.join(self.mined.surrogates)} are wrong on them"
                f" ({self.mined.rule}), so the accuracies of these models are low by construction"
            )
        return tuple(notes)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _sort_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


_AT_ONCE = 64  # pictures in memory at once


class Pictures(Protocol):
    """Where the pictures come from."""

    def size(self, entry: ManifestRow) -> int:
        """Number of bytes of a picture."""

    def read(self, entry: ManifestRow) -> bytes:
        """The bytes of a picture."""


@dataclass(frozen=True)
class FreezeResult:
    """A written benchmark, and its differences from the previous version."""

    record: BenchmarkRecord
    comparison: BenchmarkDiff | None


def write_benchmark(
    draft: BenchmarkDraft, pictures: Pictures, out: Path, previous: Path | None = None, shard_bytes: int = 256 << 20
) -> FreezeResult:
    """Write the benchmark; the same draft gives the same digest, and with the same pyarrow the same bytes."""
    earlier = read_version(previous) if previous else None
    entries = sort_rows(draft.entries)
    with write_folder_atomically(out, sum(map(pictures.size, entries))) as folder:
        layout = LAYOUTS[draft.layout](LayoutFolder(folder, [one.label for one in draft.labels.classes], shard_bytes))
        extent = Extent(stage="writing the benchmark", unit="pictures", total=len(entries), brief=True)
        for entry, data in show_progress(_read_pictures(entries, pictures), extent):
            layout.add(entry, data)
        places = layout.finish()
        write_manifest(folder, entries, places)
        manifest = read_manifest(folder)
        record = draft.record(manifest)
        comparison = compare_versions(earlier, BenchmarkVersion(record, manifest)) if earlier else None
        (folder / CONTACT).write_bytes(draw_contact_sheet(entries, pictures.read))
        _write(folder / CARD, render_card(record, entries))
        _write(folder / CHANGELOG, render_changelog(record, comparison, previous))
        notes = hash_files(folder, sorted(list_files(folder) - {place.file for place in places if not place.member}))
        _write(folder / CROISSANT, render_croissant(record, notes))
        sealed = record.sealed(add_content_hashes(folder, {**notes, **hash_files(folder, [CROISSANT])}))
        _write(folder / RECORD, sealed.text())
    return FreezeResult(sealed, comparison)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _read_pictures(entries: Sequence[ManifestRow], pictures: Pictures) -> Iterator[tuple[ManifestRow, bytes]]:
    """Yield every picture's bytes in order, read and checked in threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, len(entries), _AT_ONCE):
            part = entries[start : start + _AT_ONCE]
            yield from zip(part, pool.map(lambda entry: _check_pixels(entry, pictures.read(entry)), part), strict=True)


def _check_pixels(entry: ManifestRow, data: bytes) -> bytes:
    """Return the bytes if they are the picture that the workspace's manifest names."""
    try:
        same = hash_pixels(decode_picture(data, entry.stored.file)) == entry.stored.sha256
    except Unusable as error:
        raise UserError(f"expected a picture in the workspace, but {error}; build the workspace again") from error
    if not same:
        raise UserError(
            f"expected {entry.stored.file} as it was built, but its pixels have changed since;"
            " run the command that built the workspace again"
        )
    return data
