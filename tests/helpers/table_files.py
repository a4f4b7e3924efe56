"""The tables of a run as bytes, to compare runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path


def table_bytes(folder: Path) -> dict[str, str]:
    """The hash of every table of a run, by its path in the folder."""
    files = [*folder.glob("*.parquet"), *folder.glob("*.csv"), *folder.glob("predictions/*.parquet")]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


def output_bytes(folder: Path, places: Sequence[str] = ()) -> dict[str, str]:
    """The hashes of the tables and of the report, its command and the places of folders and photos left out."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    page = re.sub(r'(aria-label="Command"><pre><code>).*?(</code>)', r"\1\2", page, flags=re.DOTALL)
    for place in (str(folder), *places):
        page = page.replace(place, "PLACE")
    return {**table_bytes(folder), "report.html": hashlib.sha256(page.encode()).hexdigest()}
