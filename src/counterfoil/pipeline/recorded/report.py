"""From answers to a folder with a report: the same for a fresh run, for one read back and for a comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from counterfoil.analyse import Estimate, mean_drops, tied_models
from counterfoil.analyse.prediction_tables import DETAIL_COLUMNS
from counterfoil.labels import space_of
from counterfoil.pipeline.recorded.answers import REPORT_COLUMNS
from counterfoil.pipeline.recorded.confidence import confidences_of, place_maps
from counterfoil.pipeline.recorded.examples import examples
from counterfoil.pipeline.recorded.failures import details_of, failure_modes
from counterfoil.pipeline.recorded.lone_examples import lone_examples
from counterfoil.pipeline.recorded.pictures import Album
from counterfoil.pipeline.recorded.study import Study
from counterfoil.report import PaperTable, ReportInput, accuracies_csv, drops_csv, skipped_csv, summary, write_report
from counterfoil.report.failure_modes import FailureModes
from counterfoil.report.surrogates import surrogates_among
from counterfoil.store import write_atomically

PapersOf: TypeAlias = Callable[[Study], Sequence[PaperTable]]


def no_papers(study: Study) -> Sequence[PaperTable]:
    """No paper is known to be behind the pictures."""
    return ()


def content_of(study: Study, album: Album, papers: PapersOf = no_papers) -> ReportInput:
    """Everything that the page says; `papers` gives tables by the rules of the paper behind the pictures."""
    for table in study.predictions.values():  # all that the page needs, in one reading of the file
        table.columns(REPORT_COLUMNS if study.run.collection else DETAIL_COLUMNS)
    manifest = study.manifest["sample_id"]
    alone = bool(study.accuracies) and not any(row.n for row in study.drops)
    show = lone_examples if alone else examples
    details = details_of(study)
    shown = list(show(study, album)) if len(manifest) and (alone or study.has_originals) else []
    return ReportInput(
        title=_title(study),
        run=study.run,
        drops=study.drops,
        photos=len(set(manifest)),
        variants=len(manifest),
        examples=shown,
        skipped=study.skipped,
        names=_names(study),
        unscored=study.unscored,
        attribute_drops=study.attribute_drops,
        means=_means(study) if len(manifest) and study.has_originals else {},
        outcomes={model: table.outcomes for model, table in study.predictions.items()},
        unseen=study.unseen,
        letters=_letters(study),
        contrasts=study.contrasts,
        failures=failure_modes(study, details) if study.has_originals else FailureModes(),
        confidences=confidences_of(details),
        places=place_maps(details),
        runs=study.runs if len(study.runs) > 1 else (),
        accuracies=study.accuracies,
        papers=papers(study) if len(manifest) else (),
    )


def write_study(folder: Path, content: ReportInput) -> Path:
    """Write report.html, drops.csv, summary.json and skipped.csv; gives back the page."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "drops.csv", drops_csv(content.drops))
    if content.accuracies:
        write_atomically(folder / "accuracies.csv", accuracies_csv(content.accuracies, surrogates_among(content.run)))
    write_atomically(folder / "skipped.csv", skipped_csv(content.skipped))
    write_atomically(folder / "summary.json", json.dumps(summary(content), indent=1, allow_nan=False))
    return write_report(folder, content)


def _title(study: Study) -> str:
    if study.run.collection and (not study.drops or study.run.surrogates):
        return f"How often {'are these classifiers' if len(study.files) > 1 else 'is this classifier'} right?"
    return f"Which attributes break {'these classifiers' if len(study.files) > 1 else 'this classifier'}?"


def _names(study: Study) -> dict[str, str]:
    """What people call the labels that occur."""
    labels = sorted({label for table in study.predictions.values() for label in table.labels})
    space = space_of(labels)
    return {label: space.name_of(label) for label in labels}


def _means(study: Study) -> dict[str, Estimate]:
    """The mean of each model's drops; its interval is resampled with a fixed seed: the same answers, the same page."""
    return {row.model: row.drop for row in mean_drops(study.answers, np.random.default_rng(0)) if row.conditions}


def _letters(study: Study) -> dict[tuple[str, str], str]:
    """Models that an attribute's drops cannot tell apart share a letter."""
    if len(study.files) < 2:
        return {}
    attributes = dict.fromkeys(row.attribute for row in study.attribute_drops)
    return {
        (attribute, ranked.name): ranked.letters
        for attribute in attributes
        for ranked in tied_models(study.answers, attribute)
    }
