"""The pictures of a page: each embedded once, shown on cards, and opened large with every model's answers."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

import cv2
import numpy as np

from counterfoil.report.chart_parts import Style, assign_styles
from counterfoil.report.words import capitalize_first, describe_change, name_attribute
from counterfoil.study.examples import Example

_MOST_BYTES = 1_500_000  # of pictures in one page; Base64 adds a third


class Shot(NamedTuple):
    """A picture of the page, by its name there."""

    name: str
    width: int
    height: int

    @property
    def ratio(self) -> float:
        """Width over height of its place on a card, which may be wider or higher than the picture."""
        return round(min(1.6, max(1.0, self.width / self.height)), 3)


@dataclass(frozen=True)
class EmbeddedPictures:
    """The pictures of a page; the same pixels are embedded once."""

    addresses: dict[str, tuple[Shot, str]] = field(default_factory=dict)  # by hash: the picture, its data address

    def add(self, image: bytes | None, kind: str = "jpeg") -> Shot | None:
        """Return the picture's place on the page; None where there is none."""
        if image is None:
            return None
        key = hashlib.sha256(image).hexdigest()
        if key not in self.addresses:
            pixels = np.asarray(cv2.imdecode(np.frombuffer(image, np.uint8), cv2.IMREAD_UNCHANGED))
            shot = Shot(f"i{len(self.addresses) + 1}", pixels.shape[1], pixels.shape[0])
            data = base64.b64encode(image).decode("ascii")
            self.addresses[key] = shot, f"data:image/{kind};base64,{data}"
        return self.addresses[key][0]


class Answer(NamedTuple):
    """One model's answer before and after the edit."""

    style: Style
    before: str
    before_percent: int
    was_right: bool
    after: str
    after_percent: int
    is_right: bool


class Card(NamedTuple):
    """One photo before and after one edit, with every model's answers."""

    name: str  # of the dialog on the page
    attribute: str
    change: str  # the edit in words
    level: str
    truth: str  # readable name of the true label
    sample_id: str
    variant_id: str
    before: Shot | None
    edited: Shot | None
    before_words: str  # what the first picture shows
    answers: list[Answer]
    lead: Answer | None  # of the model that the picture was chosen for
    paired: bool
    step: bool
    command: str  # makes the file


class GallerySection(NamedTuple):
    """The cards of one attribute."""

    attribute: str
    name: str
    cards: list[Card]


class GallerySource(NamedTuple):
    """What cards are made of."""

    examples: Sequence[Example]
    names: Mapping[str, str]  # readable names by label
    styles: Mapping[str, Style]
    folder: str = ""  # of the run, for the command that makes a file


def build_gallery(source: GallerySource, pictures: EmbeddedPictures) -> list[GallerySection]:
    """Build the cards by attribute, in the order of the examples, as many as the page's size allows."""
    replies = [reply.model for example in source.examples for reply in example.replies]
    styles = {**assign_styles(replies), **source.styles}
    cards = [
        _card(example, source._replace(styles=styles), pictures, f"p{place}")
        for place, example in enumerate(_choose_fitting(source.examples), start=1)
    ]
    attributes = dict.fromkeys(example.attribute for example in source.examples)
    sections = [
        GallerySection(name, name_attribute(name), [card for card in cards if card.attribute == name])
        for name in attributes
    ]
    return [section for section in sections if section.cards]


def choose_failures(sections: Sequence[GallerySection], order: Sequence[str], most: int = 3) -> list[Card]:
    """One failure of each of the costliest attributes, of different photos and models where possible."""
    by_attribute = {section.attribute: section.cards for section in sections}
    chosen: list[Card] = []
    for attribute in [name for name in order if name in by_attribute] or list(by_attribute):
        failures = [card for card in by_attribute[attribute] if card.edited and not card.step and _fails(card)]
        if failures and len(chosen) < most:
            photos, models = [card.sample_id for card in chosen], [_model(card) for card in chosen]
            seen = [(photos.count(card.sample_id), models.count(_model(card))) for card in failures]
            chosen.append(failures[seen.index(min(seen))])
    return chosen


def _fails(card: Card) -> bool:
    return card.lead is not None and not card.lead.is_right


def _model(card: Card) -> str:
    return card.lead.style.model if card.lead else ""


def _choose_fitting(examples: Sequence[Example]) -> list[Example]:
    """As many examples as the page's size allows, attributes in turn, in their own order."""
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.attribute, []).append(example)
    chosen: set[int] = set()
    embedded: set[bytes] = set()
    room = _MOST_BYTES
    for example in (member for turn in zip_longest(*groups.values()) for member in turn if member is not None):
        new = {image for image in (example.before, example.edited) if image is not None} - embedded
        room -= sum(map(len, new))
        if room < 0:
            break
        embedded |= new
        chosen.add(id(example))
    return [example for example in examples if id(example) in chosen]


def _card(example: Example, source: GallerySource, pictures: EmbeddedPictures, name: str) -> Card:
    answers = list(_answers(example, source))
    lead = next((answer for answer in answers if answer.style.model == example.model), None)
    failed = [answer for answer in answers if not answer.is_right]
    command = [
        "counterfoil",
        "pictures",
        "rebuild",
        source.folder,
        example.variant_id,
        "--out",
        f"{example.variant_id}.png",
    ]
    return Card(
        name=name,
        attribute=example.attribute,
        change=describe_change(example.edit, example.level),
        level=example.level,
        truth=source.names.get(example.label, example.label),
        sample_id=example.sample_id,
        variant_id=example.variant_id,
        before=pictures.add(example.before),
        edited=pictures.add(example.edited),
        before_words=describe_before(example),
        answers=answers,
        lead=lead or next(iter(failed or answers), None),
        paired=example.paired,
        step=example.step,
        command=shlex.join(command) if source.folder and example.variant_id else "",
    )


def describe_before(example: Example) -> str:
    """Describe the picture that an edited one is compared with."""
    if example.reference == "original":
        return "the unedited photo"
    edit, _, level = example.reference.partition(" ")
    return describe_change(edit, level)


def _answers(example: Example, source: GallerySource) -> Iterator[Answer]:
    for reply in sorted(example.replies, key=lambda reply: source.styles[reply.model].place):
        yield Answer(
            style=source.styles[reply.model],
            before=source.names.get(reply.before, reply.before),
            before_percent=round(100 * reply.confidence_before),
            was_right=reply.before == example.label,
            after=source.names.get(reply.after, reply.after),
            after_percent=round(100 * reply.confidence_after),
            is_right=reply.after == example.label,
        )


def title_card(card: Card) -> str:
    """The heading of a picture that is opened large."""
    return capitalize_first(f"{name_attribute(card.attribute)}: {card.change}")
