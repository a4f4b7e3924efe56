"""Work in pieces: a range of items times a group of models, a pure function of the plan that writes parts.

A `PieceWork` holds the plan of a run and says how one item (a photo, or a chunk of finished pictures) is processed.
`list_pieces` finds what is missing, an engine runs `process_piece` on it in any order and as often as it likes, and
the tables are written from the parts in the order of the plan.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.execution import Execution, WorkShard
from counterfoil.machine import describe_machine, return_memory
from counterfoil.models.inference import predict_again
from counterfoil.models.reloadable_model import ReloadableModel
from counterfoil.object_mask import MaskVerdict
from counterfoil.process_pool import ProcessEngine, pack_work
from counterfoil.progress import Extent, ItemProgress, ProgressMeter, ThreadCounter, count_progress, open_meter
from counterfoil.ray_engine import RayEngine
from counterfoil.store.failures import FailureStore
from counterfoil.store.folder_mirror import join_mirrors, list_addresses
from counterfoil.store.merged_tables import PICTURE_COLUMNS, find_missing
from counterfoil.store.parts import PartStore, TablePart, part_name
from counterfoil.store.piece_plan import PiecePlan
from counterfoil.store.prediction_tables import (
    PREDICTION_COLUMNS,
    RenderedVariant,
    manifest_row,
    prediction_row,
    read_variants,
)
from counterfoil.study.thumbnails import Observer, ThumbnailCandidates
from counterfoil.types import Engine, Item, Model, Prediction, Provenance, Sample, Skipped, Variant
from counterfoil.worker_pool import ATTEMPTS, ForkedEngine, ItemFailure, LocalEngine, cores, find_memory
from counterfoil.worker_process import PortableWork, Send

_log = logging.getLogger(__name__)
_SECONDS_TO_TRIM = 1.0  # of a piece, after which freed memory is given back: that takes some milliseconds
_SECONDS_TO_APPEAR = 60  # of a file that another machine wrote; network file systems keep listings so long
_NO_PIECE_CAN_BE_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # to try again, or another one, is of no use
_LONGEST_REASON = 1000  # characters
PROCESSES_FROM = 4  # workers: fewer threads hardly wait for one another, and a process has to load everything
PROCESS_BYTES = 2 * 2**30  # of memory for each worker process, with the networks that fill and judge
Image: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB


class Piece(NamedTuple):
    """What is missing of one range of items."""

    start: int
    stop: int
    layer: int
    models: tuple[str, ...]  # to be asked, by name
    again: tuple[str, ...] = ()  # models whose answers are there, and those that ended in an error are asked for again


class PictureOrigin(NamedTuple):
    """The photo of a picture and where its donor comes from, for the manifest."""

    sample: Sample
    donor: Provenance = Provenance()
    planned_level: str = ""


@dataclass
class Outcome:
    """The outcome of one item: pictures, the models' answers, and what was skipped."""

    rendered: list[RenderedVariant] = field(default_factory=list)
    origins: list[PictureOrigin] = field(default_factory=list)  # in the order of `rendered`
    predictions: dict[str, list[Prediction]] = field(default_factory=dict)  # by model, in the order of `rendered`
    skipped: list[Skipped] = field(default_factory=list)
    mask: MaskVerdict | None = None  # the verdict on the photo's mask

    def show_last(self, images: Sequence[Image], observe: Observer) -> None:
        """Call an observer with the pictures that were added last and their answers."""
        first = len(self.rendered) - len(images)
        observe(self.rendered[first:], images, {model: rows[first:] for model, rows in self.predictions.items()})


class ItemRequest(NamedTuple):
    """What is asked of one item: the models, and the layer of edits."""

    models: Sequence[Model]
    layer: int
    progress: ItemProgress


