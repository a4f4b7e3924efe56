"""Files that label ImageNet's validation pictures, and the three ways in which their numbers count the classes.

A number alone says nothing: 65 is a sea snake among sorted WordNet ids, a cricket among them counted from 1, and a
hartebeest in the development kit. The labels of the first pictures are known, so they tell which way a file counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from counterfoil.errors import UserError
from counterfoil.labels import imagenet1k
from counterfoil.published.devkit_order import INDICES

_FIRST = (65, 970, 230, 809, 516, 57, 334, 415, 674, 332)  # indices of ILSVRC2012_val_00000001 and the nine after it
_NAME = re.compile(r"ILSVRC2012_val_(?P<number>\d{8})")
_WNID = re.compile(r"n\d{8}")
_NUMBERINGS: dict[str, Callable[[int], int]] = {  # from a file's number to the index among sorted WordNet ids
    "indices 0 to 999 of the sorted WordNet ids": lambda number: number,
    "places 1 to 1000 of the sorted WordNet ids": lambda number: number - 1,
    "ILSVRC2012_ID of the development kit, which has an order of its own": lambda number: INDICES[number - 1],
}


class Labels(NamedTuple):
    """What a file says: WordNet ids by the pictures' stems, and how its numbers were read."""

    ids: Mapping[str, str]
    counted: str = ""  # empty where the file names WordNet ids


def read_labels(path: str, text: str) -> Labels:
    """The labels of "NAME 65", "NAME,n01751748 111 ...", or of one id or number a line; none of another file."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and all(_WNID.fullmatch(line) or re.fullmatch(r"[0-9]{1,4}", line) for line in lines):
        _refuse_other_order(path, lines)
        return _resolved(path, dict(enumerate(lines, 1)))
    told: dict[int, str] = {}
    for line in lines:
        name, *rest = re.split(r"[\s,]+", line)
        if rest and (match := _NAME.search(name)) and re.fullmatch(r"n\d{8}|[0-9]{1,4}", rest[0]):
            told[int(match["number"])] = rest[0]
    return _resolved(path, told)


def _refuse_other_order(path: str, lines: Sequence[str]) -> None:
    """Ids without names are labels only where the first pictures' stand first: lists of classes look the same."""
    first = [imagenet1k().labels[index] for index in _FIRST]
    for number, (line, known) in enumerate(zip(lines, first, strict=False), 1):
        if not line.isdecimal() and line != known:
            raise UserError(
                f"expected the WordNet id of every validation picture in order in {path}, where {_stem(number)} is"
                f" {known}; got {line}: write the pictures' names before their ids"
            )


def _resolved(path: str, told: Mapping[int, str]) -> Labels:
    known = imagenet1k()
    named = {number: text for number, text in told.items() if text in known}
    counted = {number: int(text) for number, text in told.items() if text.isdecimal()}
    if not counted:
        return Labels({_stem(number): text for number, text in named.items()})
    way = _numbering(path, counted)
    index = _NUMBERINGS[way]
    return Labels({_stem(number): known.labels[index(value)] for number, value in counted.items()}, way)


def _numbering(path: str, counted: Mapping[int, int]) -> str:
    """Which way of counting gives the first pictures the classes that they have; where none tells, nobody guesses."""
    first = {number: counted[number] for number in range(1, len(_FIRST) + 1) if number in counted}
    ways = [way for way in _NUMBERINGS if _possible(way, counted) and _fits(way, first)]
    if len(ways) == 1:
        return ways[0]
    shown = ", ".join(f"{_stem(number)} {value}" for number, value in list(first.items())[:3])
    numbers = f"numbers from {min(counted.values())} to {max(counted.values())} and none of the first ten pictures"
    raise UserError(
        f"expected labels in {path} that count as {'; or as '.join(_NUMBERINGS)}, where {_stem(1)} is 65, 66 or 490;"
        f" got {shown or numbers}: use WordNet ids instead"
    )


def _possible(way: str, counted: Mapping[int, int]) -> bool:
    low = 0 if way.startswith("indices 0") else 1
    return low <= min(counted.values()) and max(counted.values()) < low + len(INDICES)


def _fits(way: str, first: Mapping[int, int]) -> bool:
    return all(_NUMBERINGS[way](value) == _FIRST[number - 1] for number, value in first.items())


def _stem(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}"
