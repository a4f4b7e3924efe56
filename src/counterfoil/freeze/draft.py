"""A benchmark before a byte of it is written."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any, Literal

from counterfoil.errors import UserError
from counterfoil.freeze.entries import Entry, Manifest
from counterfoil.freeze.layouts import LayoutName
from counterfoil.freeze.record import (
    VERSION,
    AnnotatorNote,
    ClassOfLabels,
    Counts,
    Labels,
    Mining,
    Record,
    Verification,
    content_digest,
)
from counterfoil.labels import LabelSpace
from counterfoil.types import Mined, Verified

UNKNOWN = "unknown"
IN_DOUBT = "what people said is in doubt"  # begins the notes that a freeze warns of
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class Title:
    """How a benchmark is called."""

    name: str
    version: str
    description: str = ""
    url: str = ""
    published: str = ""  # YYYY-MM-DD

    def __post_init__(self) -> None:
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


@dataclass(frozen=True)
class Draft:
    """Everything that a benchmark consists of."""

    title: Title
    layout: LayoutName
    entries: tuple[Entry, ...]
    space: LabelSpace
    scoring: Literal["all", "subset"] = "all"
    mined: Mined | None = None  # where the pictures were chosen by it
    verified: Verified | None = None  # where people chose among them
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason to number
    made_with: Mapping[str, Any] = field(default_factory=dict)

    def record(self, manifest: Manifest) -> Record:
        """What benchmark.json will say, but for the files and the digest."""
        title = self.title
        return Record(
            name=title.name, version=title.version, description=title.description, url=title.url,
            published=title.published, layout=self.layout, labels=self.labels, scoring=self.scoring,
            surrogates=dict(self.mined.surrogates) if self.mined else {}, mining=self._mining,
            verification=self._verification, counts=self._counts, notes=self._notes,
            licences=_sorted(Counter(entry.licence or UNKNOWN for entry in self.entries)),
            made_with=self.made_with, content_digest=content_digest(manifest),
        )  # fmt: skip

    @property
    def labels(self) -> Labels:
        """The classes that occur, in the order of their space."""
        used = {entry.variant.label for entry in self.entries}
        return Labels(
            space=self.space.name,
            classes=tuple(
                ClassOfLabels(label=label, name=self.space.name_of(label), ids=self.space.ids_of(label) or (label,))
                for label in self.space.labels
                if label in used
            ),
        )

    @property
    def _mining(self) -> Mining | None:
        return Mining(rule=self.mined.rule, kept=len(self.mined.kept)) if self.mined else None

    @property
    def _verification(self) -> Verification | None:
        if self.verified is None:
            return None
        told = self.verified
        agreement = {
            question: {measure: value if math.isfinite(value) else None for measure, value in measures.items()}
            for question, measures in told.agreement.items()
        }
        return Verification(
            rule=told.rule, questions=dict(told.questions), annotators=told.annotators, agreement=agreement,
            confirmed=sum(entry.verdict == "confirmed" for entry in self.entries),
            records=tuple(AnnotatorNote(**asdict(row)) for row in told.records), doubts=told.doubts,
        )  # fmt: skip

    @property
    def _counts(self) -> Counts:
        splits = Counter(entry.split for entry in self.entries)
        return Counts(
            pictures=len(self.entries), test=splits["test"], reference=splits["reference"],
            samples=len({entry.variant.sample_id for entry in self.entries}),
            attributes=_sorted(Counter(entry.variant.attribute for entry in self.entries)),
            left_out={reason: number for reason, number in sorted(self.left_out.items()) if number},
        )  # fmt: skip

    @property
    def _notes(self) -> tuple[str, ...]:
        """What every report on it must say."""
        notes = []
        if self.verified is None:
            notes.append("no people confirmed the pictures of this benchmark")
        else:
            notes += [f"{IN_DOUBT}: {doubt}" for doubt in self.verified.doubts]
        if self.mined is not None and self.mined.surrogates:
            notes.append(
                f"the pictures were chosen because {', '.join(self.mined.surrogates)} fail on them"
                f" ({self.mined.rule}): accuracies of these models are low by construction"
            )
        return tuple(notes)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
