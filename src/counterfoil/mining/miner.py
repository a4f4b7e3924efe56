"""Mining from a workspace to its kept pictures.

workspace -> ask surrogates and targets -> select -> estimate -> mined.json, mining.json, mining.csv, mining.html
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError, expect_path
from counterfoil.execution import Execution
from counterfoil.labels.label_space import list_class_names, match_label_space
from counterfoil.mining.balanced_selection import MinedAnswers, select_pictures
from counterfoil.mining.estimates import (
    count_classes,
    estimate_families,
    estimate_models,
    estimate_spreads,
    estimate_transfers,
    estimate_wrong_answers,
    estimate_yields,
)
from counterfoil.mining.mining_config import Balance, MiningConfig
from counterfoil.mining.mining_page import render_mining
from counterfoil.mining.mining_results import Candidate, MiningContent, render_mining_csv, render_mining_json
from counterfoil.mining.mining_words import describe_mining
from counterfoil.mining.rules import OriginalRule, Rule, RuleKind, count_per_setting
from counterfoil.mining.surrogate_answers import AskedModel, SurrogateAnswers, ask_models
from counterfoil.mining.surrogate_groups import (
    MOST_SURROGATES_FOR_ALL,
    estimate_biases,
    estimate_curves,
    estimate_size_yields,
    list_groups,
)
from counterfoil.models.model_objects import ModelHints, Transform, as_models
from counterfoil.models.model_options import ModelOptions
from counterfoil.progress import show_stage
from counterfoil.report.notebook_cell import render_sentences
from counterfoil.report.words import join_words, pluralize
from counterfoil.run_result import ExecutionPlan
from counterfoil.statistics.answers import Details
from counterfoil.statistics.confusion import donor_confusion, list_clear_confusions
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.store.files import write_atomically
from counterfoil.store.workspace import Workspace
from counterfoil.study.examples import Example, ModelAnswer
from counterfoil.study.failure_modes import FailureModes, ModelConfusion
from counterfoil.study.predictions import DETAIL_COLUMNS, details_from_tables
from counterfoil.study.thumbnails import PictureLoader, ThumbnailCache
from counterfoil.types import MiningResult, Picture, StoredVariant, Variant

_MOST = 6  # per attribute


def collect_examples(picked: MinedAnswers) -> list[Example]:
    """Return thumbnails with every model's answers before and after the edit."""
    shown = _draw_pictures(picked)
    originals = picked.asked.originals
    pairs = [(originals.get(str(stored.variant.sample_id)), stored) for stored in shown]
    wanted = {stored.variant.id for pair in pairs for stored in pair if stored is not None}
    said = {model.name: model.table.first_answers(wanted) for model in picked.asked.models}
    album = ThumbnailCache((), _picture_reader(picked))
    return [_example(before, after, said, album) for before, after in pairs]


def _draw_pictures(picked: MinedAnswers) -> list[StoredVariant]:
    groups: defaultdict[str, list[StoredVariant]] = defaultdict(list)
    for place in np.flatnonzero(picked.choice.kept):
        stored = picked.asked.candidates[place]
        groups[stored.variant.attribute].append(stored)
    return [stored for members in groups.values() for stored in sorted(members, key=_draw_order)[:_MOST]]


def _example(
    before: StoredVariant | None,
    after: StoredVariant,
    said: dict[str, dict[str, tuple[str, float]]],
    album: ThumbnailCache,
) -> Example:
    variant = after.variant
    first = variant if before is None else before.variant
    replies = tuple(
        ModelAnswer(model, *answers[first.id], *answers[variant.id])
        for model, answers in said.items()
        if first.id in answers and variant.id in answers
    )
    original = None if before is None else album.read(before.variant, before.sha256)
    return Example(
        attribute=variant.attribute,
        edit=variant.edit,
        level=variant.level,
        sample_id=str(variant.sample_id),
        label=variant.label,
        before=original,
        edited=album.read(variant, after.sha256),
        replies=replies,
    )


