"""All published benchmarks by name, and the opening of an address.

To add a benchmark, register it in `BENCHMARKS`: its reader recognises and reads the archive, its tables score a run as
the paper does. The file also opens archives and other collections, evaluates them, and gives the tables and pictures
of a finished run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from counterfoil.benchmark.frozen_benchmark import Benchmark, open_benchmark
from counterfoil.errors import Unusable, UserError, did_you_mean, expect_members
from counterfoil.evaluation import EvaluationConfig, run_evaluation
from counterfoil.execution import Execution
from counterfoil.labels.label_space import list_class_names
from counterfoil.models.inference import Scoring
from counterfoil.models.model_loaders import name_models
from counterfoil.models.model_objects import ModelHints, Transform, as_models
from counterfoil.models.model_options import ModelOptions
from counterfoil.published import cue_conflict, imagenet_v2, imagenet_validation, objectnet
from counterfoil.published.archive import Archive
from counterfoil.published.class_folders import IMAGENET_A, IMAGENET_R, IMAGENET_SKETCH, ClassFolders
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
from counterfoil.report.content import PaperTable
from counterfoil.run_result import Result
from counterfoil.store.folder_mirror import open_folder, push_folder
from counterfoil.store.object_storage import is_address
from counterfoil.store.picture_collection import Collection, PicturesById, WorkspaceCollection
from counterfoil.store.workspace import Workspace
from counterfoil.study.runs import Study
from counterfoil.study.thumbnails import PictureLoader
from counterfoil.types import Picture, Variant
from counterfoil.variant_renderer import make_variant_renderer

PaperRule: TypeAlias = Callable[[Study], Sequence[PaperTable]]


class ReaderModule(Protocol):
    """The names that the reader module of a benchmark defines."""

    NAME: str
    EXPECTED: str  # the expected files, in words

    def fits(self, tree: Tree) -> bool:
        """Whether a tree looks like this archive."""

    def read(self, tree: Tree) -> Archive:
        """The pictures of the archive with their labels."""


@dataclass(frozen=True)
class PublishedBenchmark:
    """How the archive of a benchmark is recognised and read, and how a run over it is scored."""

    name: str
    expected: str  # the expected files, in words
    fits: Callable[[Tree], bool]
    read: Callable[[Tree], Archive]
    make_tables: PaperRule | None = None  # None where the collection is scored under another benchmark's name
    same_files: tuple[str, ...] = ()  # other benchmarks whose files look the same


def _benchmark(reader: ReaderModule, make_tables: PaperRule) -> PublishedBenchmark:
    return PublishedBenchmark(reader.NAME, reader.EXPECTED, reader.fits, reader.read, make_tables)


def _class_folders(reader: ClassFolders, make_tables: PaperRule) -> PublishedBenchmark:
    return PublishedBenchmark(reader.name, reader.expected, reader.fits, reader.read, make_tables)


_CHALLENGE_FILES = (imagenet_9_reader.NAME, imagenet_9_composite.NAME)
BENCHMARKS = (  # in the order in which they are recognised: those with the most distinctive files first
    _benchmark(imagenet_e_reader, imagenet_e_score.tables),
    _benchmark(imagenet_d_reader, imagenet_d_score.tables),
    _benchmark(ximagenet_12_reader, ximagenet_12_score.tables),
    _benchmark(imagenet_9_reader, imagenet_9_score.tables),
    PublishedBenchmark(
        imagenet_9_composite.NAME, imagenet_9_composite.EXPECTED, imagenet_9_composite.fits,
        imagenet_9_composite.read, same_files=_CHALLENGE_FILES,
    ),
    PublishedBenchmark(
        imagenet_9_composite.NAME_EVERY, imagenet_9_composite.EXPECTED, imagenet_9_composite.fits,
        imagenet_9_composite.read_every, same_files=_CHALLENGE_FILES,
    ),
    _benchmark(imagenet_c_reader, imagenet_c_score.tables),
    _benchmark(cue_conflict, cue_conflict.tables),
    _class_folders(IMAGENET_SKETCH, accuracy_tables("ImageNet-Sketch", 1000)),
    _class_folders(IMAGENET_A, accuracy_tables("ImageNet-A", 200, both=True)),
    _class_folders(IMAGENET_R, accuracy_tables("ImageNet-R", 200, both=True)),
    _benchmark(imagenet_v2, accuracy_tables("ImageNet-V2", 1000)),
    _benchmark(objectnet, accuracy_tables("ObjectNet", 113, both=True)),
    _benchmark(imagenet_validation, accuracy_tables("ImageNet validation", 1000)),
)  # fmt: skip
BENCHMARK_OF = {benchmark.name: benchmark for benchmark in BENCHMARKS}


def open_archive(name: str, path: Path) -> Archive:
    """Open the archive of this name (folder, tar or zip); raises `UserError` where it is another benchmark's."""
    if name not in BENCHMARK_OF:
        raise UserError(f"expected one of {', '.join(BENCHMARK_OF)}, got '{name}'{did_you_mean(name, BENCHMARK_OF)}")
    benchmark, tree = BENCHMARK_OF[name], open_tree(path)
    other = _recognise_tree(FolderSample(tree))
    if other is not None and other not in (name, *benchmark.same_files):
        raise UserError(
            f"expected {name} with {benchmark.expected}, but '{path}' looks like {other}; say {other}:{path}"
        )
    return benchmark.read(tree)


