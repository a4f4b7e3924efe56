"""Columns of texts that take few bytes for each: one behind the other, as codes, or as the bytes of a SHA-256."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

_DIGEST_BYTES = 32  # of a SHA-256, which samples hold in hexadecimal digits
_FEW_WORDS = 4  # texts for each distinct one, from which on codes take less than the texts


class CompactTexts(Sequence[str]):
    """A sequence of texts that equals any other of the same texts."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(str.__eq__, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    @abstractmethod
    def joined(self) -> tuple[bytes, NDArray[np.integer[Any]]]:
        """All texts in UTF-8 one behind the other, and where each begins, with the end of the last."""


class PackedTexts(CompactTexts):
    """Texts one behind the other in UTF-8."""

    def __init__(self, texts: Sequence[str]) -> None:
        coded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self._keep_ends(np.cumsum([0, *map(len, coded)], dtype=np.int64))
        self._content = b"".join(coded)

    @classmethod
    def join(cls, columns: Sequence[PackedTexts]) -> PackedTexts:
        """The texts of several columns, one after the other."""
        joined = cls.__new__(cls)
        joined._content = b"".join(column._content for column in columns)
        lengths = [np.diff(column._ends.astype(np.int64)) for column in columns]
        joined._keep_ends(np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths])))
        return joined

    def _keep_ends(self, ends: NDArray[np.int64]) -> None:
        self._ends: NDArray[np.integer[Any]] = ends.astype(np.uint32) if ends[-1] <= np.iinfo(np.uint32).max else ends

    def joined(self) -> tuple[bytes, NDArray[np.integer[Any]]]:
        """As they are kept."""
        return self._content, self._ends

    def encoded(self, place: int) -> bytes:
        """A text in UTF-8; in this form texts have the order of their characters."""
        return self._content[int(self._ends[place]) : int(self._ends[place + 1])]

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """A text, or a list of some."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self.encoded(place % len(self)).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        places = pairwise(self._ends.tolist())
        if not self._content.isascii():
            return (self._content[start:stop].decode("utf-8", "surrogatepass") for start, stop in places)
        text = self._content.decode("ascii")
        return (text[start:stop] for start, stop in places)

    def __len__(self) -> int:
        return len(self._ends) - 1


class CodedTexts(CompactTexts):
    """Texts of which many are alike: the distinct ones, and each place's number among them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = tuple(dict.fromkeys(texts))
        place_of = {word: place for place, word in enumerate(self._words)}
        kind = np.min_scalar_type(len(self._words))
        self._codes: NDArray[np.unsignedinteger] = np.fromiter(map(place_of.__getitem__, texts), kind, len(texts))

    def joined(self) -> tuple[bytes, NDArray[np.integer[Any]]]:
        """The word of each place."""
        words = [word.encode("utf-8", "surrogatepass") for word in self._words]
        lengths = np.array([len(word) for word in words], np.int64)[self._codes]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return b"".join(words[code] for code in self._codes.tolist()), ends

    def renamed(self, word_of: Mapping[str, str]) -> CodedTexts:
        """The texts with other words in place of theirs."""
        changed = copy(self)
        changed._words = tuple(word_of[word] for word in self._words)
        return changed

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """A text, or a list of some."""
        if isinstance(place, slice):
            return [self._words[code] for code in self._codes[place].tolist()]
        return self._words[int(self._codes[place])]

    def __len__(self) -> int:
        return len(self._codes)


class HexadecimalTexts(CompactTexts):
    """SHA-256 sums, as their bytes."""

    def prefixes(self) -> NDArray[np.uint64]:
        """The first eight bytes of each: sums that differ there differ."""
        return np.frombuffer(self._content, np.uint64)[:: _DIGEST_BYTES // 8]

    def __init__(self, texts: Sequence[str]) -> None:
        self._content = b"".join(map(bytes.fromhex, texts))

    def joined(self) -> tuple[bytes, NDArray[np.integer[Any]]]:
        """The digits of all sums."""
        return self._content.hex().encode(), 2 * _DIGEST_BYTES * np.arange(len(self) + 1)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """A sum, or a list of some."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        start = _DIGEST_BYTES * range(len(self))[place]
        return self._content[start : start + _DIGEST_BYTES].hex()

    def __len__(self) -> int:
        return len(self._content) // _DIGEST_BYTES


def pack_texts(texts: Sequence[str]) -> CompactTexts:
    """The texts in the form that takes the least memory."""
    if len(set(texts)) * _FEW_WORDS <= len(texts):
        return CodedTexts(texts)
    try:
        digests = HexadecimalTexts(texts)
    except ValueError:
        return PackedTexts(texts)
    return digests if all(map(str.__eq__, digests, texts)) and len(digests) == len(texts) else PackedTexts(texts)
