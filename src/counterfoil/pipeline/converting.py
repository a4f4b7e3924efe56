"""Photos and masks from one format into another."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from counterfoil.errors import Unusable, UserError
from counterfoil.source.formats.writing import NEED_MASKS, WRITERS, Photo, file_name
from counterfoil.types import Sample, Skipped, Source


def convert(source: Source, out: Path, form: str) -> tuple[int, list[Skipped]]:
    """Write every photo of a source in another format; gives back how many, and what was left out."""
    if form not in WRITERS:
        raise UserError(f"expected a format ({', '.join(WRITERS)}), got '{form}'")
    if out.is_file() or (out.exists() and any(out.iterdir())):
        raise UserError(f"expected an empty folder or a new one, got '{out}', which holds files; choose another --out")
    out = out.resolve()  # "." has no name, and a link to a folder stays one
    samples, left_out = source.samples()
    skipped = list(left_out)
    temporary = out.with_name(f".{out.name}.{os.getpid()}")
    temporary.mkdir(parents=True)
    try:
        labels = sorted({sample.label for sample in samples})
        WRITERS[form](_photos(source, samples, form, skipped), labels, temporary)
        if out.exists():
            out.rmdir()
        os.replace(temporary, out)
    except OSError as error:
        if error.filename is not None:  # a full disk names no file
            raise
        raise UserError(f"'{out}' cannot be written: {error.strerror}; nothing of it was kept") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return len(samples) + len(left_out) - len(skipped), skipped


def _photos(source: Source, samples: Sequence[Sample], form: str, skipped: list[Skipped]) -> Iterator[Photo]:
    used: set[str] = set()
    for sample in samples:
        try:
            image, mask = source.read(sample)
        except Unusable as error:
            skipped.append(Skipped(sample.id, "source", "", str(error)))
            continue
        if mask is None and form in NEED_MASKS:
            skipped.append(Skipped(sample.id, "source", "", f"the photo has no mask, which {form} needs"))
            continue
        yield Photo(sample.label, file_name(sample, used, form), image, mask)
