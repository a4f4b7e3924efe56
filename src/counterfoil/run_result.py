"""The result of a run or an evaluation: drops, findings in sentences, report."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from counterfoil.errors import UserError
from counterfoil.progress import show_stage
from counterfoil.report.content import PaperScorer, build_content, score_no_paper
from counterfoil.report.headline import write_headline
from counterfoil.report.integrations import TRACKERS, log_to_tracker
from counterfoil.report.notebook_cell import render_result
from counterfoil.report.page import write_report
from counterfoil.run_tables import list_answers, pair_answers, to_arrow_table, to_frame
from counterfoil.statistics.answers import Answers
from counterfoil.store.folder_lock import refuse_other_run
from counterfoil.store.folder_mirror import describe_place, open_folder, push_folder
from counterfoil.store.mask_table import MASK_TABLE
from counterfoil.store.prediction_tables import locate_predictions
from counterfoil.store.result_cache import ResultCache
from counterfoil.store.run_checksums import record_checksums
from counterfoil.study.judgements import Judgement
from counterfoil.study.predictions import open_predictions
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
    def results(self) -> ResultCache:
        """The results of earlier runs; without a folder where none are used."""

    @property
    def empty_classes(self) -> tuple[str, ...]:
        """Classes of which no photo can be used."""

    @property
    def run(self) -> Run:
        """The record of the run."""

    def picture(self, variant: Variant) -> Picture | None:
        """A picture that the models saw, made again; None where that is no longer possible."""


@dataclass(frozen=True, repr=False)
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
        return Study((self.folder,), (self.plan.run,), open_predictions(files), self.skipped)

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

    def to_pandas(self) -> Any:
        """Every answer as a data frame of pandas: one row per model and picture.

        Returns:
            A `pandas.DataFrame` with the columns of the tables of predictions and the model before them.

        Raises:
            UserError: pandas is not installed.
        """
        return to_frame(list_answers(self.study))

    def to_arrow(self) -> Any:
        """Every answer as a table of pyarrow: one row per model and picture.

        Returns:
            A `pyarrow.Table` with the columns of `to_pandas`.
        """
        return to_arrow_table(list_answers(self.study))

    def photos(self) -> Any:
        """The answers before and after each edit, side by side: one row per photo, model and edited picture.

        Returns:
            A `pandas.DataFrame`: model, photo, label, attribute, edit, level, replicate, the answer, confidence and
            correctness on the original and on the edited picture, the outcome, and the variant's id.

        Raises:
            UserError: pandas is not installed.
        """
        return to_frame(pair_answers(self.study))

    def __repr__(self) -> str:
        """What was run, in a line, and the first finding."""
        counts = f"{len(self.answers.samples)} photos, {', '.join(self.plan.model_names)}"
        return (
            f"Result({counts}, {len(self.drops)} drops, {len(self.skipped)} skipped) in {describe_place(self.folder)}"
        )

    def _repr_html_(self) -> str:
        """The verdict, the chart and three failures, as a notebook shows them."""
        return render_result(build_content(self.study, self._thumbnails, self.papers))

    @property
    def _thumbnails(self) -> ThumbnailCache:
        ready = {} if self.thumbnails is None else self.thumbnails.jpegs
        return ThumbnailCache(
            (self.folder,), self.plan.picture, keep=self.folder, ready=ready, results=self.plan.results
        )

    def log(self, tracker: str) -> None:
        """Log the figures and the report to "mlflow" or "wandb"; raises `UserError` where it is not installed."""
        if tracker not in TRACKERS:
            raise UserError(f"expected a tracker, {' or '.join(TRACKERS)}, got '{tracker}'")
        content = build_content(self.study, self._thumbnails, self.papers)
        log_to_tracker(tracker, content, self.report(self.folder))

    def report(self, out: str | Path) -> Path:
        """Write report.html, drops.csv, summary.json, skipped.csv and the tables of answers into a folder.

        Raises `UserError` where the folder holds another run.
        """
        folder = open_folder(out)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"expected a folder to write into, got '{folder}': {error.strerror}") from error
        if folder.resolve() != self.folder.resolve():
            refuse_other_run(folder, self.folder)
            shutil.copytree(self.folder / "predictions", folder / "predictions", dirs_exist_ok=True)
            for name in ("variants.parquet", "run.json", MASK_TABLE):
                if (self.folder / name).is_file():
                    shutil.copy2(self.folder / name, folder)
            record_checksums(folder)
        with show_stage("making the report"):
            page = write_report(folder, build_content(self.study, self._thumbnails, self.papers))
        push_folder(folder)
        return page
