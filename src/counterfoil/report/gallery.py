"""Which flips the page shows, and how models that flipped on the same picture share a card."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from counterfoil.report.content import Flip, ReportInput
from counterfoil.report.looks import Style, styles
from counterfoil.report.wording import attribute_name

MOST_FLIPS = 8  # per model and attribute
_MOST_BYTES = 2_700_000  # of pictures in one page; Base64 and the rest keep it below 5 MB


class Verdict(NamedTuple):
    """What one model said before and after the edit."""

    style: Style
    before: str
    before_percent: int
    after: str
    after_percent: int


class Card(NamedTuple):
    """One photo before and after one edit, with every model that flipped on it."""

    sample_id: str
    name: str  # of the true label
    edit: str
    level: str
    original: str  # data address
    edited: str
    verdicts: list[Verdict]


class Shelf(NamedTuple):
    """The cards of one attribute."""

    attribute: str
    name: str
    cards: list[Card]


def shelves(content: ReportInput) -> list[Shelf]:
    """The flips to show, by attribute in the order of the table of drops."""
    flips = _fitting(content.flips)
    looks = styles([row.model for row in content.drops] + [flip.model for flip in flips])
    order = dict.fromkeys([row.attribute for row in content.drops] + [flip.attribute for flip in flips])
    by_attribute = {attribute: [flip for flip in flips if flip.attribute == attribute] for attribute in order}
    return [
        Shelf(attribute, attribute_name(attribute), _cards(members, looks, content.names))
        for attribute, members in by_attribute.items()
        if members
    ]


def _fitting(flips: Sequence[Flip]) -> list[Flip]:
    """As many flips per model and attribute as keep the page small."""
    for limit in range(MOST_FLIPS, 1, -1):
        chosen = _first_of_each(flips, limit)
        if sum(len(original) + len(edited) for original, edited in _pictures(chosen)) <= _MOST_BYTES:
            return chosen
    return _first_of_each(flips, 1)


def _first_of_each(flips: Sequence[Flip], limit: int) -> list[Flip]:
    seen: Counter[tuple[str, str]] = Counter()
    chosen = []
    for flip in flips:
        seen[flip.model, flip.attribute] += 1
        if seen[flip.model, flip.attribute] <= limit:
            chosen.append(flip)
    return chosen


def _pictures(flips: Sequence[Flip]) -> set[tuple[bytes, bytes]]:
    return {(flip.original_jpeg, flip.edited_jpeg) for flip in flips}


def _cards(flips: Sequence[Flip], looks: Mapping[str, Style], names: Mapping[str, str]) -> list[Card]:
    by_picture: dict[tuple[str, str, str, bytes], list[Flip]] = {}
    for flip in flips:
        by_picture.setdefault((flip.sample_id, flip.edit, flip.level, flip.edited_jpeg), []).append(flip)
    return [_card(members, looks, names) for members in by_picture.values()]


def _card(flips: Sequence[Flip], looks: Mapping[str, Style], names: Mapping[str, str]) -> Card:
    first = flips[0]
    return Card(
        first.sample_id,
        names.get(first.label, first.label),
        first.edit,
        first.level,
        _data_address(first.original_jpeg),
        _data_address(first.edited_jpeg),
        [_verdict(flip, looks[flip.model], names) for flip in flips],
    )


def _verdict(flip: Flip, style: Style, names: Mapping[str, str]) -> Verdict:
    return Verdict(
        style,
        names.get(flip.answer_before, flip.answer_before),
        round(100 * flip.confidence_before),
        names.get(flip.answer_after, flip.answer_after),
        round(100 * flip.confidence_after),
    )


def _data_address(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}"
