"""The free-text answer of a vision-language model, parsed: which of the offered names it gives, or a refusal."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from counterfoil.types import PredictionOutcome

Match = Literal["substring", "words"]

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:i(?: am|'m) (?:sorry|unable|not able)|sorry,|i (?:can't|cannot|can not|won't|will not|could not|couldn't)"
    r"|i must decline|unable to (?:assist|help|identify|comply)|as an ai\b)"
)
_TAKEN = "\n"  # replaces a longer name; folded text has no line breaks, so nothing matches across it


class ParsedAnswer(NamedTuple):
    """The outcome of an answer."""

    outcome: PredictionOutcome
    choice: int | None = None  # position among the choices, where the answer names exactly one


def fold_text(text: str) -> str:
    """Lower case, straight apostrophes, hyphens and underscores as spaces, one space between words."""
    return " ".join(text.lower().replace("’", "'").replace("-", " ").replace("_", " ").split())


def find_named_choices(answer: str, choices: Sequence[Collection[str]], match: Match = "substring") -> set[int]:
    """Which choices an answer names, by any of their wordings; longer wordings are matched and removed first.

    Otherwise every "can opener" would name a pen as well, and "drying rack for plates" a plate.
    """
    text = fold_text(answer)
    named: set[int] = set()
    for wording in sorted({wording for choice in choices for wording in choice}, key=lambda name: (-len(name), name)):
        text, times = re.subn(_pattern(wording, match), _TAKEN, text)
        if times:
            named |= {place for place, choice in enumerate(choices) if wording in choice}
    return named


def _pattern(wording: str, match: Match) -> str:
    exact = re.escape(wording)
    return exact if match == "substring" else rf"(?<!\w){exact}(?:e?s)?(?!\w)"


def parse_answer(answer: str, choices: Sequence[Collection[str]], match: Match = "substring") -> ParsedAnswer:
    """One choice named: scored; several or none: unparsed, or refused where the answer says so."""
    text = _THOUGHT.sub(" ", answer)  # a reasoning model mentions every choice before it answers
    named = find_named_choices(text, choices, match)
    if len(named) == 1:
        return ParsedAnswer("scored", named.pop())
    if not named and _REFUSAL.search(fold_text(text)):
        return ParsedAnswer("refused")
    return ParsedAnswer("unparsed")
