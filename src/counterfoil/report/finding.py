"""A sentence that the numbers support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from counterfoil.analyse import FEWEST_PHOTOS
from counterfoil.report.wording import sentence_start

NO_ATTRIBUTE = {
    "original",
    "control",
    "presence",
    "combination",
}  # read on their own, never ranked among the attributes


Kind: TypeAlias = Literal[
    "data", "accuracy", "by_attribute", "weakest", "costly", "improved", "unclear", "control", "presence", "models",
    "surrogate",
]  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One sentence or two that the numbers support; `model` is empty where it is about all of them."""

    model: str
    kind: Kind
    text: str
    heading: str = ""  # of `lines`, where there are any
    lines: tuple[tuple[str, str], ...] = ()  # the same as a list: attribute, and what is said of it
    brief: str = ""  # the same where the model's name stands above it; `text` where empty
    aside: str = ""  # what qualifies `brief`, in smaller letters


def lead(model: str, kind: Kind, sentence: tuple[str, str], qualified: Sequence[str]) -> Finding:
    """A finding from its sentence, with the model's name and without, and what qualifies it; no full stops."""
    text, brief = sentence
    aside = sentence_start(f"{'; '.join(qualified)}.") if qualified else ""
    return Finding(model, kind, f"{'; '.join([text, *qualified])}.", brief=f"{sentence_start(brief)}.", aside=aside)


def too_few(most: int, picture: str, scored: str) -> Finding:
    """All that is said where no row has enough of them; `most` is the number of the row that has most."""
    if most == 0:
        return Finding("", "data", f"No data: no {picture} was {scored}, so nothing can be said.")
    told = f"Too few {picture}s: at most {most} were {scored}, and {FEWEST_PHOTOS} are the least."
    return Finding("", "data", told)
