"""Collection of an address.

Pictures of a recorded run for its report; paper rules by name; questions shipped with an archive; paper tables of a
study; readers by name, archive recognised by files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from counterfoil.benchmark.frozen_benchmark import open_benchmark
from counterfoil.errors import Unusable, UserError, did_you_mean
from counterfoil.evaluation import EvaluationConfig, run_evaluation
from counterfoil.models.inference import Scoring
from counterfoil.models.model_options import ModelOptions
from counterfoil.published import imagenet_v2, objectnet, validation
from counterfoil.published.archive import Archive
from counterfoil.published.class_folders import IMAGENET_A, IMAGENET_R, IMAGENET_SKETCH
from counterfoil.published.condition_scores import accuracy_tables
from counterfoil.published.file_tree import Tree, open_tree
from counterfoil.published.imagenet_9 import composite as imagenet_9_composite
from counterfoil.published.imagenet_9 import reader as imagenet_9_reader
from counterfoil.published.imagenet_9 import score as imagenet_9_score
from counterfoil.published.imagenet_c import reader as imagenet_c_reader
from counterfoil.published.imagenet_c import score as imagenet_c_score
from counterfoil.published.imagenet_d import reader as imagenet_d_reader
from counterfoil.published.imagenet_d import score as imagenet_d_score
from counterfoil.published.imagenet_e import reader as imagenet_e_reader
from counterfoil.published.imagenet_e import score as imagenet_e_score
from counterfoil.published.layout_detection import FolderSample
from counterfoil.published.published_numbers import list_benchmarks, make_published_table
from counterfoil.published.ximagenet_12 import reader as ximagenet_12_reader
from counterfoil.published.ximagenet_12 import score as ximagenet_12_score
from counterfoil.rendering import variant_renderer
from counterfoil.report.content import PaperTable
from counterfoil.run_result import Result
from counterfoil.store.collection import Collection, PicturesById, WorkspaceCollection
from counterfoil.store.workspace import Workspace
from counterfoil.study.examples import PictureLoader
from counterfoil.study.runs import Study
from counterfoil.types import Picture, Variant


class ArchiveReader(NamedTuple):
    """How one archive is recognised and read."""

    expected: str  # what it looks for, in words
    fits: Callable[[Tree], bool]
    read: Callable[[Tree], Archive]


ARCHIVES: dict[str, ArchiveReader] = {  # in the order in which they are recognised: the more telling layouts first
    imagenet_e_reader.NAME: ArchiveReader(imagenet_e_reader.EXPECTED, imagenet_e_reader.fits, imagenet_e_reader.read),
    imagenet_d_reader.NAME: ArchiveReader(imagenet_d_reader.EXPECTED, imagenet_d_reader.fits, imagenet_d_reader.read),
    ximagenet_12_reader.NAME: ArchiveReader(
        ximagenet_12_reader.EXPECTED, ximagenet_12_reader.fits, ximagenet_12_reader.read
    ),
    imagenet_9_reader.NAME: ArchiveReader(imagenet_9_reader.EXPECTED, imagenet_9_reader.fits, imagenet_9_reader.read),
    imagenet_9_composite.NAME: ArchiveReader(
        imagenet_9_composite.EXPECTED, imagenet_9_composite.fits, imagenet_9_composite.read
    ),
    imagenet_9_composite.NAME_EVERY: ArchiveReader(
        imagenet_9_composite.EXPECTED, imagenet_9_composite.fits, imagenet_9_composite.read_every
    ),
    imagenet_c_reader.NAME: ArchiveReader(imagenet_c_reader.EXPECTED, imagenet_c_reader.fits, imagenet_c_reader.read),
    IMAGENET_SKETCH.name: ArchiveReader(IMAGENET_SKETCH.expected, IMAGENET_SKETCH.fits, IMAGENET_SKETCH.read),
    IMAGENET_A.name: ArchiveReader(IMAGENET_A.expected, IMAGENET_A.fits, IMAGENET_A.read),
    IMAGENET_R.name: ArchiveReader(IMAGENET_R.expected, IMAGENET_R.fits, IMAGENET_R.read),
    imagenet_v2.NAME: ArchiveReader(imagenet_v2.EXPECTED, imagenet_v2.fits, imagenet_v2.read),
    objectnet.NAME: ArchiveReader(objectnet.EXPECTED, objectnet.fits, objectnet.read),
    validation.NAME: ArchiveReader(validation.EXPECTED, validation.fits, validation.read),
}
_SAME_FILES = dict.fromkeys(
    (imagenet_9_composite.NAME, imagenet_9_composite.NAME_EVERY), (imagenet_9_reader.NAME, imagenet_9_composite.NAME)
)


def open_archive(name: str, path: Path) -> Archive:
    """The archive of this name at a path: a folder, a tar or a zip; another benchmark's is named and refused."""
    reader = _reader(name)
    tree = open_tree(path)
    other = _recognise_tree(FolderSample(tree))
    if other is not None and other not in (name, *_SAME_FILES.get(name, ())):
        raise UserError(f"expected {name} with {reader.expected}, but '{path}' looks like {other}; say {other}:{path}")
    return reader.read(tree)


def recognise(path: Path) -> str | None:
    """The name of the archive at a path; None where it is none that is known."""
    return _recognise_tree(FolderSample(open_tree(path)))


