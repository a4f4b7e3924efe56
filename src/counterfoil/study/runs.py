"""A study: one or several finished runs over the same pictures, read back from their folders."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.object_mask import MaskVerdict
from counterfoil.statistics.accuracy import GroupAccuracy, edited_accuracies, group_accuracies
from counterfoil.statistics.answers import REFERENCES, Answers, Details, pool_by_attribute, pool_conditions
from counterfoil.statistics.attribute_verdicts import AttributeVerdict, judge_attributes
from counterfoil.statistics.contrasts import Contrast, contrast_accuracies, contrast_attribute_drops, contrast_drops
from counterfoil.statistics.drops import measure_attribute_drops, measure_drops
from counterfoil.statistics.interactions import Interaction, measure_interactions
from counterfoil.statistics.intervals import RATE, Estimate, estimate
from counterfoil.statistics.model_clusters import ModelClusters, cluster_models
from counterfoil.statistics.natural_ground import NaturalGround, measure_natural_ground, prefer_scene
from counterfoil.statistics.photo_use import AttributeUse, measure_use
from counterfoil.statistics.power import detectable_drops
from counterfoil.store.mask_table import read_masks
from counterfoil.store.parquet import has_text
from counterfoil.store.prediction_tables import (
    locate_predictions,
    read_centres,
    read_donor_labels,
    read_run,
    read_skipped,
)
from counterfoil.store.table_columns import TableColumns
from counterfoil.study.background_answers import BackgroundAnswer, measure_background_answers
from counterfoil.study.comparability import check_comparable
from counterfoil.study.judgements import SETUP_COLUMNS, Judgement, UneditedAnswers, judge_model, judge_unpaired
from counterfoil.study.predictions import (
    ANSWER_COLUMNS,
    MOST_MODELS_AT_ONCE,
    SCORE_COLUMNS,
    PictureFacts,
    Predictions,
    build_details,
    collect_answers,
    open_predictions,
)
from counterfoil.types import TOOL_CHECKS, Attribute, Drop, EditLevel, Run, SanityRecord, Skipped

DropKey: TypeAlias = tuple[str, str, str]  # model, edit and level: a row of the table of drops
Value = TypeVar("Value")

MOST_PHOTOS_FOR_POWER = 500  # with more, exact power is slow, and the intervals tell as much
MAPPED_ATTRIBUTES: frozenset[Attribute] = frozenset({"position", "original"})  # whose object centres are read
_UNKNOWN = Estimate(math.nan, math.nan, math.nan, 0)
_SHARED_DIGEST = "python:"  # the digest is of the whole file, which may hold several models


class OverallAccuracy(NamedTuple):
    """A model's accuracy in percent with its 95 % interval: on the unedited photos, or on a collection's pictures."""

    model: str
    n: int
    accuracy: float
    ci_low: float
    ci_high: float
    subject: str = "accuracy on the unedited photos"


@dataclass(frozen=True)
class Study:
    """Answers of several models to the same pictures, from one or several runs; each table is read once."""

    folders: tuple[Path, ...]
    runs: tuple[Run, ...]
    predictions: Mapping[str, Predictions]  # of each model, in the order of the table
    skipped: tuple[Skipped, ...]

    @property
    def run(self) -> Run:
        """The runs as one record: the models of all."""
        return merge_runs(self.runs)

    @property
    def files(self) -> dict[str, Path]:
        """The file of each model's answers."""
        return {model: table.path for model, table in self.predictions.items()}

    @cached_property
    def main_edits(self) -> dict[Attribute, EditLevel]:
        """The edit and level that stands for each attribute; where a run names none, its first edit's last level.

        Where the same change in another scene could use more photos, that stands for the attribute.
        """
        main: dict[Attribute, EditLevel] = {}
        for row in self.answers.conditions:
            named = self.run.main_edits.get(row.attribute)
            first = main.get(row.attribute, EditLevel(row.edit, row.level))
            main[row.attribute] = named or (first if first.edit != row.edit else EditLevel(row.edit, row.level))
        return {attribute: prefer_scene(self.answers, own) for attribute, own in main.items()}

    @cached_property
    def manifest(self) -> TableColumns:
        """The columns of `variants.parquet`, doubled pictures left out; of several runs the first: all are alike."""
        path = self.folders[0] / "variants.parquet"
        words, codes = TableColumns(path).texts("attribute")
        ordinary = np.array([word not in TOOL_CHECKS for word in words], bool)[codes]
        return TableColumns(path, None if ordinary.all() else ordinary)

    @property
    def masks(self) -> list[MaskVerdict]:
        """The verdict on each photo's mask, doubtful ones first; empty where a run has not recorded them."""
        return sorted(read_masks(self.folders[0]), key=lambda verdict: (not verdict.is_doubtful, verdict.sample))

    @cached_property
    def doubtful_masks(self) -> list[MaskVerdict]:
        """The masks that are doubtful, each with its reasons; `run.doubtful_masks` says whether they were used."""
        doubtful = read_masks(self.folders[0], lambda row: row.get("verdict") == "doubtful")
        return sorted(doubtful, key=lambda verdict: verdict.sample)

    def masks_of(self, photos: Collection[str]) -> dict[str, MaskVerdict]:
        """The verdicts on the masks of these photos, where they are recorded."""
        return {
            verdict.sample: verdict for verdict in read_masks(self.folders[0], lambda row: row.get("sample") in photos)
        }

    @cached_property
    def answers(self) -> Answers:
        """Every answer of every model, in columns; those to doubled pictures, which measure the tool, are left out."""
        tables = ((model, table.coded_columns(ANSWER_COLUMNS)) for model, table in self.predictions.items())
        return replace(collect_answers(tables), references=dict(self.runs[0].references))

    @cached_property
    def checked_answers(self) -> Answers:
        """The answers with those to tool checks: `Condition("second-fill", "size", "0.05")` doubles the row of size."""
        if not any(table.has_checks for table in self.predictions.values()):
            return self.answers
        tables = ((model, table.all_columns(ANSWER_COLUMNS)) for model, table in self.predictions.items())
        return replace(collect_answers(tables), references=dict(self.runs[0].references))

    @cached_property
    def photo_use(self) -> list[AttributeUse]:
        """How many photos each attribute could use, and each model's accuracy on the unedited photos it could not."""
        return measure_use(self.answers) if self.has_originals else []

    @cached_property
    def natural_ground(self) -> list[NaturalGround]:
        """What edits cost on another photo's background, against that background alone."""
        return measure_natural_ground(self.answers) if self.has_originals else []

    @cached_property
    def details(self) -> Details:
        """The answers with their labels and confidences, the donors' classes, and the objects' centres.

        They take several times the memory of `answers`: where there are many models, use `detail_groups`.
        """
        tables = {model: table.coded_columns(SCORE_COLUMNS) for model, table in self.predictions.items()}
        return build_details(tables, self.answers, self._picture_facts())

    @property
    def detail_groups(self) -> Iterator[Details]:
        """The details of a few models at a time, in the order of the table; of few models, all at once."""
        if not self.has_many_models:
            yield self.details
            return
        models = list(self.predictions)
        for start in range(0, len(models), MOST_MODELS_AT_ONCE):
            own = {model: self.predictions[model] for model in models[start : start + MOST_MODELS_AT_ONCE]}
            group = replace(self, predictions=own)
            vars(group)["manifest"] = self.manifest  # read once
            yield group.details

    @property
    def has_many_models(self) -> bool:
        """Whether there are more models than are read at once."""
        return len(self.predictions) > MOST_MODELS_AT_ONCE

    @cached_property
    def top5_correct(self) -> NDArray[np.bool_]:
        """Whether the true label is among the five best, row by row as in `answers`."""
        return np.concatenate([table.top5_correct for table in self.predictions.values()])

    @cached_property
    def has_pictures(self) -> bool:
        """Whether the models were shown pictures by this program; imported answers come without."""
        return has_text(self.folders[0] / "variants.parquet", "sha256")

    @property
    def has_originals(self) -> bool:
        """Whether there are unedited photos to compare with."""
        return bool(self.answers.conditions_of({"original"}).any())

    @cached_property
    def drops(self) -> list[Drop]:
        """The drop of each model under each edit; empty where there are no originals."""
        return measure_drops(self.checked_answers) if self.has_originals else []

    @cached_property
    def attribute_drops(self) -> list[Drop]:
        """The drop of each model for each attribute, all edits and levels together."""
        return measure_attribute_drops(self.checked_answers) if self.has_originals else []

    @cached_property
    def verdicts(self) -> list[AttributeVerdict]:
        """Per model and attribute, the row that it is judged by, whether it costs, and what it ties with."""
        return judge_attributes(self.answers, self.drops, self.main_edits, self.interactions)

    @cached_property
    def interactions(self) -> list[Interaction]:
        """Per model, what two edits at once cost beyond the sum of what each costs alone."""
        return measure_interactions(self.checked_answers) if self.has_originals else []

    @cached_property
    def top5_drops(self) -> list[Drop]:
        """The table of drops by top-5 accuracy."""
        return measure_drops(replace(self.answers, correct=self.top5_correct)) if self.has_originals else []

    @cached_property
    def detectable_drops(self) -> dict[DropKey, float]:
        """The smallest drop that each row would likely have detected; empty where there are many photos."""
        if len(self.answers.samples) > MOST_PHOTOS_FOR_POWER or not self.has_originals:
            return {}
        return {
            (row.model, row.condition.edit, row.condition.level): row.drop
            for row in detectable_drops(self.answers)
            if not math.isnan(row.drop)
        }

    @cached_property
    def accuracies(self) -> list[GroupAccuracy]:
        """The accuracy of each model on a collection's pictures, overall and by kind."""
        if not self.run.collection or not len(self.answers.samples):
            return []
        rows = group_accuracies(self.answers, self.top5_correct)
        if {condition.attribute for condition in self.answers.conditions} == {"original"}:
            # Only unedited pictures: their own rows would repeat those of all pictures.
            rows = [row for row in rows if row.overall]
        ranked = {model for model, table in self.predictions.items() if table.ranks_five}
        return [row if row.model in ranked else row._replace(top5=_UNKNOWN) for row in rows]

    @cached_property
    def overall_accuracies(self) -> list[OverallAccuracy]:
        """Every model's accuracy on the unedited photos, in percent; where there are none, on all pictures."""
        if self.accuracies and not self.has_originals:
            return [
                OverallAccuracy(row.model, row.photos, *row.top1[:3], "accuracy on all pictures")
                for row in self.accuracies
                if row.overall
            ]
        estimates = [estimate(rates, RATE).scaled(100) for rates in self.answers.original_rates]
        return [
            OverallAccuracy(model, row.n, row.value, row.ci_low, row.ci_high)
            for model, row in zip(self.answers.models, estimates, strict=True)
        ]

    @cached_property
    def background_answers(self) -> list[BackgroundAnswer]:
        """Per model, its accuracy without the object against guessing: right from the background alone or not."""
        if not self.answers.conditions_of({"presence"}).any():
            return []
        classes = {model: record.classes for model, record in self.run.sanity.items()}
        return [row for details in self.detail_groups for row in measure_background_answers(details, classes)]

    @cached_property
    def judgements(self) -> dict[str, Judgement]:
        """For each model whether its results may be read, and if not, why and what to do."""
        sanity = self.run.sanity
        if not self.has_originals:
            return {
                model: judge_unpaired(table.coded_columns(("outcome",))["outcome"])
                for model, table in self.predictions.items()
            }
        edited = bool((~self.answers.conditions_of({"original"})).any())
        return {
            model: judge_model(
                UneditedAnswers.of(table.coded_columns(SETUP_COLUMNS)), sanity.get(model, SanityRecord()), edited=edited
            )
            for model, table in self.predictions.items()
        }

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """The difference in drop of every two models under each edit and level; corrected within each pair."""
        return contrast_drops(self.checked_answers, self._pairs) if self.has_originals else []

    @cached_property
    def attribute_differences(self) -> list[Contrast]:
        """The difference in drop of every two models by attribute, all edits together; corrected within each pair."""
        return contrast_attribute_drops(self.checked_answers, self._pairs) if self.has_originals and self._pairs else []

    @cached_property
    def edited_accuracies(self) -> list[GroupAccuracy]:
        """Every model's accuracy on all edited pictures together; models that share a letter do not differ."""
        return edited_accuracies(self.answers, self.top5_correct) if len(self.answers.samples) else []

    @cached_property
    def model_clusters(self) -> ModelClusters:
        """Models that fail on the same pictures; those that are not judged are left out."""
        return cluster_models(self.answers, [model for model in self.predictions if self.judgements[model].is_judged])

    @cached_property
    def attribute_contrasts(self) -> list[Contrast]:
        """The difference in accuracy of every two models on each attribute's pictures, all edits together."""
        pairs = self._pairs
        rows = contrast_accuracies(pool_by_attribute(self.answers), pairs) if pairs else []
        return [row for row in rows if row.condition.attribute not in REFERENCES]

    @cached_property
    def overall_contrasts(self) -> list[Contrast]:
        """The difference in accuracy of every two models on all edited pictures together, one row per pair."""
        pairs = self._pairs
        return contrast_accuracies(pool_conditions(self.answers), pairs) if pairs else []

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        return [] if self.has_many_models else list(itertools.combinations(self.predictions, 2))

    def select_model(self, model: str | None) -> Study:
        """Return the study with one model, or with all where none is named."""
        if model is None:
            return self
        if model not in self.predictions:
            raise UserError(f"expected one of the models {', '.join(self.predictions)}, got '{model}'")
        return replace(self, predictions={model: self.predictions[model]})

    def _picture_facts(self) -> PictureFacts:
        """The donors' classes and the objects' centres in the picture of each answer."""
        donors, centres = read_donor_labels(self.manifest), read_centres(self.manifest, MAPPED_ATTRIBUTES)
        if donors is None and centres is None:
            return PictureFacts.unknown(len(self.answers.sample))
        places = np.concatenate([table.locate_in(self.manifest) for table in self.predictions.values()])
        return PictureFacts.of(places, donors, centres)


