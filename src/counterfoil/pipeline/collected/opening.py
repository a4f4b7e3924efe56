"""Which collection an address means."""

from __future__ import annotations

from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.evaluate import Collection
from counterfoil.freeze import open_benchmark
from counterfoil.pipeline.collected.workspace import WorkspaceCollection
from counterfoil.published import Archive, open_archive, possible, recognise
from counterfoil.store import Workspace


def collection_at(text: str) -> Collection:
    """A frozen benchmark's folder, a workspace, or a published archive, by NAME:PATH or recognised by its files."""
    folder = Path(text)
    if (folder / "benchmark.json").is_file():
        return open_benchmark(folder)
    if (folder / "variants.parquet").is_file():
        return _workspace(folder)
    if folder.exists():
        return _recognised(folder)
    name, colon, path = text.partition(":")
    if colon and path:
        return open_archive(name, Path(path))
    raise UserError(f"expected {_expected()}, got '{text}', which is no folder; check its spelling")


def full_address(text: str) -> str:
    """The same address with its path from the root on, so that it is found from anywhere."""
    name, colon, path = text.partition(":")
    if Path(text).exists() or not colon:
        return str(Path(text).absolute())
    return f"{name}:{Path(path).absolute()}"


def _recognised(path: Path) -> Collection:
    """The published archive whose files lie there; else it is a workspace that is not whole."""
    name = recognise(path)
    if name is not None:
        return open_archive(name, path)
    if names := possible(path):
        raise UserError(
            f"expected an archive whose files tell which it is, got '{path}', which by its class folders may be"
            f" {' or '.join(names)}; say which, such as {names[0]}:{path}; {_own_photos(path)}"
        )
    return _workspace(path)


def told(text: str, collection: Collection) -> list[str]:
    """What a user should know of a collection before it is shown: as what it was recognised, and its notes."""
    unnamed = isinstance(collection, Archive) and Path(text).exists()
    return [*([f"recognised as {collection.name}"] if unnamed else []), *collection.notes]


def _workspace(folder: Path) -> WorkspaceCollection:
    try:
        return WorkspaceCollection(Workspace(folder))
    except UserError as error:
        own = f"; {_own_photos(folder)}" if folder.is_dir() else ""
        raise UserError(
            f"expected {_expected()}, got the {_kind(folder)} '{folder}', which holds neither benchmark.json nor"
            f" variants.parquet with pictures/; a published archive needs its name, such as imagenet-e:{folder}{own}"
        ) from error


def _own_photos(folder: Path) -> str:
    """What to do with photos that are no benchmark."""
    return f"photos of your own: `counterfoil run --images {folder}`"


def _kind(path: Path) -> str:
    return "folder" if path.is_dir() else "file"


def _expected() -> str:
    return "a frozen benchmark, a workspace with pictures, or NAME:PATH of a published archive"
