"""A sentence that the numbers support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NO_ATTRIBUTE = {
    "original",
    "control",
    "presence",
    "combination",
}  # read on their own, never ranked among the attributes


@dataclass(frozen=True)
class Finding:
    """One sentence or two that the numbers support; `model` is empty where it is about all of them."""

    model: str
    kind: Literal[
        "data", "accuracy", "by_attribute", "weakest", "costly", "improved", "unclear", "control", "presence", "models",
        "surrogate",
    ]  # fmt: skip
    text: str
    heading: str = ""  # of `lines`, where there are any
    lines: tuple[tuple[str, str], ...] = ()  # the same as a list: attribute, and what is said of it
    brief: str = ""  # the same where the model's name stands above it; `text` where empty
    aside: str = ""  # what qualifies `brief`, in smaller letters
