"""Failures that models share: whether they transfer to a model held out, and how many models it takes to find them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from counterfoil.analysis.evidence import (
    FEWEST_PHOTOS,
    SEED,
    Evidence,
    MeasuredNumber,
    NotJudged,
    Reply,
    join_clauses,
    measured,
)
from counterfoil.mining.estimates import contrast_kept
from counterfoil.mining.mining_config import guess_family
from counterfoil.mining.rules import AnswerMatrix, Rule, apply_rule
from counterfoil.mining.surrogate_groups import list_subsets, trace_curves
from counterfoil.report.words import format_number, join_words
from counterfoil.statistics.answers import NO_FAILURE
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.photo_shares import PhotoCounts, estimate_share
from counterfoil.types import TOOL_CHECKS

_BEYOND = 4  # surrogates, after which the paper's gain slows
_MOST_MODELS = 12
_RIGHT_BEFORE = "Only pictures whose unedited photo the models have right count."
_NO_ORIGINALS = "There are no edited pictures with originals: every wrong answer counts."
_ADD_PHOTOS = "add photos, or stronger edits"
Transfers: TypeAlias = tuple[Estimate, Estimate, Estimate]  # on the shared failures, on all pictures, the difference


def answer_matrix(evidence: Evidence) -> tuple[AnswerMatrix, PhotoCounts, bool]:
    """The answers to edited pictures, or to all where none is edited; and whether there are originals to rely on."""
    answers = evidence.answers
    edited = ~answers.conditions_of(NO_FAILURE | {"control", *TOOL_CHECKS})
    has_originals = bool(edited.any()) and evidence.study.has_originals
    wanted = edited if edited.any() else answers.conditions_of({"original"})
    rows = np.flatnonzero(answers.scored & wanted[answers.condition])
    pictures, place = np.unique(answers.picture[rows], return_inverse=True)
    photo = np.zeros(len(pictures), np.intp)
    photo[place] = answers.sample[rows]
    right = np.full((len(answers.models), len(pictures)), np.nan)
    right[answers.model[rows], place] = answers.correct[rows]
    original = answers.original_rates[:, photo] if has_originals else np.ones_like(right)
    said = AnswerMatrix(right, np.full_like(right, np.nan), np.where(original > 0.5, 1.0, 0.0))
    return said, PhotoCounts(photo, len(answers.samples)), has_originals


def ask_transfer(evidence: Evidence) -> Reply:
    """Whether a model fails where all others fail, more often than elsewhere."""
    evidence.require_models(2, "of which one is held out")
    said, photos, has_originals = answer_matrix(evidence)
    numbers: list[MeasuredNumber] = []
    transferred: list[str] = []
    unclear: list[str] = []
    few: list[str] = []
    most = 0  # pictures that all but one model fail on
    for place, model in enumerate(evidence.models):
        others = [other for other in range(len(evidence.models)) if other != place]
        rows = _transfer(said, photos, place, others)
        most = max(most, rows[0].n)
        numbers += [
            measured(f"wrong where {_describe(others)} fail", model, rows[0], "percent", of="pictures"),
            measured("wrong on all pictures", model, rows[1], "percent", of="pictures"),
            measured("difference", model, rows[2], "points", of="pictures"),
        ]
        (few if rows[0].n < FEWEST_PHOTOS else transferred if rows[2].ci_low > 0 else unclear).append(model)
        numbers += _other_families(evidence, said, photos, place)
    if len(few) == len(evidence.models):
        wanted = f"{FEWEST_PHOTOS} pictures on which all but one model fail, got {most} at most"
        raise NotJudged(wanted, _ADD_PHOTOS)
    return Reply(
        answer=join_clauses(
            f"yes for {join_words(transferred)}: each fails more often where all others fail than on all pictures"
            if transferred
            else "",
            f"not shown for {join_words(unclear)}" if unclear else "",
            f"not judged for {join_words(few)}: fewer than {FEWEST_PHOTOS} such pictures" if few else "",
        ),
        numbers=tuple(numbers),
        notes=(
            f"{_RIGHT_BEFORE if has_originals else _NO_ORIGINALS} Each model is held out in turn and compared on the"
            " pictures that all others fail on, so that no model chose its own pictures; intervals count photos."
            " An edit that hides much is hard for every model: failing together does not say why."
            " Families are guessed from the models' names.",
        ),
    )


def _transfer(said: AnswerMatrix, photos: PhotoCounts, place: int, others: list[int]) -> Transfers:
    kept = apply_rule(said.of(others), Rule("all"))
    right, original = said.right[place : place + 1], said.original[place : place + 1]
    return contrast_kept(right == 0, np.isfinite(right) & (original == 1), kept, photos)


def _other_families(evidence: Evidence, said: AnswerMatrix, photos: PhotoCounts, place: int) -> list[MeasuredNumber]:
    """The same with models of other families alone; empty where all others are of other families."""
    families = [guess_family(model) for model in evidence.models]
    others = [other for other, family in enumerate(families) if family != families[place]]
    if not others or len(others) == len(families) - 1:
        return []
    row = _transfer(said, photos, place, others)[0]
    return [
        measured("wrong where all models of other families fail", evidence.models[place], row, "percent", of="pictures")
    ]


def _describe(others: list[int]) -> str:
    return {1: "the other model", 2: "both others"}.get(len(others), f"all {len(others)} others")


def ask_surrogates(evidence: Evidence) -> Reply:
    """Accuracy of held-out models by the number of models that must fail."""
    evidence.require_models(3, "of which one is held out")
    if len(evidence.models) > _MOST_MODELS:
        raise NotJudged(f"at most {_MOST_MODELS} models, got {len(evidence.models)}", "run it on some of them")
    said, photos, has_originals = answer_matrix(evidence)
    groups = list_subsets(len(evidence.models), np.random.default_rng(SEED))
    groups = groups[groups.sum(axis=1) < len(evidence.models)]  # one model at least is held out
    curves = trace_curves(said, Rule("all", original="failing" if has_originals else "none"), groups, photos)
    numbers: list[MeasuredNumber] = []
    by_size: dict[int, list[float]] = {}
    for model, rows in zip(evidence.models, curves, strict=True):
        for row in rows:
            share = estimate_share(row.accuracy).scaled(100)
            if row.groups and share.n >= FEWEST_PHOTOS:
                numbers.append(measured(f"right where {row.size} fail", model, share, "percent", of="pictures"))
                by_size.setdefault(row.size, []).append(share.value)
    whole = {size: float(np.mean(values)) for size, values in by_size.items() if len(values) == len(evidence.models)}
    if len(whole) < 2:
        raise NotJudged(f"{FEWEST_PHOTOS} pictures on which two models fail, for every model held out", _ADD_PHOTOS)
    return Reply(
        answer=_describe_sizes(whole, len(evidence.models)),
        numbers=(
            *(
                MeasuredNumber(
                    f"right where {size} fail, mean", "", value, n=len(evidence.models), of="models", unit="percent"
                )
                for size, value in whole.items()
            ),
            *numbers,
        ),
        notes=(
            "For every group of so many models, the pictures that all of them fail on are shown to each model outside"
            " the group; means over groups. Sizes at which some model has too few such pictures are left out.",
        ),
    )


def _describe_sizes(means: dict[int, float], models: int) -> str:
    sizes = sorted(means)
    curve = ", ".join(f"{format_number(means[size])} % with {size}" for size in sizes)
    text = f"Models held out are right on {curve} surrogate{'s' if sizes[-1] > 1 else ''}"
    if sizes[-1] > _BEYOND and _BEYOND in means:
        gain = means[_BEYOND] - means[sizes[-1]]
        return f"{text}: from {_BEYOND} to {sizes[-1]} the accuracy falls by another {format_number(gain)} points."
    return (
        f"{text}; beyond {_BEYOND} not judged: needs {_BEYOND + 2} models and enough pictures that"
        f" {_BEYOND + 1} of them fail on, got {models} models; add {max(1, _BEYOND + 2 - models)} more or photos."
    )
