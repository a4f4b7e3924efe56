"""The loop of `repair`, from photos to a better model and the proof. Read this file first.

    parts -> candidates -> pictures and answers -> fit, choose -> judge -> model.onnx, repair.json, report.html

Three parts of the photos take turns: a remedy is fitted on one, its settings and the method are chosen on the second,
and the third is judged. Answers to the pictures of each photo are files, so a repair that was killed goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from counterfoil.edits.registry import name_of
from counterfoil.errors import UserError, expect_path
from counterfoil.labels.label_space import list_class_names
from counterfoil.models.model_objects import ModelHints, Transform, as_model, name_object
from counterfoil.models.model_options import ModelOptions
from counterfoil.progress import show_stage
from counterfoil.recipes.edit_recipe import Recipe
from counterfoil.remedies.candidates import (
    BEFORE,
    RefusedRemedy,
    RemedyCandidate,
    build_unfitted,
    choose_candidates,
    most_chosen,
    select_methods,
    write_candidate,
)
from counterfoil.remedies.effects import (
    Effect,
    RateTable,
    compare_rates,
    edited_change,
    measure_effects,
    measure_loss,
    tabulate,
    unedited_change,
    unedited_loss,
)
from counterfoil.remedies.last_layer import open_features
from counterfoil.remedies.layer_folds import LayerFitter, LayerFolds, fit_folds
from counterfoil.remedies.mined_pictures import MinedPicture, MinedPictures, MinedReader
from counterfoil.remedies.photo_parts import FOLDS
from counterfoil.remedies.picture_answers import AskedModels, Asker, PhotoAnswers, PictureStage, render_photo
from counterfoil.remedies.repair_config import (
    FITTED,
    FITTING_RECIPE,
    LAST_LAYER,
    RECIPE,
    TRAIN,
    RepairConfig,
    RepairPlan,
    open_run_photos,
    prepare_repair,
)
from counterfoil.remedies.repair_page import write_repair_page
from counterfoil.remedies.repair_result import CandidateRow, RepairResult, record_result
from counterfoil.remedies.repair_verdict import LossCheck, RepairVerdict, combine_verdicts, decide_repair, find_guessing
from counterfoil.remedies.trained_models import train_models
from counterfoil.run_config import RunPlan
from counterfoil.run_result import Result
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.sources.source_loaders import as_source, open_source
from counterfoil.store.files import is_half_written, write_atomically
from counterfoil.store.folder_lock import hold_folder
from counterfoil.store.sealed_record import read_sealed, write_sealed
from counterfoil.torch import read_picture
from counterfoil.types import Model, Source


class OtherRates(NamedTuple):
    """Of every photo of another class, the share of right answers."""

    before: NDArray[np.float64]
    after: NDArray[np.float64]


_OTHERS = ("run.json", "variants.parquet")  # files of a run or a workspace
_TIMED = 12  # pictures on which the milliseconds are measured
Answers = list[list[PhotoAnswers]]  # of each part


def repair(
    run: Result | str | Path | None = None,
    *,
    model: Any = None,
    out: str | Path,
    method: str | None = None,
    settings: Mapping[str, Any] | None = None,
    images: Any = None,
    masks: str | Path | None = None,
    pictures: str | Path | None = None,
    elsewhere: Any = None,
    recipe: str | Recipe = RECIPE,
    fitting_recipe: str | Recipe = FITTING_RECIPE,
    allow_loss: float = 1.0,
    parts: str | Path | None = None,
    seed: int = 0,
    limit: int | None = None,
    workers: int | None = None,
    options: ModelOptions | None = None,
    labels: Sequence[str] | None = None,
    transform: Transform | None = None,
) -> RepairResult:
    """Make a model that edits break less, and judge it on photos that it has not seen.

    Args:
        run: A result or the folder of a run, whose photos, masks and model are used; of a run over objects, give
            `images` and `model` again.
        model: Address of the model, or a torch module; needed where the run has several, or where there is no run.
        out: Folder for model.onnx, model.json, repair.json and report.html. A repair that was killed goes on.
        method: "zoom", "crops", "last-layer", "train" or a preprocessing such as "ten-crop"; without it all that
            apply are tried on photos that are not judged, and the best is judged.
        settings: Settings of the method, such as {"epochs": 10, "layers": 2} of "train".
        images: Other photos than the run's, as `cf.run` takes them.
        masks: Parallel folder of masks for `images`.
        pictures: A workspace or a benchmark whose pictures "last-layer" and "train" are fitted on too.
        elsewhere: Photos of other classes, as `cf.run` takes them, on which accuracy must not fall; the demo photos
            where not given.
        recipe: The edits that are judged: a recipe by name, or a YAML file.
        fitting_recipe: The edits that "last-layer" and "train" are fitted on, given in the same way.
        allow_loss: Points of accuracy that unedited photos and photos of other classes may lose.
        parts: A split of one's own: a JSON file with `parts`, three lists of photo ids, such as repair.json.
        seed: Another seed draws other edits and another split.
        limit: Use at most this many photos, taken from the classes in turn.
        workers: Threads that work on photos; one per core where not given.
        options: How the model is loaded.
        labels: The name of each column of a torch module, and of the numbers in `images`.
        transform: What a torch module's pictures are prepared by.

    Returns:
        The verdict, the effects by attribute, and where the model was written.

    Raises:
        UserError: The input cannot be used; one line says what was expected, what was given and what to do.

    Examples:
        >>> result = repair("out", method="zoom", out="repaired")  # doctest: +SKIP
        >>> result.verdict.outcome  # doctest: +SKIP
        'repaired'
    """
    names = list_class_names(labels)
    photos = images if images is None or isinstance(images, str | Path) else as_source(images, masks, names)
    if model is not None and not isinstance(model, str):
        hints = ModelHints(labels=names, transform=transform, options=options)
        model = as_model(model, name_object(model), hints)
    source, address = choose_photos(run.folder if isinstance(run, Result) else run, model, photos, masks)
    others = DemoSource() if elsewhere is None else as_source(elsewhere, None, names)
    config = RepairConfig(
        source=source, model=address, method=method, recipe=recipe, allow_loss=allow_loss, seed=seed, limit=limit,
        workers=workers, options=ModelOptions() if options is None else options, elsewhere=others,
        pictures=None if pictures is None else str(pictures), fitting_recipe=fitting_recipe,
        parts=None if parts is None else expect_path(parts, "the file of a split"),
        command=f"counterfoil.repair(run={str(run)!r})",
    )  # fmt: skip
    chosen = config.with_settings({} if settings is None else settings)
    return execute_repair(chosen, expect_path(out, "the folder to write"))


def choose_photos(
    run: str | Path | None, model: str | Model | None, images: Source | str | Path | None, masks: str | Path | None
) -> tuple[Source, str | Model]:
    """The photos and the model, or its address: those of the run unless others are given."""
    if run is None and (images is None or model is None):
        raise UserError("expected the folder of a run, or photos (--images) and a model (--model), got neither")
    source, models = (
        open_run_photos(expect_path(run, "the folder of a run"), wanted=images is None)
        if run is not None
        else (None, ())
    )
    if images is not None:
        source = open_source(images, masks) if isinstance(images, str | Path) else images
    assert source is not None
    if model is None:
        if len(models) != 1:
            raise UserError(f"expected --model, one of the run's: {', '.join(models)}")
        model = models[0]
    return source, model


def execute_repair(config: RepairConfig, out: Path) -> RepairResult:
    """A repair from start to end."""
    plan = prepare_repair(config)
    methods, refused = select_methods(config, plan.network)
    with _claim(out, plan):
        work = RepairWork(plan, out / "work")
        result = work.judge(work.try_methods(methods), refused)
        write_atomically(out / "repair.json", json.dumps(record_result(result), indent=1, allow_nan=False) + "\n")
        with show_stage("making the report"):
            write_repair_page(result)
    return result


@contextmanager
def _claim(out: Path, plan: RepairPlan) -> Iterator[None]:
    """Hold the folder for this repair; a folder that holds another one is refused."""
    path = out / "work" / "plan.json"
    if not path.is_file() and any((out / name).exists() for name in _OTHERS):
        raise UserError(f"expected a folder of its own for a repair, got '{out}', which holds a run or a workspace")
    record = json.loads(json.dumps(plan.record()))
    with hold_folder(out):
        earlier = read_sealed(path) if path.is_file() else record
        different = [name.replace("_", " ") for name in record if earlier.get(name) != record[name]]
        if different:
            raise UserError(
                f"expected an empty folder or this repair's own in {out}, but it holds one with other"
                f" {' and '.join(different)}; choose another --out or remove the folder"
            )
        write_sealed(path, record)
        for half in (out / "work").rglob(".*"):  # of a repair that was killed while it wrote
            if is_half_written(half.name):
                half.unlink()
        yield


@dataclass(frozen=True, kw_only=True)
class TriedRemedies:
    """The candidates, and what all of them answered to the judged pictures."""

    candidates: tuple[RemedyCandidate, ...]
    judged: Answers  # of each part, by candidates that did not see it
    left_out: Mapping[str, Mapping[str, Answers]] = field(default_factory=dict)  # by method and attribute left out


@dataclass(frozen=True)
class RepairWork:
    """The pictures, answers and candidates of one repair."""

    plan: RepairPlan
    folder: Path  # of files from which a killed repair goes on

    @cached_property
    def mined(self) -> MinedPictures:
        """The finished pictures that are fitted on too; none where none were given."""
        plan = self.plan
        if plan.config.pictures is None:
            return MinedPictures()
        return MinedReader(
            address=plan.config.pictures, parts=plan.parts, hashed=plan.hashed, space=plan.judged.space,
            folder=self.folder / "mined",
        ).read()  # fmt: skip

    def try_methods(self, methods: Sequence[str]) -> TriedRemedies:
        """Build the remedies that learn nothing, train, show all pictures to the models, then fit the last layer."""
        networks = {
            name: build_unfitted(name, self.plan.network, self.plan.config) for name in methods if name not in FITTED
        }
        models = {name: write_candidate(self.folder / "candidates", name, made) for name, made in networks.items()}
        features = open_features(self.plan.network) if LAST_LAYER in methods else None
        trained = train_models(self.plan, self.folder, self.mined) if TRAIN in methods else None
        asked = [self._asked({BEFORE: self.plan.model, **models}, features)] * len(FOLDS)
        if trained is not None:
            asked = [trained.add_to(row, part) for part, row in enumerate(asked)]
        judged = self._stage("judged", "editing photos and asking models", self.plan.judged_plans, asked)
        candidates = [
            RemedyCandidate(name=name, final=networks[name], model=model, folds=(model,) * len(FOLDS),
                      choosing=tuple(judged[fold.choosing] for fold in FOLDS))
            for name, model in models.items()
        ]  # fmt: skip
        candidates += [trained.candidate(judged)] if trained is not None else []
        left_out = {TRAIN: trained.left_out(judged)} if trained is not None else {}
        if features is None:
            return TriedRemedies(candidates=tuple(candidates), judged=judged, left_out=left_out)
        fits = self._fit_layer(judged, features)
        layer = self._layer_candidate(fits)
        left_out |= {LAST_LAYER: fits.left_out}
        return TriedRemedies(candidates=(*candidates, layer), judged=fits.judged, left_out=left_out)

    def _asked(self, models: Mapping[str, Model], features: Asker | None = None) -> AskedModels:
        identities = {name: model.identity for name, model in models.items()}
        return AskedModels(models=dict(models), identities=identities, features=features)

    def _stage(self, name: str, words: str, plans: Sequence[RunPlan], asked: Sequence[AskedModels]) -> Answers:
        return PictureStage(
            name=name, stage=words, plans=plans, asked=asked, columns=self.plan.columns,
            folder=self.folder, workers=self.plan.config.workers,
        ).run()  # fmt: skip

    def _fit_layer(self, judged: Answers, features: Asker) -> LayerFolds:
        # the old model's identity stands for the features: both change with the weights and the preprocessing
        asked = AskedModels(models={}, identities={BEFORE: self.plan.model.identity}, features=features)
        fitting = self._stage("fitting", "editing photos to fit on", self.plan.fitting_plans, [asked] * len(FOLDS))
        mined = [(picture.parts, self._mined_features(picture, features)) for picture in self.mined.pictures]
        config, columns = self.plan.config, self.plan.columns.photos
        fitter = LayerFitter(self.plan.network, columns, config.last_layer, fitting, mined)
        # one thread: the matrices are small, and threads of other work would only wait for one another
        with show_stage("fitting the last layer"), threadpool_limits(limits=1, user_api="blas"):
            return fit_folds(fitter, judged)

    def _mined_features(self, picture: MinedPicture, features: Asker) -> PhotoAnswers:
        return PhotoAnswers(
            sample=picture.name, label=self.plan.columns.column(picture.label), conditions=(picture.condition,),
            replicates=(0,), answers={}, among={}, features=features([read_picture(picture.file)]),
        )  # fmt: skip

    def _layer_candidate(self, fits: LayerFolds) -> RemedyCandidate:
        folder = self.folder.parent / "folds"
        models = [
            write_candidate(folder, f"{LAST_LAYER}-{place + 1}", network) for place, network in enumerate(fits.folds)
        ]
        return RemedyCandidate(
            name=LAST_LAYER, final=fits.final, folds=tuple(models), choosing=tuple(fits.choosing),
            model=write_candidate(self.folder / "candidates", LAST_LAYER, fits.final),
            settings={"folds": [{"strength": row.strength, "share": row.share} for row in fits.chosen]},
            fitted_edits=_fitted_edits(self.plan),
        )  # fmt: skip

    def judge(self, tried: TriedRemedies, refused: Sequence[RefusedRemedy]) -> RepairResult:
        """Choose on the choosing parts, judge what was chosen, and write the model."""
        config, candidates = self.plan.config, tried.candidates
        chosen = choose_candidates(candidates, config.allow_loss)
        written = most_chosen(chosen)
        written.final.write(self.folder.parent / "model.onnx")
        photos = [photo for part in tried.judged for photo in part if len(photo.conditions)]
        table = tabulate(photos, BEFORE, dict.fromkeys((photo.sample for photo in photos), written.name))
        others = self._measure_others(candidates)
        losses = self._check_losses(table, others[written.name])
        verdict = self._decide(table, others[written.name])
        names = {photo.sample: chosen[part].name for part, photos in enumerate(tried.judged) for photo in photos}
        if len(set(names.values())) > 1:
            choice = self._decide(tabulate(photos, BEFORE, names), others[written.name])
            verdict = combine_verdicts(verdict, choice, [row.name for row in chosen], written.name)
        milliseconds = self._measure_time({BEFORE: self.plan.model, **{row.name: row.model for row in candidates}})
        return RepairResult(
            plan=self.plan, folder=self.folder.parent, method=written.name, chosen=tuple(row.name for row in chosen),
            verdict=verdict, candidates=candidates, refused=tuple(refused),
            rows=tuple(_row(row, photos, others[row.name], milliseconds[row.name]) for row in candidates),
            milliseconds_before=milliseconds[BEFORE], table=table, effects=tuple(measure_effects(table)),
            losses=losses,
            left_out=_judge_left_out(tried, written.name), fitted_on=written.fitted_edits,
            pictures=self.mined.record() if config.pictures is not None else {},
            skipped=sum(len(photo.skipped) for part in tried.judged for photo in part) + len(self.plan.parts.skipped),
        )  # fmt: skip

    def _decide(self, table: RateTable, others: OtherRates | None) -> RepairVerdict:
        fit = (edited_change(table, among=False), unedited_change(table, among=False))
        attributes = [row for row in measure_effects(table) if not row.edit]
        guessing = find_guessing(table, len(self.plan.columns.photos))
        return guessing or decide_repair(attributes, fit, self._check_losses(table, others))

    def _measure_others(self, candidates: Sequence[RemedyCandidate]) -> dict[str, OtherRates | None]:
        """The shares of right answers to photos of other classes, before and after; None where there is no photo."""
        if not self.plan.others:
            return dict.fromkeys((row.name for row in candidates), None)
        models = {BEFORE: self.plan.model}
        for row in candidates:
            models |= {f"{row.name} {fold}": model for fold, model in enumerate(dict.fromkeys(row.folds))}
        asked = [self._asked(models)]
        (photos,) = self._stage("elsewhere", "asking about photos of other classes", self.plan.elsewhere_plans, asked)
        kept = [photo for photo in photos if len(photo.conditions)]
        right = {name: np.array([float(photo.answers[name][0] == photo.label) for photo in kept]) for name in models}
        return {
            row.name: OtherRates(
                right[BEFORE],
                np.mean([right[f"{row.name} {fold}"] for fold in range(len(dict.fromkeys(row.folds)))], axis=0),
            )
            for row in candidates
        }

    def _check_losses(self, table: RateTable, others: OtherRates | None) -> tuple[LossCheck, ...]:
        allowed = self.plan.config.allow_loss
        unedited = LossCheck("unedited photos", unedited_loss(table), allowed)
        if not self.plan.has_other_classes:
            return (unedited,)
        growth = None if others is None else measure_loss(*others)
        remedy = "give photos of other classes that the model knows: `--elsewhere DIR`"
        return unedited, LossCheck("photos of other classes", growth, allowed, remedy)

    def _measure_time(self, models: Mapping[str, Model]) -> dict[str, float]:
        """Milliseconds a picture by one thread: the median over a few pictures, the models taking turns."""
        plan = self.plan.judged_plans[0]
        images = [image for sample in plan.samples[:2] for _, image in render_photo(plan, sample)[0]][:_TIMED]
        times: dict[str, list[float]] = {name: [] for name in models}
        for image in images:
            for name, model in models.items():
                start = time.perf_counter()
                model([image])
                times[name].append(1000 * (time.perf_counter() - start))
        return {name: float(np.median(values)) if values else float("nan") for name, values in times.items()}


def _row(
    candidate: RemedyCandidate, photos: Sequence[PhotoAnswers], others: OtherRates | None, time: float
) -> CandidateRow:
    """The five columns of a candidate."""
    table = tabulate(photos, BEFORE, dict.fromkeys((photo.sample for photo in photos), candidate.name))
    return CandidateRow(
        name=candidate.name, edited=edited_change(table, among=False), among=edited_change(table, among=True),
        unedited=unedited_change(table, among=True), milliseconds=time,
        others=None if others is None else compare_rates(*others),
        passes=candidate.final.passes, note=candidate.final.note,
        effects=tuple(row for row in measure_effects(table) if not row.edit),
    )  # fmt: skip


def _judge_left_out(tried: TriedRemedies, method: str) -> dict[str, Effect]:
    """For each attribute that was left out of a fit, the effect of that fit on it."""
    effects: dict[str, Effect] = {}
    for attribute, parts in tried.left_out.get(method, {}).items():
        photos = [photo for part in parts for photo in part if len(photo.conditions)]
        table = tabulate(photos, BEFORE, dict.fromkeys((photo.sample for photo in photos), method))
        effects |= {row.attribute: row for row in measure_effects(table) if not row.edit and row.attribute == attribute}
    return effects


def _fitted_edits(plan: RepairPlan) -> dict[tuple[str, str], str]:
    """The edits and levels that a remedy was fitted on, with their attributes."""
    return {(name_of(step.edit), step.edit.level): step.edit.attribute for step in plan.fitting_plans[0].steps}
