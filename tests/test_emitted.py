"""The list of sentences that the program can emit holds all kinds, and none of them is too long to read once."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "emitted.py"))
LONGEST = 40  # words of a sentence
FORBIDDEN = ("count nowhere", "counts nowhere", "is told", "told by", "has no say", "whatever was said")


@pytest.fixture(scope="module")
def emitted() -> list[tuple[str, str, int, str]]:
    return [tuple(one) for one in SCRIPT["list_emitted"]()]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("error", "expected at least one model, got none; try --model embedded:efficientnet-lite0"),
        ("reason", "the mask is empty"),
        ("terminal", "making the report"),
        ("help", "Print the version."),
        ("help", "Model that chooses pictures; may be repeated."),
        ("reply", "the page is out of date; load it again"),
        ("page", "This page needs JavaScript: please allow it and load the page again."),
        ("script", "No connection to the server; trying again."),
        ("text", "nobody has confirmed the pictures of this benchmark"),
    ],
)
def test_sentences_of_every_kind_are_listed(emitted: list[tuple[str, str, int, str]], kind: str, words: str) -> None:
    assert (kind, words) in {(one[0], one[3]) for one in emitted}


def test_values_that_are_filled_in_are_named_and_docstrings_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        '"""A module that emits one sentence."""\n\n\ndef check(path, count):\n    """Check it in three words."""\n'
        '    raise UserError(f"expected {count} rows in {path.name}, got none")\n'
    )
    (found,) = SCRIPT["list_emitted"](tmp_path)
    assert tuple(found) == ("error", "module.py", 6, "expected {count} rows in {name}, got none")


def test_no_sentence_is_too_long_and_none_uses_words_that_were_dropped(
    emitted: list[tuple[str, str, int, str]],
) -> None:
    long = [one for one in emitted if SCRIPT["count_longest"](one[3]) > LONGEST]
    assert not long, long
    assert not [one for one in emitted for words in FORBIDDEN if words in one[3]]