def recognise(path: Path) -> str | None:
    """Return the name of the archive at a path; None where it is not a known one."""
    return _recognise_tree(FolderSample(open_tree(path)))


def _recognise_tree(tree: Tree) -> str | None:
    return next((benchmark.name for benchmark in BENCHMARKS if benchmark.fits(tree)), None)


def list_possible(path: Path) -> list[str]:
    """List the benchmarks that the class folders at a path may belong to, where file names do not decide."""
    tree = FolderSample(open_tree(path))
    names = [folders.name for folders in (IMAGENET_A, IMAGENET_R, IMAGENET_SKETCH) if folders.may_fit(tree)]
    return [*names, imagenet_validation.NAME] if IMAGENET_SKETCH.name in names else names


_EXPECTED = "a frozen benchmark, a workspace with pictures, or NAME:PATH of a published archive"


def open_collection(text: str) -> Collection:
    """Open a frozen benchmark's folder, a workspace, or a published archive (NAME:PATH, or recognised by its files)."""
    folder = open_folder(text)
    if (folder / "benchmark.json").is_file():
        return open_benchmark(folder)
    if (folder / "variants.parquet").is_file():
        return _open_workspace(folder)
    if folder.exists():
        return _open_recognised(folder)
    name, _, path = text.partition(":")
    if path:
        return open_archive(name, Path(path))
    raise UserError(f"expected {_EXPECTED}, got '{text}', which is no folder; check its spelling")


def _open_recognised(path: Path) -> Collection:
    """Open the published archive at a path; any other folder is treated as an incomplete workspace."""
    name = recognise(path)
    if name is not None:
        return open_archive(name, path)
    if names := list_possible(path):
        raise UserError(
            f"expected an archive whose files tell which it is, got '{path}', which by its class folders may be"
            f" {' or '.join(names)}; say which, such as {names[0]}:{path}; {_advise_run(path)}"
        )
    return _open_workspace(path)


def _open_workspace(folder: Path) -> WorkspaceCollection:
    try:
        return WorkspaceCollection(Workspace(folder))
    except UserError as error:
        kind, advice = ("folder", f"; {_advise_run(folder)}") if folder.is_dir() else ("file", "")
        raise UserError(
            f"expected {_EXPECTED}, got the {kind} '{folder}', which holds neither benchmark.json nor"
            f" variants.parquet with pictures/; a published archive needs its name, such as imagenet-e:{folder}{advice}"
        ) from error


def _advise_run(folder: Path) -> str:
    """Return the command for photos that are not a benchmark."""
    return f"photos of your own: `counterfoil run --images {folder}`"


def full_address(text: str) -> str:
    """Return the address with an absolute path, so that it works from any folder."""
    if is_address(text):
        return text
    name, colon, path = text.partition(":")
    if Path(text).exists() or not colon:
        return str(Path(text).absolute())
    return f"{name}:{Path(path).absolute()}"


def describe_collection(text: str, collection: Collection) -> list[str]:
    """Return the lines to print before an evaluation: which benchmark was recognised, and its notes."""
    unnamed = isinstance(collection, Archive) and Path(text).exists()
    return [*([f"recognised as {collection.name}"] if unnamed else []), *collection.notes]