class PieceWork(ABC, Generic[Item]):
    """The items of a run and how each is processed; a subclass holds the plan of the run."""

    stage = "working"  # what is done, for the display of progress
    unit = "items"  # of progress
    models: Sequence[Model]
    items: Sequence[Item]  # in the order of the tables
    pieces: PiecePlan
    thumbnails: ThumbnailCandidates | None = None  # of the report; they do not travel to other processes
    _observe: Observer | None = None  # called with pictures and their answers

    def keep_thumbnails(self, thumbnails: ThumbnailCandidates | None) -> None:
        """Keep thumbnails of pictures while their pixels are here."""
        self.thumbnails, self._observe = thumbnails, None if thumbnails is None else thumbnails.add

    def connect(self, send: Send, workers: int) -> None:
        """Called once in a worker process, one of so many: thumbnails are sent to the process of the report."""
        self._observe = ThumbnailCandidates([model.name for model in self.models]).pass_on(send)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "thumbnails": None, "_observe": None}

    @abstractmethod
    def process(self, item: Item, request: ItemRequest) -> Outcome:
        """Make or read the pictures of an item and ask the models; called in worker threads or processes.

        Units that are finished are added to the request's progress; what was not added counts when the item is
        finished.
        """

    @abstractmethod
    def image_of(self, variant: Variant) -> Image:
        """One picture again, where its answer ended in an error."""

    def size_of(self, item: Item) -> int:
        """How many units an item holds."""
        return 1

    def is_outdated(self, items: Sequence[Item], answered: set[str]) -> bool:
        """Whether pictures that were skipped could be used now; called where some were, with the ids of the others."""
        return False

    def engine(self, workers: int | None) -> Engine:
        """Threads; processes where a GPU runs the networks, since many decoding threads wait for the GIL."""
        on_gpu = [model.device.startswith("cuda") for model in self.models]
        if on_gpu and all(on_gpu):
            return ForkedEngine(workers or 2 * cores())
        return LocalEngine(workers or cores())

    def uses_gpu(self) -> bool:
        """Whether a GPU runs a network of this work: threads of one process then share its memory and batches."""
        return any(model.device.startswith("cuda") for model in self.models)

    def count_threads(self, processes: int) -> int:
        """The threads of each of so many worker processes."""
        return 1

    def list_bound(self) -> list[str]:
        """What is in this process alone, by name: objects, and endpoints, whose usage is counted here."""
        return [
            model.name for model in self.models if not isinstance(model, ReloadableModel) or model.usage is not None
        ]

    def model(self, name: str) -> Model:
        """The model of this name."""
        return next(model for model in self.models if model.name == name)


def list_pieces(work: PieceWork[Item], store: PartStore) -> Iterator[Piece]:
    """The pieces that are missing; parts that would now be different are removed first."""
    plan, there = work.pieces, store.names()
    retryable = [model.name for model in work.models if model.retryable]
    for start, stop in plan.ranges():
        for layer in range(len(plan.layers)):
            pictures = plan.part(start, layer)
            names = {model: plan.part(start, layer, model) for model in plan.models}
            if pictures in there and _is_outdated(work, store, (start, stop), pictures):
                for name in (*names.values(), pictures):  # the pictures last: what is there must fit together
                    store.remove(name)
                there -= {*names.values(), pictures}
            missing = [model for model, name in names.items() if name not in there]
            failed = [model for model in retryable if names[model] in there and store.about(names[model])["errors"]]
            yield from _split_groups(plan, Piece(start, stop, layer, tuple(missing), tuple(failed)), pictures in there)


def _is_outdated(work: PieceWork[Item], store: PartStore, place: tuple[int, int], pictures: str) -> bool:
    if type(work).is_outdated is PieceWork.is_outdated or not store.about(pictures)["skipped"]:
        return False
    return work.is_outdated(work.items[slice(*place)], set(store.read(pictures).texts("id")))


def _split_groups(plan: PiecePlan, missing: Piece, has_pictures: bool) -> Iterator[Piece]:
    """A piece for each group of models that lacks something; one without models where only pictures are missing."""
    any_group = False
    for group in plan.groups:
        models = tuple(model for model in missing.models if model in group)
        again = tuple(model for model in missing.again if model in group)
        if models or again:
            any_group = True
            yield missing._replace(models=models, again=again)
    if not has_pictures and not any_group:
        yield missing


def process_piece(work: PieceWork[Item], piece: Piece, store: PartStore, meter: ProgressMeter) -> None:
    """Make the parts of a piece: of its pictures, where they are not there, and of each model that is asked."""
    for name in piece.again:
        _ask_again(work, piece, work.model(name), store)
    pictures = work.pieces.part(piece.start, piece.layer)
    if piece.models or pictures not in store:
        _make_parts(work, piece, store, meter)


