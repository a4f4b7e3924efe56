"""Which examples the page shows, and how it shows them."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.report.content import Example, ReportInput
from counterfoil.report.looks import Style, styles
from counterfoil.report.wording import attribute_name

_MOST_BYTES = 2_700_000  # of pictures in one page; Base64 and the rest keep it below 5 MB
_MOST_CARDS = 400  # pictures or not
TOLD = {
    "flipped": "flipped",
    "held": "held",
    "gained": "gained",
    "wrong": "wrong",
    "right": "right",
}  # right then wrong, right twice, wrong then right, wrong twice; with no photo before, right


class Verdict(NamedTuple):
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
    verdicts: list[Verdict]
    paired: bool


class Shelf(NamedTuple):
    """The cards of one attribute."""

    attribute: str
    name: str
    cards: list[Card]


def shelves(content: ReportInput) -> list[Shelf]:
    """The examples to show, by attribute in the order of the table of drops."""
    shown = _fitting(content.examples)
    replies = [reply.model for example in shown for reply in example.replies]
    looks = styles([*(row.model for row in content.drops), *content.run.models, *replies])
    order = dict.fromkeys([*(row.attribute for row in content.drops), *(example.attribute for example in shown)])
    by_attribute = {name: [example for example in shown if example.attribute == name] for name in order}
    return [
        Shelf(name, attribute_name(name), [_card(example, looks, content.names) for example in members])
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
        example.sample_id,
        names.get(example.label, example.label),
        example.edit,
        example.level,
        _data_address(example.original),
        _data_address(example.edited),
        [_verdict(example, place, looks, names) for place in range(len(example.replies))],
        example.paired,
    )


def _verdict(example: Example, place: int, looks: Mapping[str, Style], names: Mapping[str, str]) -> Verdict:
    reply = example.replies[place]
    outcome = reply.outcome(example.label, example.paired)
    return Verdict(
        looks[reply.model],
        outcome,
        TOLD[outcome],
        names.get(reply.before, reply.before),
        round(100 * reply.confidence_before),
        names.get(reply.after, reply.after),
        round(100 * reply.confidence_after),
        outcome == ("flipped" if example.paired else "wrong"),
    )


def _data_address(jpeg: bytes | None) -> str | None:
    return None if jpeg is None else f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}"


def small_jpeg(image: NDArray[np.uint8], side: int, quality: int) -> bytes:
    """The picture as a JPEG whose longer side has at most so many pixels."""
    scale = min(1.0, side / max(image.shape[:2]))
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return data.tobytes()
