"""What the part of an address behind `?` says: what is asked, and how an answer is read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from counterfoil.errors import UserError
from counterfoil.labels import LabelSpace, imagenet1k, own_space, space_named
from counterfoil.models.vlm.choosing import Order
from counterfoil.models.vlm.reading import Match


class Asking(BaseModel):
    """Everything that can change an answer or its score; it is part of the model's name and of its digest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: str = ""  # a known space, a JSON file of classes, or labels divided by commas
    order: Order = "random"
    distractors: str = ""  # a file; drawn by rule where it says nothing
    synonyms: str = ""  # a file that adds to the published synonyms
    match: Match = "substring"
    format: Literal["jpeg", "png"] = "jpeg"
    longest_side: int = Field(default=1024, ge=32, le=2048)  # pixels; smaller pictures are sent as they are
    answer_tokens: int = Field(default=100, ge=1, le=32768)
    token_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: float | Literal["default"] = 0.0
    seed: int = 0


def parse(address: str, place: str) -> tuple[str, Asking]:
    """The model's name and the settings behind it."""
    model, _, query = place.partition("?")
    if not model.strip():
        raise UserError(f"expected vlm:NAME with the name the endpoint knows the model by, got '{address}'")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise UserError(f"expected settings such as vlm:{model}?order=faithful&format=png, got '{address}'") from None
    settings = dict(pairs)
    if len(settings) < len(pairs):
        raise UserError(f"expected each setting once, got '{address}'")
    try:
        return model, Asking.model_validate(settings)
    except ValidationError as error:
        raise UserError(f"'{address}': {fault_in(error)}; expected keys: {', '.join(Asking.model_fields)}") from None


def fault_in(error: ValidationError) -> str:
    """The first thing that is wrong, by its key and value."""
    fault = error.errors()[0]
    return f"'{fault['loc'][0]}': {fault['msg'].lower()}, got '{fault['input']}'"


def label_space(labels: str, classes: LabelSpace | None) -> LabelSpace:
    """The classes that a model is asked about: those of its address, else those of the run, else ImageNet's."""
    if not labels:
        return classes or imagenet1k()
    if "," not in labels or Path(labels).is_file():
        return space_named(labels)
    names = tuple(name.strip() for name in labels.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise UserError(f"expected labels divided by commas, no two alike, got 'labels={labels}'")
    return own_space("the address", names)
