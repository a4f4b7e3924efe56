"""From finished pictures to answers, in one straight line.

    collection -> evaluate -> (tables) -> analyse -> report

Pictures go through `_outcome_of` in chunks on the engine's threads: read, shown to every model, the pixels dropped.
Finished chunks stand in the journal, so an evaluation that was killed goes on where it was; the tables are written from
the journal in the order of the collection, whatever the order of the work.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.errors import Unusable, UserError
from counterfoil.evaluate import Collection, answers
from counterfoil.models import ModelOptions, Scoring
from counterfoil.pipeline.claiming import MAY_DIFFER, claim
from counterfoil.pipeline.collected.opening import collection_at, full_address
from counterfoil.pipeline.collected.preparing import Evaluation, PreparedEvaluation, prepare_evaluation, sample_of
from counterfoil.pipeline.journaled import Pieces, finish
from counterfoil.pipeline.recorded.candidates import Candidates
from counterfoil.pipeline.recorded.papers import paper_tables
from counterfoil.pipeline.recorded.report import PapersOf, no_papers
from counterfoil.pipeline.result import Result
from counterfoil.pipeline.spent import keep_usage
from counterfoil.pipeline.work import Outcome, Watch, from_entry, latest
from counterfoil.store import Journal, Made, ResultTables
from counterfoil.types import Exhibit, Skipped, Variant

Chunk: TypeAlias = Sequence[Exhibit]

_CHUNK = 32  # pictures in a piece of work, whatever the batch size, so that another one finds what is finished
# the digest says what the pictures are, wherever they lie and whatever the folder is called
_LATER = frozenset({"images", "collection", "surrogates", "notes"})


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
    opened = collection_at(str(collection)) if isinstance(collection, str | Path) else collection
    asked = Evaluation(
        opened, tuple(models), limit, workers, batch_size, scoring, classes, options or ModelOptions(),
        address=full_address(str(collection)) if named else "",
        command=f"counterfoil.evaluate_collection({str(collection) if named else opened.name!r}, {list(models)!r})",
    )  # fmt: skip
    return run_evaluation(asked, Path(out) if out is not None else None, papers=paper_tables)


def run_evaluation(
    asked: Evaluation,
    out: Path | None,
    before: Callable[[PreparedEvaluation], None] | None = None,
    papers: PapersOf = no_papers,
    *,
    thumbnails: bool = True,
) -> Result:
    """One evaluation from start to end; `before` sees what was loaded, `papers` gives tables for the report.

    `thumbnails` says whether to keep those that a report may show; without them they are read again.
    """
    prepared = prepare_evaluation(asked)
    if before is not None:
        before(prepared)
    holder = tempfile.TemporaryDirectory(prefix="counterfoil-") if out is None else None
    folder = out if out is not None else Path(holder.name)  # type: ignore[union-attr]
    candidates = Candidates(prepared.models, prepared.run.samples) if thumbnails else None
    skipped = _work_through(prepared, folder, candidates.add if candidates is not None else None)
    return Result(prepared, folder, tuple(skipped), holder, papers, candidates)


def _work_through(prepared: PreparedEvaluation, folder: Path, watch: Watch | None) -> list[Skipped]:
    """Ask what is not asked yet and write the tables; gives back what was skipped."""
    record = {"limit": prepared.asked.limit, "identities": prepared.identities, **asdict(prepared.run)}
    claim(folder, record, MAY_DIFFER | _LATER)
    chunks = _chunks(prepared)
    with Journal(folder / "work" / "journal.jsonl") as journal:
        try:
            finish(_pieces(prepared, chunks, watch), journal, prepared.asked.workers)
        finally:
            keep_usage(folder, prepared.classifiers)  # what was asked was paid for, however the run ends
        return _tables(prepared, chunks, journal, folder)


def _chunks(prepared: PreparedEvaluation) -> dict[str, Chunk]:
    """Pictures that are asked together, by the content id of the work: whatever changes its outcome changes the id."""
    parts = (prepared.exhibits[start : start + _CHUNK] for start in range(0, len(prepared.exhibits), _CHUNK))
    about = [__version__, prepared.run.collection_digest, prepared.identities]
    return {_digest([*about, [[e.variant.id, e.variant.label] for e in part]]): part for part in parts}


def _digest(about: object) -> str:
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _pieces(prepared: PreparedEvaluation, chunks: dict[str, Chunk], watch: Watch | None) -> Pieces[Chunk]:
    return Pieces(
        chunks,
        lambda chunk: _outcome_of(prepared, chunk, watch),
        lambda variant: _again(prepared, variant),
        prepared.classifiers,
        " pictures",
        lambda chunk, outcome: _readable_by_now(prepared, chunk, outcome),
        len,
    )


def _readable_by_now(prepared: PreparedEvaluation, chunk: Chunk, outcome: Outcome) -> bool:
    """Whether a picture that could not be read is there again: a disk that was away must not cost it for good."""
    made = {made.variant.id for made in outcome.made}
    return bool(_readable(prepared, [exhibit for exhibit in chunk if exhibit.variant.id not in made], []))


def _again(prepared: PreparedEvaluation, variant: Variant) -> NDArray[np.uint8]:
    """A picture whose answer was lost, for asking once more."""
    try:
        return prepared.asked.collection.read(prepared.exhibits.by_id[variant.id])
    except Unusable as error:
        raise UserError(f"expected every picture that was answered before to be there still, but {error}") from error


def _outcome_of(prepared: PreparedEvaluation, chunk: Chunk, watch: Watch | None) -> Outcome:
    """Read and ask; what cannot be read is a counted row."""
    outcome = Outcome([], {model.name: [] for model in prepared.classifiers}, [])
    batch_size = prepared.asked.batch_size
    for start in range(0, len(chunk), batch_size):  # the pixels of one batch at a time
        read = _readable(prepared, chunk[start : start + batch_size], outcome.skipped)
        asked, images = [exhibit.variant for exhibit, _ in read], [image for _, image in read]
        outcome.made.extend(_made(exhibit, image) for exhibit, image in read)
        for model in prepared.classifiers:
            outcome.predictions[model.name] += answers(model, asked, images, batch_size) if images else []
        if watch is not None:
            watch(*latest(outcome, images))
    return outcome


def _readable(
    prepared: PreparedEvaluation, chunk: Chunk, skipped: list[Skipped]
) -> list[tuple[Exhibit, NDArray[np.uint8]]]:
    """The pictures that can be read; the others are added to what was skipped."""
    read = []
    for exhibit in chunk:
        try:
            read.append((exhibit, prepared.asked.collection.read(exhibit)))
        except Unusable as error:
            variant = exhibit.variant
            skipped.append(Skipped(str(variant.sample_id), "evaluate", variant.edit, str(error)))
    return read


def _made(exhibit: Exhibit, image: NDArray[np.uint8]) -> Made:
    """The hash is of the pixels that the models saw; where the collection names one, `read` has compared it."""
    pixels = exhibit.sha256 or hashlib.sha256(image.tobytes()).hexdigest()
    return Made(exhibit.variant, pixels, exhibit.object_share)


def _tables(prepared: PreparedEvaluation, chunks: dict[str, Chunk], journal: Journal, folder: Path) -> list[Skipped]:
    """Write the tables in the order of the collection; gives back what was skipped on the whole way."""
    skipped = list(prepared.skipped)
    with ResultTables(folder, prepared.models, None) as tables:
        for key, chunk in chunks.items():
            outcome = from_entry(journal.entry(key))
            skipped += outcome.skipped
            shown = {exhibit.variant.id: exhibit for exhibit in chunk}
            for place, made in enumerate(outcome.made):
                exhibit = shown[made.variant.id]
                tables.add_variant(sample_of(exhibit), made, *exhibit.photos[1:])
                for model, predictions in outcome.predictions.items():
                    tables.add_prediction(model, made, predictions[place])
    return skipped
