"""Which pictures the gallery shows: photos that flipped, for contrast some that held, of few photos all; by lot."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Answers, Condition, flipped
from counterfoil.pipeline.recorded.pictures import Album
from counterfoil.pipeline.recorded.study import Study
from counterfoil.report import Example, Reply
from counterfoil.store import read_variants
from counterfoil.types import Variant

POOL = 72  # flips per attribute, over all models, from which those shown are chosen
NO_EXAMPLES = {"original", "presence"}  # being wrong where the object is gone is no failure


class Room(NamedTuple):
    """How many pictures may be shown: every one has to be made again, about a tenth of a second each."""

    most: int
    each: int  # of one attribute


_FLIPS, _HELD, _OTHERS = Room(60, 18), Room(24, 4), Room(12, 12)
FEW_PHOTOS = 12  # of a trial: whoever brings so few looks for each of them


class Pick(NamedTuple):
    """One edited picture."""

    sample_id: str
    condition: Condition
    replicate: int


def examples(study: Study, album: Album) -> Iterator[Example]:
    """The chosen pictures with what every model said, attributes in the order of the table."""
    shown: Counter[str] = Counter()
    picks = [*in_turn(_flips(study.answers), _FLIPS, shown), *in_turn(_held(study.answers), _HELD, shown)]
    picks += in_turn(_others(study.answers, shown), _OTHERS, shown)
    originals = {Pick(pick.sample_id, _original(study.answers), 0) for pick in picks}
    variants = variants_of(study.manifest, {*picks, *originals})
    wanted = {variant.id for variant, _ in variants.values()}
    said = {model: table.first_answers(wanted) for model, table in study.predictions.items()}
    for pick in picks:
        before, after = variants[Pick(pick.sample_id, _original(study.answers), 0)], variants[pick]
        yield Example(
            *pick.condition, pick.sample_id, after[0].label, album.picture(*before), album.picture(*after),
            tuple(_replies(said, before[0], after[0])),
        )  # fmt: skip


def _replies(said: Mapping[str, Mapping[str, tuple[str, float]]], before: Variant, after: Variant) -> Iterator[Reply]:
    for model, answers in said.items():
        if before.id in answers and after.id in answers:
            yield Reply(model, *answers[before.id], *answers[after.id])


def _original(answers: Answers) -> Condition:
    return next(condition for condition in answers.conditions if condition.attribute == "original")


def _flips(answers: Answers) -> list[Pick]:
    found = flipped(answers, limit=flips_per_model(len(answers.models)))
    picks = {Pick(flip.sample_id, flip.condition, flip.replicate) for flip in found}
    return sorted(picks, key=lot)


def flips_per_model(models: int) -> int:
    """How many flips of an attribute each of so many models brings into the pool."""
    return max(8, POOL // models)


def in_turn(picks: list[Pick], room: Room, shown: Counter[str]) -> list[Pick]:
    """Every attribute in turn, so that none crowds out another; photos that `shown` counts least come first."""
    groups: defaultdict[str, list[Pick]] = defaultdict(list)
    for pick in picks:
        groups[pick.condition.attribute].append(pick)
    chosen: list[Pick] = []
    for _ in range(room.each):
        for members in groups.values():
            if members and len(chosen) < room.most:
                pick = min(members, key=lambda member: shown[member.sample_id])
                members.remove(pick)
                shown[pick.sample_id] += 1
                chosen.append(pick)
    return chosen


def _held(answers: Answers) -> list[Pick]:
    """Pictures on which no model flipped and one was right both times; a few per attribute, by lot."""
    groups: defaultdict[str, list[Pick]] = defaultdict(list)
    for row in np.flatnonzero(_held_rows(answers)):
        condition = answers.conditions[answers.condition[row]]
        groups[condition.attribute].append(
            Pick(answers.samples[answers.sample[row]], condition, int(answers.replicate[row]))
        )
    return [pick for picks in groups.values() for pick in sorted(set(picks), key=lot)[:POOL]]


def _others(answers: Answers, shown: Counter[str]) -> list[Pick]:
    """Where photos are few, pictures of those that neither flipped nor held: models were wrong from the beginning."""
    if len(answers.samples) > FEW_PHOTOS:
        return []
    attribute = np.array([condition.attribute for condition in answers.conditions], object)[answers.condition]
    known = set(answers.sample[answers.scored & (attribute == "original")].tolist())
    rows = np.flatnonzero(answers.scored & ~np.isin(attribute, list(NO_EXAMPLES)))
    picks = {
        Pick(
            answers.samples[answers.sample[row]],
            answers.conditions[answers.condition[row]],
            int(answers.replicate[row]),
        )
        for row in rows
        if answers.sample[row] in known
    }
    return sorted((pick for pick in picks if not shown[pick.sample_id]), key=lot)


def _held_rows(answers: Answers) -> NDArray[np.bool_]:
    """The first model's rows of the pictures that held, one row per picture."""
    shape = (len(answers.conditions), len(answers.samples), int(answers.replicate.max(initial=0)) + 1)
    picture = np.ravel_multi_index((answers.condition, answers.sample, answers.replicate), shape)
    was_right = _right_before(answers)[answers.model, answers.sample]
    flips = np.zeros(np.prod(shape), bool)
    flips[picture[was_right & answers.scored & ~answers.correct]] = True
    telling = np.array([condition.attribute not in NO_EXAMPLES for condition in answers.conditions], bool)
    held: NDArray[np.bool_] = was_right & answers.scored & answers.correct & telling[answers.condition]
    first = np.zeros(len(picture), bool)
    candidates = np.flatnonzero(held & ~flips[picture])
    first[candidates[np.unique(picture[candidates], return_index=True)[1]]] = True
    return first


def _right_before(answers: Answers) -> NDArray[np.bool_]:
    """Whether a model is right on the unedited photo, (models, samples)."""
    originals = np.array([condition.attribute == "original" for condition in answers.conditions], bool)
    right = np.zeros((len(answers.models), len(answers.samples)), bool)
    rows = originals[answers.condition] & answers.scored & answers.correct
    right[answers.model[rows], answers.sample[rows]] = True
    return right


def lot(pick: Pick) -> bytes:
    """A fixed lot: the same picture is drawn in every report."""
    return hashlib.sha256("\0".join((pick.sample_id, *pick.condition, str(pick.replicate))).encode()).digest()


def variants_of(table: Mapping[str, NDArray[Any]], wanted: set[Pick]) -> dict[Pick, tuple[Variant, str]]:
    """The manifest's lines of these pictures, and the hashes of their pixels."""
    columns = (table[name] for name in ("sample_id", "attribute", "edit", "level", "replicate"))
    rows = [
        row
        for row, (sample, attribute, edit, level, replicate) in enumerate(zip(*columns, strict=True))
        if (sample, (attribute, edit, level), int(replicate)) in wanted
    ]
    chosen = _rows(table, rows)
    variants = zip(read_variants(chosen), chosen["sha256"], strict=True)
    return {pick_of(variant): (variant, pixels) for variant, pixels in variants}


def _rows(table: Mapping[str, NDArray[Any]], rows: list[int]) -> dict[str, NDArray[Any]]:
    return {name: column[rows] for name, column in table.items()}


def pick_of(variant: Variant) -> Pick:
    """The picture that a variant is."""
    condition = Condition(variant.attribute, variant.edit, variant.level)
    return Pick(str(variant.sample_id), condition, variant.replicate)
