"""From photos to answers, in one straight line. Read this file first.

    source -> segment -> edit -> evaluate -> (tables) -> analyse -> report

`prepare` loads and checks everything. Each photo then goes through `outcome_of` on one of the engine's threads:
decoded once, masked, every variant made, every model asked, the pixels dropped. Finished photos stand in the journal,
so a run that was killed goes on where it was; the tables are written from the journal in the order of the photos,
whatever the order of the work.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.models import ModelOptions, Scoring
from counterfoil.paint.background_torch import check_gpu
from counterfoil.pipeline.claiming import claim
from counterfoil.pipeline.job import Job, Prepared, prepare, source_at
from counterfoil.pipeline.journaled import Pieces, finish
from counterfoil.pipeline.recorded.candidates import Candidates
from counterfoil.pipeline.result import Result
from counterfoil.pipeline.spent import keep_usage
from counterfoil.pipeline.work import Keep, Watch, from_entry, key_of, outcome_of
from counterfoil.store import Journal, ResultTables
from counterfoil.types import Provenance, Sample, Skipped, Variant


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
    candidates = Candidates(prepared.models, len(prepared.samples))
    skipped = work_through(prepared, folder, watch=candidates.add)
    return Result(prepared, folder, tuple(skipped), holder, _candidates=candidates)


def work_through(
    prepared: Prepared, folder: Path, keep: Keep | None = None, watch: Watch | None = None
) -> list[Skipped]:
    """Do what is not done yet and write the tables; gives back what was skipped.

    `keep` sees every picture that is made, `watch` sees it together with the answers.
    """
    if _paints_on_gpu(prepared):
        check_gpu()
    claim(folder, {"limit": prepared.job.limit, "identities": prepared.identities, **asdict(prepared.run)})
    photos = {key_of(prepared, sample): sample for sample in prepared.samples}
    with Journal(folder / "work" / "journal.jsonl") as journal:
        try:
            finish(_pieces(prepared, photos, keep, watch), journal, prepared.job.workers)
        finally:
            keep_usage(folder, prepared.classifiers)  # what was asked was paid for, however the run ends
        return _tables(prepared, photos, journal, folder)


def _pieces(
    prepared: Prepared, photos: Mapping[str, Sample], keep: Keep | None, watch: Watch | None
) -> Pieces[Sample]:
    """The work, photo by photo."""
    return Pieces(
        photos,
        lambda sample: outcome_of(prepared, sample, keep, watch),
        lambda variant: prepared.studio.make(variant).image,
        prepared.classifiers,
        " photos",
        paints_on_gpu=_paints_on_gpu(prepared),
    )


def _paints_on_gpu(prepared: Prepared) -> bool:
    return any(step.edit.needs.gpu for step in prepared.steps)


def _donor(prepared: Prepared, variant: Variant) -> Provenance:
    """Origin and licence of the photo that lent its background; empty where none did."""
    return prepared.studio.samples[variant.donor_id].provenance if variant.donor_id else Provenance()


def _tables(prepared: Prepared, photos: Mapping[str, Sample], journal: Journal, folder: Path) -> list[Skipped]:
    """Write the tables in the order of the photos; gives back what was skipped on the whole way."""
    skipped = list(prepared.skipped)
    with ResultTables(folder, prepared.models, prepared.recipe.working_size) as tables:
        for key, sample in photos.items():
            outcome = from_entry(journal.entry(key))
            skipped += outcome.skipped
            for place, made in enumerate(outcome.made):
                tables.add_variant(sample, made, _donor(prepared, made.variant))
                for model, predictions in outcome.predictions.items():
                    tables.add_prediction(model, made, predictions[place])
    return skipped
