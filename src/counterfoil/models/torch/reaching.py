"""Weights from a hub: what goes wrong on the way is said in one line."""

from __future__ import annotations

import difflib
import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from counterfoil.errors import UserError


@contextmanager
def reaching(address: str, advice: str) -> Iterator[None]:
    """Turn a library's failure to fetch or to fit weights into a line that says what to do instead."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, KeyError, pickle.UnpicklingError) as error:
        line = " ".join(str(error).split())[:240]
        raise UserError(f"expected weights for '{address}', but they cannot be loaded: {line}; {advice}") from error


def nearest(name: str, known: Iterable[str], kind: str) -> str:
    """The exact addresses that were probably meant."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.3)
    return " or ".join(f"'{kind}:{match}'" for match in close) or f"one of `counterfoil list models`, {kind}:"


def looks_like_a_file(place: str) -> bool:
    """Whether somebody gave a path where a name belongs."""
    return place.lower().endswith((".pth", ".pt", ".bin", ".ckpt", ".safetensors", ".tar")) or place.startswith(
        ("/", "./", "../", "~")
    )