def _picture_reader(picked: MinedAnswers) -> PictureLoader:
    by_id = {stored.variant.id: stored for stored in picked.asked.workspace.pictures}

    def make(variant: Variant) -> Picture | None:
        try:
            image = picked.asked.workspace.read(by_id[variant.id])
        except Unusable:  # removed since: the page leaves it out
            return None
        return Picture(image, np.full(image.shape[:2], 255, np.uint8))

    return make


def _draw_order(stored: StoredVariant) -> str:
    return hashlib.sha256(f"shown {stored.variant.id}".encode()).hexdigest()


_MOST_CONFUSIONS = 20


def find_failures(picked: MinedAnswers) -> FailureModes:
    """Find failure modes over the kept pictures and their originals only."""
    lenders = _donor_classes(picked)
    confusions: list[ModelConfusion] = []
    lending = []
    for model in picked.asked.models:
        details = details_from_tables({model.name: _kept_rows(picked, model)}, donors=lenders)
        confusions += _confusions(details, model.name)
        lender = donor_confusion(details, model.name, "background")
        lending += [lender] if lender.share.n >= FEWEST_PHOTOS else []
    confusions.sort(key=lambda row: row.confusion.p_value)
    return FailureModes(confusions=confusions[:_MOST_CONFUSIONS], donors=lending)


def _kept_rows(picked: MinedAnswers, model: AskedModel) -> dict[str, NDArray[Any]]:
    """A model's answers to the kept pictures and to all originals."""
    table = model.table.columns(("variant_id", *DETAIL_COLUMNS))
    kept = {e.variant.id for e, is_kept in zip(picked.asked.candidates, picked.choice.kept, strict=True) if is_kept}
    wanted = np.array([name in kept for name in table["variant_id"]], bool) | (table["attribute"] == "original")
    return {name: column[wanted] for name, column in table.items()}


def _confusions(details: Details, model: str) -> Iterator[ModelConfusion]:
    attributes = dict.fromkeys(condition.attribute for condition in details.answers.conditions)
    clear = list_clear_confusions(details, model, [name for name in attributes if name != "original"])
    yield from (ModelConfusion(model, attribute, row) for attribute, row in clear)


def _donor_classes(picked: MinedAnswers) -> Mapping[str, str]:
    """The class of the photo that the background is from, by picture."""
    label_of = {str(e.variant.sample_id): e.variant.label for e in picked.asked.workspace.pictures}
    lent = ((e.variant.id, e.variant.donor_id) for e in picked.asked.candidates)
    return {name: label_of[donor] for name, donor in lent if donor in label_of}


_FEWEST_PHOTOS = 6  # with fewer, intervals are too wide to be useful


@dataclass(frozen=True, repr=False)
class MiningOutcome:
    """The results of mining."""

    mined: MiningResult
    content: MiningContent
    page: Path
    pictures: int = 0  # of the workspace, with originals, controls and pictures without the object

    def __repr__(self) -> str:
        """How much was kept, and where the page is, in a line."""
        return f"MiningOutcome(kept {pluralize(len(self.mined.kept), 'picture')}, report {self.page})"

    @property
    def lines(self) -> list[str]:
        """The findings as sentences."""
        return describe_mining(self.content)

    @property
    def conservation(self) -> str:
        """What became of every picture of the workspace; raises where one is unaccounted for, which can only be a bug.

        A picture that a surrogate could not answer is not chosen.
        """
        kept, chosen, candidates = len(self.mined.kept), self.content.chosen, len(self.content.pictures)
        if not kept <= chosen <= candidates <= self.pictures:
            raise RuntimeError(f"{self.page}: {self.pictures} pictures, {candidates} candidates, {chosen}, {kept}")
        return (
            f"pictures: {self.pictures:,} in the workspace = {kept:,} kept + {chosen - kept:,} left by balancing +"
            f" {candidates - chosen:,} not chosen + {self.pictures - candidates:,} originals, controls and empty scenes"
        )

    def _repr_html_(self) -> str:
        """The findings, as a notebook shows them."""
        return render_sentences(f"Kept {pluralize(len(self.mined.kept), 'picture')}", self.lines)


