"""Which classes an honest person may mix up: a control under such a class would prove nothing against them."""

from __future__ import annotations

import re
from collections.abc import Callable

from counterfoil.labels import LabelSpace, imagenet1k

_ANIMALS = 398  # ImageNet's columns begin with them, near ones side by side
_NEAR = 60  # columns


def alike_in(space: LabelSpace) -> Callable[[str, str], bool]:
    """Classes whose names share a word, and animals of ImageNet that stand near one another."""
    words = {label: _words(space.name_of(label)) for label in space.labels}
    known = {label: place for place, label in enumerate(imagenet1k().labels[:_ANIMALS])}

    def alike(first: str, second: str) -> bool:
        near = first in known and second in known and abs(known[first] - known[second]) < _NEAR
        return near or bool(words[first] & words[second])

    return alike


def _words(name: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"\w+", name.lower().replace("_", " ")) if len(word) > 2)
