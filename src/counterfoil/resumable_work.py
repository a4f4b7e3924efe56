"""Work that can be resumed: items in the journal are kept, missing ones processed, failed answers asked again.

A `ResumableWork` is split into items (photos, or chunks of finished pictures). The key of an item is a
hash of all that its outcome depends on; each finished item is one entry of the journal under its key.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Generic, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.models.inference import predict_again, should_retry
from counterfoil.object_mask import MaskVerdict
from counterfoil.progress import Extent, ItemProgress, count_progress, open_meter
from counterfoil.store.journal import Journal
from counterfoil.store.prediction_tables import RenderedVariant, ToolTrace
from counterfoil.types import Engine, Item, Model, Prediction, Skipped, Variant
from counterfoil.worker_pool import ForkedEngine, LocalEngine, cores

Image: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB
Observer: TypeAlias = Callable[[Sequence[RenderedVariant], Sequence[Image], Mapping[str, Sequence[Prediction]]], None]


class Outcome(NamedTuple):
    """The outcome of one item: pictures, the models' answers, and what was skipped."""

    rendered: list[RenderedVariant]
    predictions: dict[str, list[Prediction]]  # by model, in the order of `rendered`
    skipped: list[Skipped]
    mask: MaskVerdict | None = None  # the verdict on the photo's mask

    def show_last(self, images: Sequence[Image], observe: Observer) -> None:
        """Call an observer with the pictures that were added last and their answers."""
        first = len(self.rendered) - len(images)
        observe(self.rendered[first:], images, {model: rows[first:] for model, rows in self.predictions.items()})

    def to_entry(self) -> dict[str, Any]:
        """The outcome as an entry of the journal."""
        return {
            "made": [
                [asdict(row.variant), row.sha256, row.object_share, row.centre_x, row.centre_y, row.tool]
                for row in self.rendered
            ],
            "predictions": {
                model: [[row.ranked, row.scores, row.true_score, row.outcome, row.text] for row in rows]
                for model, rows in self.predictions.items()
            },
            "skipped": [asdict(row) for row in self.skipped],
            **({"mask": asdict(self.mask)} if self.mask is not None else {}),
        }

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> Outcome:
        """The outcome that an entry of the journal holds."""
        rendered = [_read_rendered(*row) for row in entry["made"]]
        predictions = {
            model: [
                Prediction(picture.variant.id, tuple(ranked), tuple(scores), *rest)
                for picture, (ranked, scores, *rest) in zip(rendered, rows, strict=True)
            ]
            for model, rows in entry["predictions"].items()
        }
        mask = entry.get("mask")
        verdict = MaskVerdict(**{**mask, "reasons": tuple(mask["reasons"])}) if mask else None
        return cls(rendered, predictions, [Skipped(**row) for row in entry["skipped"]], verdict)


def _read_rendered(variant: dict[str, Any], *measures: Any) -> RenderedVariant:
    sha256, share, centre_x, centre_y, *tool = measures
    trace = ToolTrace(*tool[0]) if tool else ToolTrace()
    return RenderedVariant(Variant(**variant), sha256, share, centre_x, centre_y, trace)


class ResumableWork(ABC, Generic[Item]):
    """The items of a run and how each is processed; a subclass holds the plan of the run."""

    stage = "working"  # what is done, for the display of progress
    unit = "items"  # of progress
    models: Sequence[Model]
    items: Mapping[str, Item]  # by key, in the order of the tables

    @abstractmethod
    def process(self, item: Item, progress: ItemProgress) -> Outcome:
        """Make or read the pictures of an item and run every model; called in worker threads or processes.

        Units that are finished are added to `progress`; what was not added counts when the item is finished.
        """

    @abstractmethod
    def image_of(self, variant: Variant) -> Image:
        """One picture again, where its answer ended in an error."""

    def size_of(self, item: Item) -> int:
        """How many units an item holds."""
        return 1

    def is_outdated(self, item: Item, outcome: Outcome) -> bool:
        """Whether a finished item must be processed again because its outcome would change."""
        return False

    def engine(self, workers: int | None) -> Engine:
        """Threads; processes where a GPU runs the networks, since many decoding threads wait for the GIL."""
        on_gpu = [model.device.startswith("cuda") for model in self.models]
        if on_gpu and all(on_gpu):
            return ForkedEngine(workers or 2 * cores())
        return LocalEngine(workers or cores())


def work_key(*parts: object) -> str:
    """The key of an item: a hash of all that its outcome depends on."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def finish_work(work: ResumableWork[Item], journal: Journal, workers: int | None) -> None:
    """Process every item that the journal lacks, and ask again where an answer ended in a network error."""
    outdated: set[str] = set()
    incomplete: dict[str, Outcome] = {}
    for key, outcome in _finished(work, journal) if _may_change(work) else ():
        if work.is_outdated(work.items[key], outcome):
            outdated.add(key)
        elif _lacks_answers(work.models, outcome):
            incomplete[key] = outcome
    open_keys = [key for key in work.items if key not in journal or key in outdated or key in incomplete]

    sizes = {key: work.size_of(item) for key, item in work.items.items()}
    total, left = sum(sizes.values()), sum(sizes[key] for key in open_keys)
    extent = Extent(stage=work.stage, unit=work.unit, total=total, done=total - left)
    engine = work.engine(workers)

    def process(key: str) -> tuple[str, dict[str, Any]]:
        progress = ItemProgress(meter, sizes[key])
        outcome = _ask_again(work, incomplete[key]) if key in incomplete else work.process(work.items[key], progress)
        progress.finish()
        return key, outcome.to_entry()

    with open_meter(count_progress(extent, forked=isinstance(engine, ForkedEngine))) as meter:
        for key, entry in engine.map(process, open_keys):
            journal.add(key, entry)


def _may_change(work: ResumableWork[Item]) -> bool:
    """Whether any finished item may have to be processed again; else no entries are read."""
    return any(model.retryable for model in work.models) or type(work).is_outdated is not ResumableWork.is_outdated


def _finished(work: ResumableWork[Item], journal: Journal) -> Iterator[tuple[str, Outcome]]:
    return ((key, Outcome.from_entry(journal.entry(key))) for key in work.items if key in journal)


def _lacks_answers(models: Sequence[Model], outcome: Outcome) -> bool:
    return any(should_retry(model, outcome.predictions.get(model.name, [])) for model in models)


def _ask_again(work: ResumableWork[Item], earlier: Outcome) -> Outcome:
    """The outcome with failed answers asked again; only their pictures are made again."""
    variants = [row.variant for row in earlier.rendered]
    predictions = dict(earlier.predictions)
    for model in work.models:
        answers = predictions.get(model.name, [])
        if should_retry(model, answers):
            predictions[model.name] = predict_again(model, variants, answers, work.image_of)
    return earlier._replace(predictions=predictions)
