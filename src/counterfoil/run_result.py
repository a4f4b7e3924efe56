"""The result of a run or an evaluation: drops, findings in sentences, report."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from counterfoil.progress import show_stage
from counterfoil.report.content import PaperScorer, build_content, score_no_paper
from counterfoil.report.headline import write_headline
from counterfoil.report.page import write_report
from counterfoil.statistics.answers import Answers
from counterfoil.store.mask_table import MASK_TABLE
from counterfoil.store.prediction_tables import locate_predictions
from counterfoil.study.judgements import Judgement
from counterfoil.study.predictions import Predictions
from counterfoil.study.runs import Study
from counterfoil.study.thumbnails import ThumbnailCache, ThumbnailCandidates
from counterfoil.types import Drop, Model, Picture, Run, Skipped, Variant


class ExecutionPlan(Protocol):
    """What was loaded and checked before the work: photos with their edits, or a collection of pictures."""

    @property
    def models(self) -> tuple[Model, ...]:
        """The models."""

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models' names as in the tables."""

    @property
    def empty_classes(self) -> tuple[str, ...]:
        """Classes of which no photo can be used."""

    @property
    def run(self) -> Run:
        """The record of the run."""

    def picture(self, variant: Variant) -> Picture | None:
        """A picture that the models saw, made again; None where that is no longer possible."""


@dataclass(frozen=True)
class Result:
    """The outcome of a run."""

    plan: ExecutionPlan
    folder: Path
    skipped: tuple[Skipped, ...]
    temporary: tempfile.TemporaryDirectory[str] | None = None  # keeps the temporary folder of a run without a folder
    papers: PaperScorer = score_no_paper  # the tables of its collection's paper
    thumbnails: ThumbnailCandidates | None = None  # kept while the pictures were in memory

    @cached_property
    def study(self) -> Study:
        """The run's data for the report."""
        files = locate_predictions(self.folder, self.plan.model_names)
        predictions = {model: Predictions(path) for model, path in files.items()}
        return Study((self.folder,), (self.plan.run,), predictions, self.skipped)

    @property
    def answers(self) -> Answers:
        """Every answer of every model, in columns."""
        return self.study.answers

    @property
    def drops(self) -> list[Drop]:
        """The drop in accuracy for each edit and model."""
        return self.study.drops

    @property
    def judgements(self) -> dict[str, Judgement]:
        """For each model whether its results may be read, and if not, why and what to do."""
        return self.study.judgements

    @property
    def headline(self) -> list[str]:
        """The findings in sentences."""
        return [finding.text for finding in write_headline(self.study)]

    def report(self, out: str | Path) -> Path:
        """Write report.html, drops.csv, summary.json, skipped.csv and the tables of answers into a folder."""
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve() != self.folder.resolve():
            shutil.copytree(self.folder / "predictions", folder / "predictions", dirs_exist_ok=True)
            for name in ("variants.parquet", "run.json", MASK_TABLE):
                if (self.folder / name).is_file():
                    shutil.copy2(self.folder / name, folder)
        ready = {} if self.thumbnails is None else self.thumbnails.jpegs
        cache = ThumbnailCache((self.folder,), self.plan.picture, keep=self.folder, ready=ready)
        with show_stage("making the report"):
            return write_report(folder, build_content(self.study, cache, self.papers))