def evaluate(
    collection: Collection | Benchmark | Workspace | str | Path,
    models: Any,
    out: str | Path | None = None,
    *,
    labels: Sequence[str] | None = None,
    transform: Transform | None = None,
    limit: int | None = None,
    workers: int | None = None,
    batch_size: int = 16,
    scoring: Scoring | None = None,
    classes: str | None = None,
    options: ModelOptions | None = None,
    engine: str = "local",
) -> Result:
    """Show every picture of a collection to every model; resumes an interrupted evaluation in `out`.

    Args:
        collection: A frozen benchmark, a workspace or NAME:PATH of a published archive, as an address or an object.
        models: Models as `run` takes them: addresses or objects, in a list or by name in a dict.
        out: Folder for the tables, or an address such as "s3://bucket/run"; without it they are temporary.
        labels: The name of each column of models given as objects.
        transform: What prepares a Pillow picture for a torch module or function given without `wrap_model`.
        limit: Use at most this many photos with all their pictures, taken from the classes in turn.
        workers: Threads that read pictures; one per core where not given.
        batch_size: Pictures per call of a model.
        scoring: Whether columns of other classes compete; as the collection says where not given.
        classes: Other classes than the collection's: a benchmark's by name, or a classes.json.
        options: How models are loaded.
        engine: "local" threads, "ray", or "ray:ADDRESS" of a cluster; models given as objects are asked from here.

    Returns:
        The result, as that of `run`.

    Raises:
        UserError: The collection or a model cannot be used.

    Examples:
        >>> import numpy as np, tempfile
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> from counterfoil import build
        >>> workspace = build([(image, "red", mask)], tempfile.mkdtemp(), edits=["object-grayscale"])
        >>> reddest = lambda images: ["red" if each[..., 0].max() > 150 else "grey" for each in images]
        >>> result = evaluate(workspace.folder, {"reddest": reddest}, labels=["red", "grey"])
        >>> {drop.edit: drop.accuracy for drop in result.drops}
        {'control': 100.0, 'object-grayscale': 0.0}
    """
    if isinstance(collection, Workspace):
        collection = collection.folder
    named = isinstance(collection, str | Path)
    opened = open_collection(str(collection)) if isinstance(collection, str | Path) else collection
    expect_members(opened, ("pictures", "name"), "a benchmark, a workspace or NAME:PATH of an archive")
    photo_labels = tuple(dict.fromkeys(stored.variant.label for stored in opened.pictures))
    hints = ModelHints(labels=list_class_names(labels), transform=transform, photo_labels=photo_labels, options=options)
    chosen = as_models(models, hints)
    asked = EvaluationConfig(
        collection=opened,
        models=chosen,
        limit=limit,
        workers=workers,
        batch_size=batch_size,
        scoring=scoring,
        classes=classes,
        options=ModelOptions() if options is None else options,
        execution=Execution(engine),
        address=full_address(str(collection)) if named else "",
        command=f"counterfoil.evaluate({str(collection) if named else opened.name!r}, {name_models(chosen)!r})",
    )
    result = run_evaluation(asked, None if out is None else open_folder(out), papers=make_paper_tables)
    push_folder(result.folder)
    return result


evaluate_collection = evaluate  # its name in version 0.1, kept for one release


def find_paper_rule(study: Study) -> PaperRule | None:
    """Return the paper's rule for scoring the study's collection; None where no paper is known."""
    benchmark = BENCHMARK_OF.get(study.run.collection.split(" ")[0])
    return None if benchmark is None else benchmark.make_tables


def make_paper_tables(study: Study) -> Sequence[PaperTable]:
    """Return the paper's tables for the study's collection and the published numbers; empty for other collections."""
    name, rule = study.run.collection.split(" ")[0], find_paper_rule(study)
    scored = tuple(rule(study)) if rule else ()
    return (*scored, make_published_table(study, scored, name)) if name in list_benchmarks() else scored


def picture_reader(study: Study) -> PictureLoader:
    """Return a function that loads a recorded run's pictures; it returns None where collection or photo is gone."""
    run = study.runs[0]
    return _collection_reader(run.images) if run.collection else make_variant_renderer(study)


def _collection_reader(address: str) -> PictureLoader:
    @cache
    def opened() -> tuple[Collection, PicturesById] | None:
        try:
            collection = open_collection(address)
        except (UserError, OSError):  # the collection was moved or changed since: the page leaves its pictures out
            return None
        return collection, PicturesById(collection.pictures)

    def show(variant: Variant) -> Picture | None:
        collection = opened()
        if collection is None or variant.id not in collection[1]:
            return None
        try:
            image = collection[0].read(collection[1][variant.id])
        except (Unusable, UserError):  # the picture, or the background used for it, is no longer readable
            return None
        return Picture(image, np.full(image.shape[:2], 255, np.uint8))

    return show
