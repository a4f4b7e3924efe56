"""A folder as one file."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path


def as_tar(folder: Path, file: Path, mode: str = "w") -> Path:
    """The folder's files in a tar, names beginning with "./" as many have them."""
    with tarfile.open(file, mode) as archive:  # type: ignore[call-overload]
        archive.add(folder, arcname=".")
    return file


def as_zip(folder: Path, file: Path) -> Path:
    """The folder's files in a zip, every other one deflated, with the junk that a Mac adds."""
    with zipfile.ZipFile(file, "w") as archive:
        for place, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
            packing = zipfile.ZIP_DEFLATED if place % 2 else zipfile.ZIP_STORED
            name = path.relative_to(folder).as_posix()
            archive.write(path, name, packing)
            if place < 2:
                archive.writestr(f"__MACOSX/{name.rpartition('/')[0]}/._{path.name}", b"\0")
    return file
