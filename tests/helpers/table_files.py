"""The tables of a run as bytes, to compare runs."""

from __future__ import annotations

import hashlib
from pathlib import Path


def table_bytes(folder: Path) -> dict[str, str]:
    """The hash of every table of a run, by its path in the folder."""
    files = [*folder.glob("*.parquet"), *folder.glob("*.csv"), *folder.glob("predictions/*.parquet")]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}