def list_possible(path: Path) -> list[str]:
    """Archives that class folders at a path may be of, where the names of the files do not tell which."""
    tree = FolderSample(open_tree(path))
    names = [folders.name for folders in (IMAGENET_A, IMAGENET_R, IMAGENET_SKETCH) if folders.may_fit(tree)]
    return [*names, validation.NAME] if IMAGENET_SKETCH.name in names else names


def _recognise_tree(tree: Tree) -> str | None:
    return next((name for name, reader in ARCHIVES.items() if reader.fits(tree)), None)


def _reader(name: str) -> ArchiveReader:
    if name not in ARCHIVES:
        raise UserError(f"expected one of {', '.join(ARCHIVES)}, got '{name}'{did_you_mean(name, ARCHIVES)}")
    return ARCHIVES[name]


def open_collection(text: str) -> Collection:
    """A frozen benchmark's folder, a workspace, or a published archive, by NAME:PATH or recognised by its files."""
    folder = Path(text)
    if (folder / "benchmark.json").is_file():
        return open_benchmark(folder)
    if (folder / "variants.parquet").is_file():
        return _open_workspace(folder)
    if folder.exists():
        return _open_recognised(folder)
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


def _open_recognised(path: Path) -> Collection:
    """The published archive whose files lie there; else it is a workspace that is not whole."""
    name = recognise(path)
    if name is not None:
        return open_archive(name, path)
    if names := list_possible(path):
        raise UserError(
            f"expected an archive whose files tell which it is, got '{path}', which by its class folders may be"
            f" {' or '.join(names)}; say which, such as {names[0]}:{path}; {_own_photos(path)}"
        )
    return _open_workspace(path)


def describe_collection(text: str, collection: Collection) -> list[str]:
    """What a user should know of a collection before it is shown: as what it was recognised, and its notes."""
    unnamed = isinstance(collection, Archive) and Path(text).exists()
    return [*([f"recognised as {collection.name}"] if unnamed else []), *collection.notes]


def _open_workspace(folder: Path) -> WorkspaceCollection:
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


RULES: dict[str, Callable[[Study], Sequence[PaperTable]]] = {
    "imagenet-e": imagenet_e_score.tables,
    "imagenet-d": imagenet_d_score.tables,
    "ximagenet-12": ximagenet_12_score.tables,
    "imagenet-9": imagenet_9_score.tables,
    "imagenet-c": imagenet_c_score.tables,
    "imagenet-a": accuracy_tables("ImageNet-A", 200, both=True),
    "imagenet-r": accuracy_tables("ImageNet-R", 200, both=True),
    "imagenet-sketch": accuracy_tables("ImageNet-Sketch", 1000),
    "imagenet-v2": accuracy_tables("ImageNet-V2", 1000),
    "imagenet-val": accuracy_tables("ImageNet validation", 1000),
    "objectnet": accuracy_tables("ObjectNet", 113, both=True),
}


PaperRule: TypeAlias = Callable[[Study], Sequence[PaperTable]]

PAPERS: dict[str, PaperRule] = {**RULES}


def make_paper_tables(study: Study) -> Sequence[PaperTable]:
    """What the paper behind the study's collection would print; nothing where no paper is known."""
    name = study.run.collection.split(" ")[0]
    scored = tuple(PAPERS[name](study)) if name in PAPERS else ()
    return (*scored, make_published_table(study, scored, name)) if name in list_benchmarks() else scored


def evaluate_collection(
    collection: Collection | str | Path,
    models: Sequence[str],
    out: str | Path | None = None,
    *,
    limit: int | None = None,
    workers: int | None = None,
    batch_size: int = 16,
    scoring: Scoring | None = None,
    classes: str | None = None,
    options: ModelOptions | None = None,
) -> Result:
    """Show every picture of a collection to every model; resumes where `out` holds an evaluation that was killed."""
    named = isinstance(collection, str | Path)
    opened = open_collection(str(collection)) if isinstance(collection, str | Path) else collection
    asked = EvaluationConfig(
        collection=opened,
        models=tuple(models),
        limit=limit,
        workers=workers,
        batch_size=batch_size,
        scoring=scoring,
        classes=classes,
        options=options or ModelOptions(),
        address=full_address(str(collection)) if named else "",
        command=f"counterfoil.evaluate_collection({str(collection) if named else opened.name!r}, {list(models)!r})",
    )
    return run_evaluation(asked, Path(out) if out is not None else None, papers=make_paper_tables)


def picture_reader(study: Study) -> PictureLoader:
    """Gives a recorded run's pictures; None where collection or photo is gone."""
    run = study.runs[0]
    return _collection_reader(run.images) if run.collection else variant_renderer(study)


def _collection_reader(address: str) -> PictureLoader:
    @cache
    def opened() -> tuple[Collection, PicturesById] | None:
        try:
            collection = open_collection(address)
        except (UserError, OSError):  # it was moved or changed since: the page does without
            return None
        return collection, PicturesById(collection.pictures)

    def show(variant: Variant) -> Picture | None:
        found = opened()
        if found is None or variant.id not in found[1]:
            return None
        try:
            image = found[0].read(found[1][variant.id])
        except (Unusable, UserError):  # the picture, or a background that it stands on, is broken by now
            return None
        return Picture(image, np.full(image.shape[:2], 255, np.uint8))

    return show
