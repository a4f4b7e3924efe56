"""What a report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from counterfoil.types import Attribute, Drop, Run, Skipped


@dataclass(frozen=True)
class Flip:
    """A photo that one model got right before an edit and wrong after it, with small pictures of both."""

    model: str
    attribute: Attribute
    edit: str
    level: str
    sample_id: str
    label: str
    original_jpeg: bytes
    edited_jpeg: bytes
    answer_before: str  # a label, as are the true one and the one after
    confidence_before: float  # 0..1
    answer_after: str
    confidence_after: float  # 0..1


@dataclass(frozen=True)
class ReportInput:
    """Everything that the page, the tables and the summary say."""

    title: str
    run: Run
    drops: Sequence[Drop]
    photos: int  # that could be used
    variants: int  # pictures that every model saw, originals included
    flips: Sequence[Flip] = ()
    skipped: Sequence[Skipped] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # label to what people call it
    unscored: Mapping[str, int] = field(default_factory=dict)  # model to answers that count nowhere
