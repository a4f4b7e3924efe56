"""Errors that come from input and not from a bug, spelling suggestions, and how to install an extra."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_CLOSE = 0.6  # of difflib's ratio: below it a suggestion is a guess


class UserError(Exception):
    """Input that cannot be used: one line that says what was expected, what came and what to do."""


class Unusable(Exception):
    """One picture that cannot be read, masked or edited: becomes a counted row with this reason."""


class Unsegmented(Unusable):
    """One photo whose object the segmenter could not find plausibly."""


def did_you_mean(word: str, known: Iterable[str], before: str = "") -> str:
    """The end of a line that offers the known word close to one that is not; empty where none is close.

    What stands `before` every word is offered with it and not compared: it would make all of them alike.
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=_CLOSE)
    return f"; did you mean '{before}{close[0]}'?" if close else ""


def how_to_install(extra: str, option: str = "") -> str:
    """The command that installs an extra, from an index and from a clone."""
    return f"pip install {option}'counterfoil[{extra}]' (from a clone: pip install {option}'.[{extra}]')"
