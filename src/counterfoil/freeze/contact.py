"""A small picture of examples for the dataset card: originals above, the benchmark's pictures below."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.freeze.checking import decoded
from counterfoil.freeze.entries import Entry

CONTACT = "examples.jpg"
_MOST, _SIDE, _GAP = 6, 160, 4
_QUALITY = 88

Bytes = NDArray[np.uint8]


def examples(entries: Sequence[Entry]) -> list[Entry]:
    """A few pictures, every attribute in turn, of samples that were not shown yet where that is possible."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.split == "test":
            groups[entry.variant.attribute].append(entry)
    chosen: list[Entry] = []
    while len(chosen) < _MOST and any(groups.values()):
        for group in [group for group in groups.values() if group][: _MOST - len(chosen)]:
            shown = {entry.variant.sample_id for entry in chosen}
            fresh = next((entry for entry in group if entry.variant.sample_id not in shown), group[0])
            group.remove(fresh)
            chosen.append(fresh)
    return chosen


def contact(entries: Sequence[Entry], read: Callable[[Entry], bytes]) -> bytes:
    """The picture, as JPEG."""
    chosen = examples(entries)
    originals = {entry.variant.sample_id: entry for entry in entries if entry.variant.attribute == "original"}
    rows = [[_thumbnail(entry, read) for entry in chosen]]
    if any(entry.variant.sample_id in originals for entry in chosen):
        rows.insert(0, [_thumbnail(originals.get(entry.variant.sample_id), read) for entry in chosen])
    sheet = np.vstack([np.hstack(row) for row in rows])
    _, data = cv2.imencode(".jpg", cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return data.tobytes()


def _thumbnail(entry: Entry | None, read: Callable[[Entry], bytes]) -> Bytes:
    """The picture within a white square."""
    square = np.full((_SIDE + _GAP, _SIDE + _GAP, 3), 255, np.uint8)
    if entry is None:
        return square
    image = decoded(read(entry), entry.exhibit.file)
    scale = _SIDE / max(image.shape[:2])
    height, width = (max(1, round(scale * side)) for side in image.shape[:2])
    top, left = (_SIDE - height) // 2, (_SIDE - width) // 2
    square[top : top + height, left : left + width] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return square