def run_mining(job: MiningConfig, before: Callable[[ExecutionPlan], None] | None = None) -> MiningOutcome:
    """Keep what the surrogates fail on and write the report; `before` is called with each model before it is asked."""
    asked = ask_models(job, before)
    choice = select_pictures(asked, job)
    picked = MinedAnswers(job, asked, choice)
    with show_stage("estimating what carries over to other models"):
        content = collect_content(picked)
    page = _write(asked.workspace.folder / "mining", content)
    kept = tuple(row.variant_id for row in content.pictures if row.kept)
    surrogates = {model.name: model.digest for model in asked.models[: asked.surrogates]}
    mined = MiningResult(kept, choice.words, surrogates, asked.workspace.digest)
    asked.workspace.keep_mined(mined)  # written last, so that the report exists whenever this file does
    return MiningOutcome(mined, content, page, len(asked.workspace.pictures))


def mine(
    workspace: Workspace | str | Path,
    surrogates: Any,
    targets: Any = (),
    *,
    at_least: int | None = None,
    below: float | None = None,
    original: OriginalRule = "failing",
    balance: Balance | None = None,
    most_per_group: int | None = None,
    labels: Sequence[str] | None = None,
    transform: Transform | None = None,
    classes: str | None = None,
    workers: int | None = None,
    batch_size: int = 16,
    options: ModelOptions | None = None,
    engine: str = "local",
) -> MiningOutcome:
    """Keep the pictures that several surrogates get wrong, and see whether held-out models fail on them too.

    Args:
        workspace: What `build` returned, or its folder.
        surrogates: Models that choose pictures, as `run` takes models.
        targets: Held-out models that take no part in the choice.
        at_least: Keep pictures that at least this many surrogates get wrong; all of them where not given.
        below: Instead, keep pictures whose true class has a mean probability below this.
        original: Who must be right on the original: "failing" each surrogate that is wrong, "all", or "none".
        balance: Keep equally many of each "class", "attribute" or "both".
        most_per_group: Most pictures of a group with `balance`.
        labels: The name of each column of models given as objects.
        transform: What prepares a Pillow picture for a torch module or function given without `wrap_model`.
        classes: The classes of the pictures: a benchmark's by name, or a classes.json.
        workers: Threads that read pictures; one per core where not given.
        batch_size: Pictures per call of a model.
        options: How models are loaded.
        engine: "local" threads, "ray", or "ray:ADDRESS" of a cluster; models given as objects are asked from here.

    Returns:
        What was kept, sentences on how far it carries over, and the page; `freeze` then takes what was kept.

    Raises:
        UserError: The workspace or a model cannot be used.

    Examples:
        >>> import numpy as np, tempfile
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> from counterfoil import build
        >>> workspace = build([(image, "red", mask)], tempfile.mkdtemp(), edits=["object-grayscale"])
        >>> reddest = lambda images: ["red" if each[..., 0].max() > 150 else "grey" for each in images]
        >>> len(mine(workspace, {"reddest": reddest}, labels=["red", "grey"]).mined.kept)
        1
    """
    if at_least is not None and below is not None:
        raise UserError("expected at_least= or below=, got both; give one of them")
    kind: RuleKind = "mean-probability" if below is not None else "all" if at_least is None else "at-least"
    opened = workspace if isinstance(workspace, Workspace) else Workspace(expect_path(workspace, "a workspace"))
    photo_labels = tuple(dict.fromkeys(stored.variant.label for stored in opened.pictures))
    hints = ModelHints(labels=list_class_names(labels), transform=transform, photo_labels=photo_labels, options=options)
    return run_mining(
        MiningConfig(
            workspace=opened.folder,
            surrogates=as_models(surrogates, hints),
            targets=as_models(targets, hints),
            rule=Rule(kind, at_least or 1, 1.0 if below is None else below, original),
            balance=balance,
            most_per_group=most_per_group,
            classes=classes,
            workers=workers,
            batch_size=batch_size,
            options=ModelOptions() if options is None else options,
            execution=Execution(engine),
            command="counterfoil.mine(...)",
        )
    )


