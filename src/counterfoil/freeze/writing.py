"""A benchmark's folder, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from counterfoil.errors import Unusable, UserError
from counterfoil.freeze.card import CARD, card
from counterfoil.freeze.changelog import CHANGELOG, changelog
from counterfoil.freeze.checking import decoded, file_notes, files_below, pixel_hash
from counterfoil.freeze.comparing import Comparison, Edition, compare, read_edition
from counterfoil.freeze.contact import CONTACT, contact
from counterfoil.freeze.croissant import CROISSANT, croissant
from counterfoil.freeze.draft import Draft
from counterfoil.freeze.entries import Entry, in_order, read_manifest, write_manifest
from counterfoil.freeze.file_content import THREADS, with_contents
from counterfoil.freeze.layouts import LAYOUTS, Site
from counterfoil.freeze.record import RECORD, Record
from counterfoil.freeze.whole_folder import whole_folder

_AT_ONCE = 64  # pictures in memory


class Pictures(Protocol):
    """Where the pictures come from."""

    def size(self, entry: Entry) -> int:
        """How many bytes a picture takes."""

    def read(self, entry: Entry) -> bytes:
        """Its bytes."""


@dataclass(frozen=True)
class Frozen:
    """A benchmark that was written, and what changed since the version before it."""

    record: Record
    comparison: Comparison | None


def write_benchmark(
    draft: Draft, pictures: Pictures, out: Path, previous: Path | None = None, shard_bytes: int = 256 << 20
) -> Frozen:
    """Write the benchmark; the same draft gives the same digest, and with the same pyarrow the same bytes."""
    earlier = read_edition(previous) if previous else None
    entries = in_order(draft.entries)
    with whole_folder(out, sum(map(pictures.size, entries))) as folder:
        layout = LAYOUTS[draft.layout](Site(folder, [one.label for one in draft.labels.classes], shard_bytes))
        for entry, data in _in_turn(entries, pictures):
            layout.add(entry, data)
        places = layout.finish()
        write_manifest(folder, entries, places)
        manifest = read_manifest(folder)
        record = draft.record(manifest)
        comparison = compare(earlier, Edition(record, manifest)) if earlier else None
        (folder / CONTACT).write_bytes(contact(entries, pictures.read))
        _write(folder / CARD, card(record, entries))
        _write(folder / CHANGELOG, changelog(record, comparison, previous))
        notes = file_notes(folder, sorted(files_below(folder) - {place.file for place in places if not place.member}))
        _write(folder / CROISSANT, croissant(record, notes))
        sealed = record.sealed(with_contents(folder, {**notes, **file_notes(folder, [CROISSANT])}))
        _write(folder / RECORD, sealed.text())
    return Frozen(sealed, comparison)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _in_turn(entries: Sequence[Entry], pictures: Pictures) -> Iterator[tuple[Entry, bytes]]:
    """Every picture's bytes in order, read and checked in threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, len(entries), _AT_ONCE):
            part = entries[start : start + _AT_ONCE]
            yield from zip(part, pool.map(lambda entry: _checked(entry, pictures.read(entry)), part), strict=True)


def _checked(entry: Entry, data: bytes) -> bytes:
    """The bytes, if they are the picture that the workspace's manifest names."""
    try:
        same = pixel_hash(decoded(data, entry.exhibit.file)) == entry.exhibit.sha256
    except Unusable as error:
        raise UserError(f"expected a picture in the workspace, but {error}; build the workspace again") from error
    if not same:
        raise UserError(
            f"expected {entry.exhibit.file} as it was built, but its pixels have changed since;"
            " run the command that built the workspace again"
        )
    return data
