"""Pieces of work by their content ids: what the journal does not hold is done, what the network lost is asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from counterfoil.engine import ForkedEngine, LocalEngine, cores
from counterfoil.paint.easel import ROWS
from counterfoil.pipeline.progress import Extent, shown
from counterfoil.pipeline.work import ImageOf, Outcome, from_entry, outcome_again, to_entry, unsettled
from counterfoil.store import Journal
from counterfoil.types import Engine, Item, Model


@dataclass(frozen=True)
class Pieces(Generic[Item]):
    """What is to be done, and how."""

    items: Mapping[str, Item]  # by the content id of their work
    do: Callable[[Item], Outcome]
    image_of: ImageOf  # makes a picture once more, where an answer to it was lost
    classifiers: Sequence[Model]
    unit: str  # what progress counts
    stale: Callable[[Item, Outcome], bool] | None = None  # whether a finished piece is to be done again
    size: Callable[[Item], int] = lambda item: 1  # units in a piece
    paints_on_gpu: bool = False  # whether making the pictures takes a GPU


def finish(pieces: Pieces[Item], journal: Journal, workers: int | None) -> None:
    """Do what the journal does not hold yet, and ask again where an answer was lost on the network."""
    stale = _stale(pieces, journal)
    lost = {key: outcome for key, outcome in _lost(pieces, journal).items() if key not in stale}
    missing = [key for key in pieces.items if key not in journal or key in stale or key in lost]

    def work(key: str) -> tuple[str, dict[str, object]]:
        if key in lost:
            return key, to_entry(outcome_again(pieces.classifiers, lost[key], pieces.image_of))
        return key, to_entry(pieces.do(pieces.items[key]))

    results = _engine(pieces, workers).map(work, missing)
    sizes = {key: pieces.size(item) for key, item in pieces.items.items()}
    total = sum(sizes.values())
    extent = Extent(total - sum(sizes[key] for key in missing), total, pieces.unit)
    for key, entry in shown(results, extent, lambda result: sizes[result[0]]):
        journal.add(key, entry)


def _engine(pieces: Pieces[Item], workers: int | None) -> Engine:
    """Threads; processes where a GPU does the networks' part, since many decoding threads wait for Python's lock."""
    if pieces.paints_on_gpu:  # which a forked process cannot use; threads share its batches, two of which keep it busy
        return LocalEngine(workers or min(4 * cores(), 2 * ROWS))
    on_gpu = [model.device.startswith("cuda") for model in pieces.classifiers]
    if on_gpu and all(on_gpu):
        return ForkedEngine(workers or 2 * cores())
    return LocalEngine(workers or cores())


def _lost(pieces: Pieces[Item], journal: Journal) -> dict[str, Outcome]:
    """The finished pieces some of whose answers were lost on the network; a rerun asks for those alone."""
    if not any(model.retryable for model in pieces.classifiers):
        return {}
    return {key: outcome for key, outcome in _known(pieces, journal) if unsettled(pieces.classifiers, outcome)}


def _stale(pieces: Pieces[Item], journal: Journal) -> set[str]:
    """The finished pieces that would come out otherwise by now."""
    changed = pieces.stale
    if changed is None:
        return set()
    return {key for key, outcome in _known(pieces, journal) if changed(pieces.items[key], outcome)}


def _known(pieces: Pieces[Item], journal: Journal) -> Iterator[tuple[str, Outcome]]:
    """What is finished."""
    return ((key, from_entry(journal.entry(key))) for key in pieces.items if key in journal)
