"""From photos to answers, in one straight line. Read this file first.

    source -> segment -> edit -> evaluate -> (tables) -> analyse -> report

`prepare` loads and checks everything. Each photo then goes through `outcome_of` on one of the engine's threads:
decoded once, masked, every variant made, every model asked, the pixels dropped. Finished photos stand in the journal,
so a run that was killed goes on where it was; the tables are written from the journal in the order of the photos,
whatever the order of the work.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from counterfoil.engine import ForkedEngine, LocalEngine, cores
from counterfoil.errors import UserError
from counterfoil.models import ModelOptions, Scoring
from counterfoil.pipeline.job import Job, Prepared, prepare, source_at
from counterfoil.pipeline.progress import shown
from counterfoil.pipeline.result import Result
from counterfoil.pipeline.spent import keep_usage
from counterfoil.pipeline.work import Keep, Outcome, from_entry, key_of, outcome_again, outcome_of, to_entry, unsettled
from counterfoil.store import Journal, ResultTables, write_atomically
from counterfoil.types import Answerer, Engine, Sample, Skipped

_MAY_DIFFER = {"command", "environment", "samples"}  # between two sessions of one run


def run(
    images: str | Path,
    models: Sequence[str],
    *,
    masks: str | Path | None = None,
    recipe: str = "attributes",
    out: str | Path | None = None,
    limit: int | None = None,
    workers: int | None = None,
    batch_size: int = 16,
    seed: int = 0,
    scoring: Scoring = "all",
    classes: str | None = None,
    options: ModelOptions | None = None,
) -> Result:
    """Edit every photo, ask every model, and say what each attribute costs; resumes where `out` holds a killed run."""
    job = Job(
        source_at(images, masks), tuple(models), recipe, limit, workers, batch_size, seed, options or ModelOptions(),
        classes, scoring,
        command=f"counterfoil.run(images={str(images)!r}, models={list(models)!r}, recipe={recipe!r})",
    )  # fmt: skip
    return run_job(job, Path(out) if out is not None else None)


def run_job(job: Job, out: Path | None, before: Callable[[Prepared], None] | None = None) -> Result:
    """The whole way of one job; `before` sees what was loaded, before the work begins."""
    if not job.models:
        raise UserError("expected at least one model, got none; try --model embedded:efficientnet-lite0")
    prepared = prepare(job)
    if before is not None:
        before(prepared)
    holder = tempfile.TemporaryDirectory(prefix="counterfoil-") if out is None else None
    folder = out if out is not None else Path(holder.name)  # type: ignore[union-attr]
    skipped = work_through(prepared, folder)
    return Result(prepared, folder, tuple(skipped), holder)


def work_through(prepared: Prepared, folder: Path, keep: Keep | None = None) -> list[Skipped]:
    """Do what is not done yet and write the tables; gives back what was skipped. `keep` sees every picture made."""
    try:
        (folder / "work").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"expected a folder to write into, got '{folder}': {error.strerror}; choose another --out"
        ) from error
    _claim(folder, prepared)
    with Journal(folder / "work" / "journal.jsonl") as journal:
        try:
            _finish(prepared, journal, keep)
        finally:
            keep_usage(folder, prepared.classifiers)  # what was asked was paid for, however the run ends
        return _tables(prepared, journal, folder)


def _claim(folder: Path, prepared: Prepared) -> None:
    """Mark the folder as this run's; a folder that holds another run's results is refused."""
    asked = {"limit": prepared.job.limit, "identities": prepared.identities, **asdict(prepared.run)}
    record = json.loads(json.dumps(asked))
    path = folder / "run.json"
    if path.is_file():
        there = _record(path)
        different = [name for name in record if name not in _MAY_DIFFER and there.get(name) != record[name]]
        if different:
            raise UserError(
                f"expected an empty folder or this run's own in {folder}, but it holds a run with another"
                f" {' and '.join(different)}; choose another --out or remove the folder"
            )
    write_atomically(path, json.dumps(record, indent=1))


def _record(path: Path) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"expected the record of a run in {path}, which is damaged: remove the folder") from error
    return found


def _finish(prepared: Prepared, journal: Journal, keep: Keep | None) -> None:
    """Do what the journal does not hold yet, and ask again where an answer was lost on the network."""
    keys = {sample.id: key_of(prepared, sample) for sample in prepared.samples}
    lost = _lost(prepared, journal)
    missing = [sample for sample in prepared.samples if keys[sample.id] not in journal or keys[sample.id] in lost]

    def work(sample: Sample) -> tuple[str, dict[str, object]]:
        earlier = lost.get(keys[sample.id])
        outcome = outcome_again(prepared, earlier) if earlier else outcome_of(prepared, sample, keep)
        return keys[sample.id], to_entry(outcome)

    results = _engine(prepared).map(work, missing)
    done = len(prepared.samples) - len(missing)
    for key, entry in shown(results, done, len(prepared.samples), " photos"):
        journal.add(key, entry)


def _engine(prepared: Prepared) -> Engine:
    """Threads; processes where a GPU does the networks' part, since many decoding threads wait for Python's lock."""
    on_gpu = [str(getattr(model, "device", "cpu")).startswith("cuda") for model in prepared.classifiers]
    if on_gpu and all(on_gpu):
        return ForkedEngine(prepared.job.workers or 2 * cores())
    return LocalEngine(prepared.workers)


def _lost(prepared: Prepared, journal: Journal) -> dict[str, Outcome]:
    """The finished photos some of whose answers were lost on the network; a rerun asks for those alone."""
    if not any(isinstance(model, Answerer) for model in prepared.classifiers):
        return {}
    keys = (key_of(prepared, sample) for sample in prepared.samples)
    known = ((key, from_entry(journal.entry(key))) for key in keys if key in journal)
    return {key: outcome for key, outcome in known if unsettled(prepared, outcome)}


def _tables(prepared: Prepared, journal: Journal, folder: Path) -> list[Skipped]:
    """Write the tables in the order of the photos; gives back what was skipped on the whole way."""
    skipped = list(prepared.skipped)
    with ResultTables(folder, prepared.models, prepared.recipe.working_size) as tables:
        for sample in prepared.samples:
            outcome = from_entry(journal.entry(key_of(prepared, sample)))
            skipped += outcome.skipped
            for place, made in enumerate(outcome.made):
                tables.add_variant(sample, made)
                for model, predictions in outcome.predictions.items():
                    tables.add_prediction(model, made, predictions[place])
    return skipped