def collect_content(picked: MinedAnswers) -> MiningContent:
    """Collect the content of the page."""
    asked, choice = picked.asked, picked.choice
    groups = list_groups(picked)
    surrogates = picked.said.of(slice(0, asked.surrogates))
    return MiningContent(
        workspace=asked.workspace.folder.resolve().name,
        rule=choice.words,
        models=estimate_models(picked),
        photos=len(asked.samples[0]),
        candidates=len(asked.candidates),
        chosen=int(choice.chosen.sum()),
        kept=int(choice.kept.sum()),
        settings=count_per_setting(surrogates, choice.rule),
        yields=estimate_yields(picked),
        transfers=estimate_transfers(picked),
        families=estimate_families(picked),
        curves=estimate_curves(picked, groups),
        sizes=estimate_size_yields(picked, groups),
        biases=estimate_biases(picked),
        spreads=list(estimate_spreads(picked)),
        classes=count_classes(picked),
        wrong_answers=estimate_wrong_answers(picked),
        failures=find_failures(picked),
        pictures=_pictures(picked),
        examples=collect_examples(picked),
        names=_names(asked),
        notes=_notes(picked),
        skipped=asked.skipped,
        command=picked.job.command,
        digest=asked.workspace.digest,
    )


def _write(folder: Path, content: MiningContent) -> Path:
    write_atomically(folder / "mining.json", json.dumps(render_mining_json(content), indent=1, allow_nan=False))
    write_atomically(folder / "mining.csv", render_mining_csv(content))
    return write_atomically(folder / "mining.html", render_mining(content))


def _pictures(picked: MinedAnswers) -> list[Candidate]:
    rows = zip(picked.asked.candidates, picked.choice.kept, picked.said.right.T, strict=True)
    return [
        Candidate(
            variant_id=v.id,
            sample_id=str(v.sample_id),
            label=v.label,
            attribute=v.attribute,
            edit=v.edit,
            level=v.level,
            kept=bool(kept),
            right=tuple(right.tolist()),
        )
        for stored, kept, right in rows
        for v in [stored.variant]
    ]


def _notes(picked: MinedAnswers) -> list[str]:
    """Notes on what was dropped, sampled or could not be computed."""
    asked = picked.asked
    notes = list(picked.choice.notes)
    for model, missing in ((model.name, model.unscored) for model in estimate_models(picked) if model.unscored):
        notes.append(f"{missing} answers of {model} could not be scored and do not count.")
    photos = len(set(asked.photo[picked.choice.kept]))
    if photos < _FEWEST_PHOTOS:
        notes.append(f"The kept pictures are from {pluralize(photos, 'photo')}: too few to speak for other photos.")
    if not picked.targets and asked.surrogates > 1:
        notes.append("No target was given: surrogates that did not choose show whether failures carry over.")
    if asked.surrogates == 1:
        notes.append("One surrogate chose alone: how much its own choice makes it look worse cannot be measured.")
        if not picked.targets:
            notes.append("Whether its failures carry over to other models was not measured: add a model with --target.")
    notes += [
        f"{join_words(kin)} are of one family ({family}) and fail alike, so what their own choice costs them"
        " is understated."
        for family, kin in _shared_families(picked).items()
    ]
    if asked.surrogates > MOST_SURROGATES_FOR_ALL:
        notes.append(f"{asked.surrogates} surrogates have too many groups: the curves use a random sample of them.")
    if asked.workspace.verified is not None:
        notes.append("People have decided on this workspace before; newly kept pictures have no decision yet.")
    return notes


def _shared_families(picked: MinedAnswers) -> dict[str, list[str]]:
    """The families that have several surrogates, with those surrogates."""
    members: dict[str, list[str]] = {}
    for model in picked.asked.models[: picked.asked.surrogates]:
        members.setdefault(picked.job.family(model.address), []).append(model.name)
    return {family: names for family, names in members.items() if len(names) > 1}


def _names(asked: SurrogateAnswers) -> dict[str, str]:
    """Readable names of the labels that occur."""
    labels = sorted({label for model in asked.models for label in model.table.labels})
    space = match_label_space(labels)
    return {label: space.name_of(label) for label in labels}
