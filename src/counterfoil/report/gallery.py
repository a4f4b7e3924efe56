"""The gallery: pictures before and after an edit, with every model's answers."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from counterfoil.report.chart_parts import Style, assign_styles
from counterfoil.report.content import ReportContent
from counterfoil.report.words import name_attribute
from counterfoil.study.examples import Example

_MOST_BYTES = 2_700_000  # of pictures in one page; Base64 and the rest keep it below 5 MB
_MOST_CARDS = 400  # with pictures or without


class Answer(NamedTuple):
    """One model's answer before and after the edit."""

    style: Style
    outcome: str  # flipped, held, gained or wrong; right or wrong without a photo before
    before: str
    before_percent: int
    after: str
    after_percent: int
    failed: bool  # flipped; wrong where there is no photo before


class Card(NamedTuple):
    """One photo before and after one edit, with every model's answers."""

    sample_id: str
    name: str  # of the true label
    edit: str
    level: str
    original: str | None  # data address
    edited: str | None
    answers: list[Answer]
    paired: bool


class GallerySection(NamedTuple):
    """The cards of one attribute."""

    attribute: str
    name: str
    cards: list[Card]


def build_gallery(content: ReportContent) -> list[GallerySection]:
    """Build the sections of examples, by attribute in the order of the table of drops."""
    shown = _choose_fitting(content.examples)
    replies = [reply.model for example in shown for reply in example.replies]
    styles = assign_styles([*(row.model for row in content.drops), *content.run.models, *replies])
    order = dict.fromkeys([*(row.attribute for row in content.drops), *(example.attribute for example in shown)])
    by_attribute = {name: [example for example in shown if example.attribute == name] for name in order}
    return [
        GallerySection(name, name_attribute(name), [_card(example, styles, content.names) for example in members])
        for name, members in by_attribute.items()
        if members
    ]


def _choose_fitting(examples: Sequence[Example]) -> list[Example]:
    """As many examples as the page's size allows, attributes in turn."""
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


def _card(example: Example, styles: Mapping[str, Style], names: Mapping[str, str]) -> Card:
    answers = []
    for reply in example.replies:
        outcome = reply.outcome(example.label, example.paired)
        answers.append(
            Answer(
                style=styles[reply.model],
                outcome=outcome,
                before=names.get(reply.before, reply.before),
                before_percent=round(100 * reply.confidence_before),
                after=names.get(reply.after, reply.after),
                after_percent=round(100 * reply.confidence_after),
                failed=outcome == ("flipped" if example.paired else "wrong"),
            )
        )
    return Card(
        sample_id=example.sample_id,
        name=names.get(example.label, example.label),
        edit=example.edit,
        level=example.level,
        original=_data_address(example.original),
        edited=_data_address(example.edited),
        answers=answers,
        paired=example.paired,
    )


def _data_address(jpeg: bytes | None) -> str | None:
    return None if jpeg is None else f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}"