def _make_parts(work: PieceWork[Item], piece: Piece, store: PartStore, meter: ProgressMeter) -> None:
    began, plan = time.monotonic(), work.pieces
    models = [work.model(name) for name in piece.models]
    rows: list[tuple[Any, ...]] = []
    answers: dict[str, list[tuple[Any, ...]]] = {model.name: [] for model in models}
    skipped: list[tuple[int, dict[str, Any]]] = []
    verdicts: list[dict[str, Any]] = []
    for place in range(piece.start, piece.stop):
        item = work.items[place]
        progress = ItemProgress(meter, work.size_of(item) * _share(plan, piece))
        outcome = work.process(item, ItemRequest(models, piece.layer, progress))
        progress.finish()
        for rendered, origin in zip(outcome.rendered, outcome.origins, strict=True):
            row = manifest_row(origin.sample, rendered, origin.donor, plan.working_size)
            rows.append((*row, origin.planned_level or rendered.variant.level))
        for name, predictions in outcome.predictions.items():
            answers[name] += map(prediction_row, outcome.rendered, predictions)
        skipped += [(place, asdict(row)) for row in outcome.skipped]
        verdicts += [asdict(outcome.mask)] if outcome.mask is not None else []
    about = {"machine": describe_machine(), "seconds": round(time.monotonic() - began, 3), "ended": time.time()}
    about |= {"start": piece.start, "stop": piece.stop}
    pictures = plan.part(piece.start, piece.layer)
    if pictures not in store:
        store.write(pictures, PICTURE_COLUMNS, rows, {**about, "skipped": skipped, "masks": verdicts})
    for model in models:
        _write_answers(store, plan.part(piece.start, piece.layer, model.name), answers[model.name], about, model)


def _share(plan: PiecePlan, piece: Piece) -> float:
    """The share of an item's units that a piece makes: of the models, and of the layers."""
    of_models = len(piece.models) / len(plan.models) if plan.models else 1.0
    return of_models / len(plan.layers)


def _write_answers(
    store: PartStore, name: str, rows: Sequence[tuple[Any, ...]], about: Mapping[str, Any], model: Model
) -> None:
    errors = sum(row[_OUTCOME] == "error" for row in rows)
    store.write(
        name, PREDICTION_COLUMNS, rows, {**about, "model": model.name, "device": model.device, "errors": errors}
    )


_OUTCOME = list(PREDICTION_COLUMNS).index("outcome")


def _ask_again(work: PieceWork[Item], piece: Piece, model: Model, store: PartStore) -> None:
    """Replace a model's part by one in which the answers that ended in an error were asked for again."""
    plan = work.pieces
    pictures, name = store.read(plan.part(piece.start, piece.layer)), plan.part(piece.start, piece.layer, model.name)
    earlier = store.read(name)
    rendered = _read_rendered(pictures)
    rows = list(zip(*(earlier.table[column].to_pylist() for column in PREDICTION_COLUMNS), strict=True))
    answers = [
        Prediction(row.variant.id, (), (), float("nan"), old[_OUTCOME]) for row, old in zip(rendered, rows, strict=True)
    ]
    fresh = predict_again(model, [row.variant for row in rendered], answers, work.image_of)
    rows = [
        prediction_row(row, new) if old[_OUTCOME] == "error" else old
        for row, old, new in zip(rendered, rows, fresh, strict=True)
    ]
    about = {key: earlier.about[key] for key in ("machine", "seconds", "start", "stop")}
    store.allow_replacement(name)
    _write_answers(store, name, rows, {**about, "ended": time.time()}, model)


def _read_rendered(pictures: TablePart) -> list[RenderedVariant]:
    table = {name: np.asarray(pictures.table[name].to_pylist()) for name in pictures.table.column_names}
    variants = read_variants({**table, "seed": pictures.table["seed"].to_pylist()})
    measured = zip(variants, pictures.texts("sha256"), pictures.table["object_share"].to_pylist(), strict=True)
    return [RenderedVariant(variant, sha256, share) for variant, sha256, share in measured]


@dataclass(frozen=True)
class _NotedCounter:
    """A count whose additions are sent to another process."""

    send: Send

    def add(self, number: float) -> None:
        """Send the number."""
        self.send(number)

    def read(self) -> float:
        """Not known here."""
        return 0.0


