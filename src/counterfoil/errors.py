"""Errors caused by input, spelling suggestions, and how to install an extra."""

from __future__ import annotations

import difflib
import errno
import pickle
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

_CLOSE = 0.6  # of difflib's ratio: below it a suggestion is a guess


class UserError(Exception):
    """Input that cannot be used; one line says what was expected, what was given and what to do."""


class Unusable(Exception):
    """One picture that cannot be read, masked or edited; it is counted and listed with this reason."""


def expect_path(given: object, what: str) -> Path:
    """A path that Python was given; raises `UserError` for anything else, and for an empty text, which is no place."""
    if not isinstance(given, str | Path) or not str(given).strip():
        shown = "an empty text" if isinstance(given, str) else type(given).__name__
        raise UserError(f"expected {what} as a path, got {shown}")
    if "\0" in str(given):
        raise UserError(f"expected {what} as a path, got {str(given)!r:.80}, a text with a null character")
    path = Path(given)
    if is_circular(path):
        raise UserError(f"expected {what} as a path, got '{given}', a link that leads in a circle")
    if _error_of(path) == errno.ENAMETOOLONG:
        raise UserError(f"expected {what} as a path, got a name that is too long for a file: '{given!s:.60}...'")
    return path


def is_circular(path: Path) -> bool:
    """Whether a link on the way to this path leads in a circle."""
    return _error_of(path) == errno.ELOOP  # `resolve` says it up to Python 3.12 only


def _error_of(path: Path) -> int | None:
    """What the system says of a path that cannot be looked at; None where it can."""
    try:
        path.stat()
    except OSError as error:
        return error.errno
    return None


def expect_kind(given: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Raises `UserError` where Python was given a thing of another kind."""
    if not isinstance(given, kinds):
        raise UserError(f"expected {what}, got {type(given).__name__}")


def expect_choice(given: object, choices: Sequence[str | None], what: str) -> None:
    """Raises `UserError` where Python was given none of the texts that are known."""
    if not any(given is choice or (isinstance(given, str) and given == choice) for choice in choices):
        known = " or ".join(repr(choice) for choice in choices if choice is not None)
        raise UserError(f"expected {what} as {known}, got {given!r:.80}")


def expect_members(given: object, names: Iterable[str], what: str) -> None:
    """Raises `UserError` where a thing lacks what the frame asks of it."""
    missing = [name for name in names if not hasattr(given, name)]
    if missing:
        raise UserError(f"expected {what}, got {type(given).__name__}, which has no {' and no '.join(missing)}")


def did_you_mean(word: str, known: Iterable[str], before: str = "") -> str:
    """The end of a message that suggests the closest known word; empty where none is close.

    The text `before` each word is shown with it but not compared, since all words share it.
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=_CLOSE)
    return f"; did you mean '{before}{close[0]}'?" if close else ""


def how_to_install(extra: str, option: str = "") -> str:
    """The command that installs an extra, from an index and from a clone."""
    return f"pip install {option}'counterfoil[{extra}]' (from a clone: pip install {option}'.[{extra}]')"


def make_portable(fault: BaseException) -> BaseException:
    """The error as another process can raise it; one that cannot be pickled by its name and text."""
    try:
        pickle.loads(pickle.dumps(fault))
    except Exception:  # noqa: BLE001  errors of other packages may refuse in any way
        return RuntimeError(f"{type(fault).__name__}: {fault}")
    return fault


def describe_exit(error: SystemExit) -> str:
    """Where code of others called `sys.exit`, in one line."""
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    place = f"{Path(frame.f_code.co_filename).name}, line {line}"
    return f"code that was called ended the command by sys.exit({error.code!r}) ({place}); what is finished is kept"
