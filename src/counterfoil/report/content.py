"""The content of a report: the numbers of a study, collected once for the page, the tables and the exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from counterfoil.labels.label_space import match_label_space
from counterfoil.machine import return_memory
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.attribute_verdicts import AttributeVerdict
from counterfoil.statistics.contrasts import Contrast, rank_by_attribute
from counterfoil.statistics.drops import mean_drops
from counterfoil.statistics.interactions import Interaction
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.model_clusters import ModelClusters
from counterfoil.statistics.natural_ground import NaturalGround
from counterfoil.store.folder_mirror import describe_place
from counterfoil.study.background_answers import BackgroundAnswer
from counterfoil.study.confidence import Confidences, ModelPositionMap, measure_confidences, position_maps
from counterfoil.study.cut_outs import CutOut, choose_cut_outs
from counterfoil.study.examples import Example, choose_examples, choose_unpaired_examples
from counterfoil.study.failure_modes import FailureModes, find_failure_modes
from counterfoil.study.judgements import Judgement
from counterfoil.study.predictions import DETAIL_COLUMNS, REPORT_COLUMNS
from counterfoil.study.runs import DropKey, OverallAccuracy, Study
from counterfoil.study.thumbnails import ThumbnailCache
from counterfoil.study.unused_photos import UnusedPhotos, measure_unused
from counterfoil.types import Drop, Run, Skipped


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table by a paper's own rule, or of published numbers, as the page, summary.json and Markdown show it.

    `kind` "scored" is shown under "Scored as the paper does", "published" under "Published numbers beside yours".
    Every row has one cell per column: a text, a number (shown with `decimals`), or None where there is none.
    `own` holds the indices of the rows that are of this run: they are set off from published ones.
    """

    title: str
    rule: str  # in words: how the numbers were scored, or where they were published
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | None, ...], ...]
    footnotes: tuple[str, ...] = ()
    kind: Literal["scored", "published"] = "scored"
    own: frozenset[int] = frozenset()
    decimals: int = 1

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"expected {len(self.columns)} cells in every row of '{self.title}', got {wrong[0]}")


@dataclass(frozen=True, kw_only=True)
class ReportContent:
    """The content of the page, the tables and the summary."""

    run: Run  # of several runs: all of their models in one record
    drops: Sequence[Drop]
    photos: int  # that could be used
    variants: int  # pictures that every model saw, originals included
    judgements: Mapping[str, Judgement] = field(default_factory=dict)  # whether a model's results may be read
    unused: Sequence[UnusedPhotos] = ()  # by attribute
    masks: Sequence[CutOut] = ()  # some of the objects that were cut out, doubtful ones first
    doubtful_masks: int = 0
    interactions: Sequence[Interaction] = ()  # what two edits at once cost beyond the sum
    natural_ground: Sequence[NaturalGround] = ()  # what an edit costs on another photo's background
    background_answers: Sequence[BackgroundAnswer] = ()  # without the object, against guessing
    manifest: Mapping[str, Any] = field(default_factory=dict, repr=False)  # columns of variants.parquet
    folder: str = ""  # of the run, for commands that a reader may copy
    examples: Sequence[Example] = ()
    skipped: Sequence[Skipped] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # readable names by label
    unscored: Mapping[str, int] = field(default_factory=dict)  # number of answers that could not be scored, by model
    attribute_drops: Sequence[Drop] = ()  # all edits and levels of an attribute together
    letters: Mapping[tuple[str, str], str] = field(default_factory=dict)  # attribute and model to the tied group
    means: Mapping[str, Estimate] = field(default_factory=dict)  # mean of the drops by model, control left out
    outcomes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # number of answers by outcome, by model
    detectable_drops: Mapping[DropKey, float] = field(default_factory=dict)  # smallest that a row would likely detect
    verdicts: Sequence[AttributeVerdict] = ()  # of every model and attribute
    overall_accuracies: Sequence[OverallAccuracy] = ()  # on the unedited photos
    edited_accuracies: Sequence[GroupAccuracy] = ()  # on all edited pictures together
    model_clusters: ModelClusters | None = None  # where many models were judged
    attribute_differences: Sequence[Contrast] = ()  # every two models, all edits of an attribute together
    contrasts: Sequence[Contrast] = ()  # every two models, every edit and level
    runs: Sequence[Run] = ()  # where the report compares several
    failures: FailureModes = field(default_factory=FailureModes)
    top5_drops: Sequence[Drop] = ()  # right where the true label is among the five best; only exports need it
    papers: Sequence[PaperTable] = ()  # by a paper's own rule, and published numbers
    accuracies: Sequence[GroupAccuracy] = ()  # of a collection's pictures, with or without originals
    confidences: Confidences = field(default_factory=Confidences)  # empty where the models give none
    places: Sequence[ModelPositionMap] = ()  # accuracy by the object's position

    @property
    def judged_models(self) -> tuple[str, ...]:
        """The models that findings are about, in the order of the command line."""
        return tuple(model for model in self.run.models if self.judgements.get(model, Judgement()).is_judged)

    @property
    def is_mined(self) -> bool:
        """Whether models selected the pictures by failing on them: then accuracy matters, and drops are high."""
        return bool(self.accuracies and self.run.surrogates)

    @property
    def has_drops(self) -> bool:
        """Whether any picture can be compared with its original."""
        return any(row.n for row in self.drops)


