"""An answer in free text, read: which of the choices it names, or why it cannot be scored."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from counterfoil.types import Outcome

Match = Literal["substring", "words"]

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:i(?: am|'m) (?:sorry|unable|not able)|sorry,|i (?:can't|cannot|can not|won't|will not|could not|couldn't)"
    r"|i must decline|unable to (?:assist|help|identify|comply)|as an ai\b)"
)
_TAKEN = "\n"  # stands where a longer name was: folded text and names hold no line breaks, so nothing matches across it


class Reading(NamedTuple):
    """What an answer amounts to."""

    outcome: Outcome
    choice: int | None = None  # position among the choices, where the answer names exactly one


def folded(text: str) -> str:
    """Lower case, straight apostrophes, hyphens and underscores as spaces, one space between words."""
    return " ".join(text.lower().replace("’", "'").replace("-", " ").replace("_", " ").split())


def named(answer: str, choices: Sequence[Collection[str]], match: Match = "substring") -> set[int]:
    """Which choices an answer names, by any of their wordings; longer wordings are sought, and taken out, first.

    Without that order every "can opener" would name a pen as well, and "drying rack for plates" a plate.
    """
    text = folded(answer)
    found: set[int] = set()
    for wording in sorted({wording for choice in choices for wording in choice}, key=lambda name: (-len(name), name)):
        text, times = re.subn(_pattern(wording, match), _TAKEN, text)
        if times:
            found |= {place for place, choice in enumerate(choices) if wording in choice}
    return found


def _pattern(wording: str, match: Match) -> str:
    exact = re.escape(wording)
    return exact if match == "substring" else rf"(?<!\w){exact}(?:e?s)?(?!\w)"


def read(answer: str, choices: Sequence[Collection[str]], match: Match = "substring") -> Reading:
    """One choice named: scored; several or none: unparsed, or refused where the answer says so."""
    said = _THOUGHT.sub(" ", answer)  # a reasoning model weighs every choice before it answers
    found = named(said, choices, match)
    if len(found) == 1:
        return Reading("scored", found.pop())
    if not found and _REFUSAL.search(folded(said)):
        return Reading("refused")
    return Reading("unparsed")