def open_runs(folders: Sequence[str | Path], names: Sequence[str] = ()) -> Study:
    """Read runs back; several must be over the same pictures, and `names`, one per run, tell equal models apart."""
    if names and len(names) != len(folders):
        raise UserError(f"expected one name per run, got {len(names)} names for {len(folders)} runs")
    paths = tuple(Path(folder) for folder in folders)
    records = [_read(path, name) for path, name in zip(paths, names or [""] * len(paths), strict=True)]
    check_comparable([(str(path), run) for path, (run, _) in zip(paths, records, strict=True)])
    files = _first_of_each([own for _, own in records])
    predictions = open_predictions(files)
    skipped = dict.fromkeys(row for path in paths for row in read_skipped(path))
    return Study(paths, tuple(run for run, _ in records), predictions, tuple(skipped))


def merge_runs(runs: Sequence[Run]) -> Run:
    """Merge several runs over the same pictures into one record; where their environments differ, it has both."""
    names = dict.fromkeys(name for run in runs for name in run.environment)
    return replace(
        runs[0],
        command="\n".join(dict.fromkeys(run.command for run in runs)),
        models=tuple(dict.fromkeys(model for run in runs for model in run.models)),
        model_digests=_first_of_each([run.model_digests for run in runs]),
        preprocessing=_first_of_each([run.preprocessing for run in runs]),
        sanity=_first_of_each([run.sanity for run in runs]),
        environment={name: " | ".join(dict.fromkeys(run.environment.get(name, "–") for run in runs)) for name in names},
        surrogates=_first_of_each([run.surrogates for run in runs]),
        notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
    )