MANY_MODELS = 7  # from so many judged models on, the report ranks and clusters them
PaperScorer: TypeAlias = Callable[[Study], Sequence[PaperTable]]


def score_no_paper(study: Study) -> Sequence[PaperTable]:
    """Return no tables: for pictures that do not come from a known paper."""
    return ()


def build_content(
    study: Study, thumbnails: ThumbnailCache, score_papers: PaperScorer = score_no_paper
) -> ReportContent:
    """Build the content; `score_papers` gives the tables by the rules of the pictures' paper."""
    means = _mean_drops(study)  # before anything else is in memory: the resamples take 8 MB
    return_memory()  # that reading the answers took for a moment
    if not study.has_many_models:
        for table in study.predictions.values():  # all columns that the page needs, in one read of the file
            table.coded_columns(REPORT_COLUMNS if study.run.collection else DETAIL_COLUMNS)
    of_pictures = study.manifest.texts("sample_id").indices  # the photo of each picture
    first = next(study.detail_groups)  # curves and maps are drawn of the first few models only
    return_memory()
    without_originals = bool(study.accuracies) and not any(row.n for row in study.drops)
    choose = choose_unpaired_examples if without_originals else choose_examples
    has_examples = len(of_pictures) and study.has_pictures and (without_originals or study.has_originals)
    return ReportContent(
        run=study.run,
        drops=study.drops,
        photos=len(np.unique(of_pictures)),
        variants=len(of_pictures),
        judgements=study.judgements if len(of_pictures) else {},
        unused=measure_unused(study) if len(of_pictures) else (),
        doubtful_masks=len(study.doubtful_masks),
        masks=choose_cut_outs(study, thumbnails.cut_out) if len(of_pictures) else (),
        interactions=study.interactions,
        natural_ground=study.natural_ground,
        background_answers=study.background_answers,
        manifest=study.manifest,
        folder=describe_place(study.folders[0]),
        examples=list(choose(study, thumbnails.read)) if has_examples else [],
        skipped=study.skipped,
        names=_label_names(study),
        unscored=study.answers.unscored,
        attribute_drops=study.attribute_drops,
        outcomes={model: table.outcomes for model, table in study.predictions.items()},
        detectable_drops=study.detectable_drops,
        means=means,
        letters=_tied_groups(study),
        verdicts=study.verdicts,
        overall_accuracies=study.overall_accuracies if len(of_pictures) else (),
        edited_accuracies=study.edited_accuracies,
        model_clusters=_cluster_models(study),
        attribute_differences=study.attribute_differences,
        contrasts=study.contrasts,
        failures=find_failure_modes(study) if study.has_originals else FailureModes(),
        confidences=measure_confidences(first),
        places=position_maps(first),
        runs=study.runs if len(study.runs) > 1 else (),
        accuracies=study.accuracies,
        papers=score_papers(study) if len(of_pictures) else (),
    )


def _label_names(study: Study) -> dict[str, str]:
    """Readable names of the labels that occur."""
    labels = sorted({label for table in study.predictions.values() for label in table.labels})
    space = match_label_space(labels)
    return {label: space.name_of(label) for label in labels}


def _cluster_models(study: Study) -> ModelClusters | None:
    """Clusters of the judged models, where the report ranks them."""
    if not len(study.answers.samples):
        return None
    judged = sum(judgement.is_judged for judgement in study.judgements.values())
    return study.model_clusters if judged >= MANY_MODELS else None


def _mean_drops(study: Study) -> dict[str, Estimate]:
    """The mean of each model's drops; its interval is resampled with a fixed seed, so the page is reproducible."""
    if not study.has_originals:
        return {}
    return {row.model: row.drop for row in mean_drops(study.answers, np.random.default_rng(0)) if row.conditions}


def _tied_groups(study: Study) -> dict[tuple[str, str], str]:
    """Letters shared by models whose drops under an attribute do not differ."""
    if len(study.files) < 2:
        return {}
    return {
        (attribute, row.name): row.letters
        for attribute, ranked in rank_by_attribute(study.checked_answers).items()
        for row in ranked
    }
