"""Examples as the page shows them."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from counterfoil.report.charts import Style, styles
from counterfoil.report.report_input import ReportInput
from counterfoil.report.words import attribute_name
from counterfoil.study.examples import Example

_MOST_BYTES = 2_700_000  # of pictures in one page; Base64 and the rest keep it below 5 MB
_MOST_CARDS = 400  # pictures or not
TOLD = {
    "flipped": "flipped",
    "held": "held",
    "gained": "gained",
    "wrong": "wrong",
    "right": "right",
}  # right then wrong, right twice, wrong then right, wrong twice; with no photo before, right


class AnswerOutcome(NamedTuple):
    """What one model said before and after the edit."""

    style: Style
    outcome: str
    told: str
    before: str
    before_percent: int
    after: str
    after_percent: int
    failed: bool  # flipped; where there is no photo before, wrong


class Card(NamedTuple):
    """One photo before and after one edit, with what every model said."""

    sample_id: str
    name: str  # of the true label
    edit: str
    level: str
    original: str | None  # data address
    edited: str | None
    verdicts: list[AnswerOutcome]
    paired: bool


class GallerySection(NamedTuple):
    """The cards of one attribute."""

    attribute: str
    name: str
    cards: list[Card]


def gallery_sections(content: ReportInput) -> list[GallerySection]:
    """The examples to show, by attribute in the order of the table of drops."""
    shown = _fitting(content.examples)
    replies = [reply.model for example in shown for reply in example.replies]
    looks = styles([*(row.model for row in content.drops), *content.run.models, *replies])
    order = dict.fromkeys([*(row.attribute for row in content.drops), *(example.attribute for example in shown)])
    by_attribute = {name: [example for example in shown if example.attribute == name] for name in order}
    return [
        GallerySection(name, attribute_name(name), [_card(example, looks, content.names) for example in members])
        for name, members in by_attribute.items()
        if members
    ]


def _fitting(examples: Sequence[Example]) -> list[Example]:
    """As many examples as keep the page small, every attribute in turn."""
    groups: defaultdict[str, list[Example]] = defaultdict(list)
    for example in examples:
        groups[example.attribute].append(example)
    chosen: list[Example] = []
    room = _MOST_BYTES
    for example in (member for turn in zip_longest(*groups.values()) for member in turn if member is not None):
        room -= len(example.original or b"") + len(example.edited or b"")
        if room < 0 or len(chosen) == _MOST_CARDS:
            break
        chosen.append(example)
    return chosen


def _card(example: Example, looks: Mapping[str, Style], names: Mapping[str, str]) -> Card:
    return Card(
        sample_id=example.sample_id,
        name=names.get(example.label, example.label),
        edit=example.edit,
        level=example.level,
        original=_data_address(example.original),
        edited=_data_address(example.edited),
        verdicts=[_verdict(example, place, looks, names) for place in range(len(example.replies))],
        paired=example.paired,
    )


def _verdict(example: Example, place: int, looks: Mapping[str, Style], names: Mapping[str, str]) -> AnswerOutcome:
    reply = example.replies[place]
    outcome = reply.outcome(example.label, example.paired)
    return AnswerOutcome(
        style=looks[reply.model],
        outcome=outcome,
        told=TOLD[outcome],
        before=names.get(reply.before, reply.before),
        before_percent=round(100 * reply.confidence_before),
        after=names.get(reply.after, reply.after),
        after_percent=round(100 * reply.confidence_after),
        failed=outcome == ("flipped" if example.paired else "wrong"),
    )


def _data_address(jpeg: bytes | None) -> str | None:
    return None if jpeg is None else f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}"