@dataclass
class PieceRunner(PortableWork[Piece, "Piece | ItemFailure"], Generic[Item]):
    """Processes one piece after another, here or, pickled, in another process; holds one group of models at a time."""

    work: PieceWork[Item]
    store: PartStore
    meter: ProgressMeter | None = None  # does not travel
    patient: bool = True  # whether a piece that fails is tried again, and then given back as a failure; Ray does both
    _group: tuple[str, ...] = ()
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    def __call__(self, piece: Piece) -> Piece | ItemFailure:
        """Make the parts of the piece, which is returned."""
        return self._attempt(piece) if self.patient else self._make(piece)

    def connect(self, send: Send, workers: int) -> None:
        """Count progress and keep thumbnails for the process that started this one."""
        self.meter = ProgressMeter(_NotedCounter(send), None)
        self.work.connect(send, workers)

    def take_note(self, note: Any) -> None:
        """Take what a worker process sent: a number of units, or thumbnails."""
        if isinstance(note, float | int):
            if self.meter is not None:
                self.meter.add(note)
        elif self.work.thumbnails is not None:
            self.work.thumbnails.merge(note)

    def _make(self, piece: Piece) -> Piece:
        self._release_others(piece)
        began = time.monotonic()
        process_piece(self.work, piece, self.store, self.meter or ProgressMeter(ThreadCounter(0), None))
        if time.monotonic() - began > _SECONDS_TO_TRIM:
            return_memory()
        return piece

    def _release_others(self, piece: Piece) -> None:
        group = (*piece.models, *piece.again)
        with self._lock:
            if len(self.work.pieces.groups) < 2 or set(group) <= set(self._group):
                return
            self._group = group
            for model in self.work.models:
                if model.name not in group and isinstance(model, ReloadableModel):
                    model.release()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "meter": None, "_lock": None, "mirrors": list_addresses()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        join_mirrors(state.pop("mirrors"))
        vars(self).update({**state, "_lock": threading.Lock()})

    def _attempt(self, piece: Piece) -> Piece | ItemFailure:
        """The piece, or why it failed each time: the others are made."""
        reason = ""
        for _ in range(ATTEMPTS):
            try:
                return self._make(piece)
            except (UserError, OSError) as error:
                system = error.__cause__ if isinstance(error, UserError) else error  # files say that the disk is full
                if isinstance(system, OSError) and system.errno in _NO_PIECE_CAN_BE_WRITTEN:
                    raise
                kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
                reason = f"{kind}{' '.join(str(error).split())}"[:_LONGEST_REASON]
        return ItemFailure(piece, reason, ATTEMPTS)


def finish_work(work: PieceWork[Item], store: PartStore, execution: Execution, workers: int | None) -> None:
    """Make every part that is missing and is this process's; pieces that fail are set aside, and the others made."""
    pieces = [piece for piece in list_pieces(work, store) if _is_own(work, piece.start, execution.shard)]
    sizes = [work.size_of(item) for item in work.items]
    extent = _measure_extent(work, pieces, sizes, execution.shard)
    failures = _Failures(FailureStore(store.folder.parent / "failed"), len(pieces))
    done = 0
    runner = PieceRunner(work, store)
    engine = _choose_engine(runner, execution, workers)
    runner.patient = not isinstance(engine, RayEngine)  # which tries again elsewhere
    with open_meter(count_progress(extent, forked=isinstance(engine, ForkedEngine))) as meter:
        runner.meter = meter
        for turn in _take_turns(work.pieces, pieces, engine):
            for outcome in engine.map(runner, turn):
                if isinstance(outcome, ItemFailure):
                    failures.add(_name_piece(work.pieces, outcome.item), outcome, any_done=done > 0)
                    continue
                done += 1
                failures.store.remove(_name_piece(work.pieces, outcome))
                if isinstance(engine, RayEngine):
                    if done == 1:
                        _wait_for_parts(work.pieces, outcome, store)
                    meter.add(sum(sizes[outcome.start : outcome.stop]) * _share(work.pieces, outcome))
    if failures.count and execution.shard is not None:  # a scheduler should know; what is finished is kept
        raise UserError(
            f"expected every piece of shard {execution.shard}, {failures.count} failed {ATTEMPTS} times, the others"
            f" are done: {failures.reason}; run it again to try them again"
        )


@dataclass
class _Failures:
    """The pieces that were set aside, of so many."""

    store: FailureStore
    pieces: int
    count: int = 0
    reason: str = ""  # of the first

    def add(self, name: str, failure: ItemFailure, *, any_done: bool) -> None:
        """Set a piece aside; raises `UserError` where nothing works: then the input or the set-up is wrong."""
        self.count, self.reason = self.count + 1, self.reason or failure.reason
        self.store.write(name, _describe_failure(failure))
        if any_done or self.count < min(ATTEMPTS, self.pieces):
            return
        if self.count == 1:
            raise UserError(self.reason)
        raise UserError(f"expected pieces to be made, but the first {self.count} failed: {self.reason}")