def find_surrogates(run: Run) -> tuple[str, ...]:
    """Return the models of a run that selected its pictures, matched by name or by weights."""
    return tuple(model for model in run.models if _is_surrogate(model, run))


def _is_surrogate(model: str, run: Run) -> bool:
    digest = run.model_digests.get(model, "")
    for surrogate, weights in run.surrogates.items():
        # The same address; the part in brackets says only which columns competed.
        same_name = model.split(" (")[0] == surrogate.split(" (")[0]
        share_a_file = model.startswith(_SHARED_DIGEST) and surrogate.startswith(_SHARED_DIGEST)
        if same_name or (digest != "" and digest == weights and not share_a_file):
            return True
    return False


def _read(folder: Path, name: str) -> tuple[Run, dict[str, Path]]:
    """The record and the tables of one run, its models under the given name."""
    run = read_run(folder)
    if not run.models:
        raise UserError(f"expected the answers of a model in '{folder}', which asked none")
    new_name = {model: _rename(model, name, len(run.models)) for model in run.models}
    files = {new_name[model]: path for model, path in locate_predictions(folder, run.models).items()}
    missing = [path for path in files.values() if not path.is_file()]
    if missing:
        raise UserError(f"expected the answers of every model of the run, but {missing[0]} is not there")
    return replace(
        run,
        models=tuple(new_name.values()),
        model_digests={new_name[model]: digest for model, digest in run.model_digests.items()},
        preprocessing={new_name[model]: applied for model, applied in run.preprocessing.items()},
        sanity={new_name[model]: record for model, record in run.sanity.items()},
    ), files


def _rename(model: str, name: str, models: int) -> str:
    if not name:
        return model
    return name if models == 1 else f"{name}: {model}"


def _first_of_each(mappings: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """All entries; of equal names the first run's, which `check_comparable` has found to be the same."""
    entries: dict[str, Value] = {}
    for mapping in mappings:
        entries |= {name: value for name, value in mapping.items() if name not in entries}
    return entries