def _measure_extent(
    work: PieceWork[Item], pieces: Sequence[Piece], sizes: Sequence[int], shard: WorkShard | None
) -> Extent:
    """How much work there is, of this shard where it is one, and how much of it was done before."""
    own = [sum(sizes[start:stop]) for start, stop in work.pieces.ranges() if _is_own(work, start, shard)]
    left = sum(sum(sizes[piece.start : piece.stop]) * _share(work.pieces, piece) for piece in pieces)
    return Extent(stage=work.stage, unit=work.unit, total=sum(own), done=max(0, sum(own) - round(left)))


def _wait_for_parts(plan: PiecePlan, piece: Piece, store: PartStore) -> None:
    """Raises `UserError` where a part that another machine made does not appear: its folder is another one."""
    name = plan.part(piece.start, piece.layer)
    for _ in range(_SECONDS_TO_APPEAR):
        if name in store:
            return
        time.sleep(1)
    raise UserError(
        f"expected every Ray worker to see the folder of the run as this process does, but what the first one wrote is"
        f" not in {store.folder.absolute()}; put --out where all machines share it, or at an address such as s3://"
    )


def _is_own(work: PieceWork[Item], start: int, shard: WorkShard | None) -> bool:
    return shard is None or shard.takes(start // work.pieces.size)


def _take_turns(plan: PiecePlan, pieces: Sequence[Piece], engine: Engine) -> list[list[Piece]]:
    """The pieces group by group of models: threads hold one group at once; a process with one thread does by itself."""
    turns = [[piece for piece in pieces if _belongs(piece, group)] for group in (*plan.groups, ())]
    by_itself = isinstance(engine, RayEngine) or (isinstance(engine, ProcessEngine) and engine.threads == 1)
    return [[piece for turn in turns for piece in turn]] if by_itself else turns


def _belongs(piece: Piece, group: Sequence[str]) -> bool:
    asked = (*piece.models, *piece.again)
    return asked[0] in group if asked else not group


def _choose_engine(runner: PieceRunner[Item], execution: Execution, workers: int | None) -> Engine:
    """The engine that was asked for; work that cannot be done elsewhere stays in this process, which says so."""
    work = runner.work
    engine = work.engine(workers)
    level = logging.INFO if execution.engine == "local" else logging.WARNING  # what was asked for is not done
    if execution.ray_address is None:
        if not isinstance(engine, LocalEngine) or execution.engine == "threads" or work.uses_gpu():
            return engine
        processes = fit_memory(cores()) if workers is None else workers
        if execution.engine == "local" and processes < PROCESSES_FROM:
            return engine
    bound = work.list_bound()
    if bound:
        place = "in other processes" if execution.ray_address is None else "on other machines"
        _log.log(level, "%s: cannot be used %s, so the work is done in this process", ", ".join(bound), place)
        return engine
    if execution.ray_address is not None:
        on_gpu = any(model.device.startswith("cuda") for model in work.models)
        return RayEngine(execution.ray_address, workers, on_gpu)
    try:
        return ProcessEngine(processes, runner.take_note, pack_work(runner), work.count_threads(processes))
    except UserError as error:
        _log.log(level, "%s; it is done by threads here", error)
        return engine


def fit_memory(workers: int) -> int:
    """As many worker processes as the memory allows, where nobody said how many; a few where it is not known."""
    memory = find_memory()
    return max(1, min(workers, PROCESSES_FROM if memory is None else memory // PROCESS_BYTES))


def _name_piece(plan: PiecePlan, piece: Piece) -> str:
    return part_name(plan.part(piece.start, piece.layer), sorted((*piece.models, *piece.again)))


def _describe_failure(failure: ItemFailure) -> dict[str, Any]:
    piece: Piece = failure.item
    return {
        "start": piece.start, "stop": piece.stop, "models": [*piece.models, *piece.again], "reason": failure.reason,
        "attempts": failure.attempts, "ended": time.time(),
    }  # fmt: skip


def refuse_missing(plan: PiecePlan, store: PartStore, remedy: str) -> None:
    """Raises `UserError`, with the reason of the first failure and the remedy, where parts are missing."""
    missing = find_missing(plan, store)
    if missing:
        total = sum(1 for _ in plan.parts())
        failures = FailureStore(store.folder.parent / "failed").read()
        pieces = "1 piece" if len(failures) == 1 else f"{len(failures)} pieces"
        reason = f" ({pieces} failed, the first with '{failures[0]['reason']}')" if failures else ""
        raise UserError(f"expected all {total:,} parts of the run, {len(missing):,} are missing{reason}; {remedy}")
