"""The examples of a report: pictures on which models flipped or held, chosen at random with a fixed order."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import NO_FAILURE, Answers, Condition
from counterfoil.store.prediction_tables import read_variants
from counterfoil.study.runs import Study
from counterfoil.types import Attribute, Variant

ThumbnailReader: TypeAlias = Callable[[Variant, str], "bytes | None"]  # a variant and the hash of its pixels, to a JPEG

POOL = 72  # pictures of an attribute from which those shown are chosen
FEW_PHOTOS = 12  # of a small trial: up to this number, every photo is shown
_MOST_CANDIDATES = 20_000  # rows that unpaired examples are chosen from, spread over all of them


@dataclass(frozen=True)
class ModelAnswer:
    """One model's answer before and after an edit: labels, and confidences in 0..1."""

    model: str
    before: str
    confidence_before: float
    after: str
    confidence_after: float

    def outcome(self, label: str, paired: bool = True) -> Literal["flipped", "held", "gained", "wrong", "right"]:
        """Right to wrong, right both times, wrong to right, wrong both times; with nothing before, right or wrong."""
        if not paired:
            return "right" if self.after == label else "wrong"
        if self.before == label:
            return "held" if self.after == label else "flipped"
        return "gained" if self.after == label else "wrong"


@dataclass(frozen=True)
class Example:
    """One photo before and after one edit, with thumbnails of both where available."""

    attribute: Attribute
    edit: str
    level: str
    sample_id: str
    label: str
    original: bytes | None  # JPEG
    edited: bytes | None
    replies: tuple[ModelAnswer, ...]
    paired: bool = True  # False for a picture of a collection without an original


class PictureKey(NamedTuple):
    """What identifies an edited picture among the answers."""

    sample_id: str
    condition: Condition
    replicate: int


class _Budget(NamedTuple):
    """How many pictures may be shown: each has to be made again, about a tenth of a second each."""

    most: int
    each: int  # of one attribute


_FLIPPED, _HELD, _OTHERS = _Budget(60, 18), _Budget(24, 4), _Budget(12, 12)
_WRONG, _RIGHT = _Budget(60, 18), _Budget(16, 4)


def choose_examples(study: Study, thumbnail: ThumbnailReader) -> Iterator[Example]:
    """Yield pictures with their originals and every model's answers to both, attributes in turn."""
    answers = study.answers
    shown: Counter[str] = Counter()
    keys = _take_in_turn(_flipped(answers), _FLIPPED, shown)
    keys += _take_in_turn(_held(answers), _HELD, shown)
    keys += _take_in_turn(_others(answers, shown), _OTHERS, shown)
    original = next(condition for condition in answers.conditions if condition.attribute == "original")
    original_of = {key: PictureKey(key.sample_id, original, 0) for key in keys}
    variants = _read_variants(study.manifest, {*keys, *original_of.values()})
    said = _first_answers(study, variants)
    for key in keys:
        before, after = variants[original_of[key]], variants[key]
        replies = tuple(
            ModelAnswer(model, *own[before[0].id], *own[after[0].id])
            for model, own in said.items()
            if before[0].id in own and after[0].id in own
        )
        yield Example(
            *key.condition, key.sample_id, after[0].label, thumbnail(*before), thumbnail(*after), replies
        )  # fmt: skip


def choose_unpaired_examples(study: Study, thumbnail: ThumbnailReader) -> Iterator[Example]:
    """Yield pictures of a collection without originals, with every model's answers, attributes in turn."""
    answers = study.answers
    failed = np.isin(answers.picture, answers.picture[answers.scored & ~answers.correct])  # for some model
    shown: Counter[str] = Counter()
    keys = _take_in_turn(_spread_out(answers, failed), _WRONG, shown)
    keys += _take_in_turn(_spread_out(answers, ~failed & answers.scored), _RIGHT, shown)
    variants = _read_variants(study.manifest, set(keys))
    said = _first_answers(study, variants)
    for key in keys:
        variant, pixels = variants[key]
        replies = tuple(
            ModelAnswer(model, "", 0.0, *own[variant.id]) for model, own in said.items() if variant.id in own
        )
        yield Example(
            *key.condition, key.sample_id, variant.label, None, thumbnail(variant, pixels), replies, paired=False
        )  # fmt: skip


def picture_key(variant: Variant) -> PictureKey:
    """The key of a variant's picture."""
    condition = Condition(variant.attribute, variant.edit, variant.level)
    return PictureKey(str(variant.sample_id), condition, variant.replicate)


def example_rank(key: PictureKey) -> bytes:
    """Sort key of the pictures: random, but the same in every report and for every model."""
    return hashlib.sha256("\0".join((key.sample_id, *key.condition, str(key.replicate))).encode()).digest()


def flips_per_model(models: int) -> int:
    """How many flips per attribute each of this many models adds to the pool."""
    return max(8, POOL // models)


def _flipped(answers: Answers) -> list[PictureKey]:
    """Pictures that a model got wrong although it was right on the original; a few per model and attribute."""
    rows = _right_before(answers) & answers.scored & ~answers.correct & _is_failure(answers)
    limit = flips_per_model(len(answers.models))
    keys = [
        key
        for model in range(len(answers.models))
        for key in _first_of_attributes(_keys(answers, rows & (answers.model == model)), limit)
    ]
    return sorted(set(keys), key=example_rank)


def _held(answers: Answers) -> list[PictureKey]:
    """Pictures on which no model flipped and one was right both times; a few per attribute."""
    was_right = _right_before(answers) & answers.scored
    flipped = np.isin(answers.picture, answers.picture[was_right & ~answers.correct])
    rows = np.flatnonzero(was_right & answers.correct & ~flipped & _is_failure(answers))
    first_rows = np.sort(rows[np.unique(answers.picture[rows], return_index=True)[1]])
    return _first_of_attributes(_keys(answers, first_rows), POOL)


def _others(answers: Answers, shown: Counter[str]) -> list[PictureKey]:
    """Where photos are few, pictures of those not shown yet: models were wrong on their originals."""
    if len(answers.samples) > FEW_PHOTOS:
        return []
    originals = answers.scored & answers.conditions_of({"original"})[answers.condition]
    rows = answers.scored & _is_failure(answers) & np.isin(answers.sample, answers.sample[originals])
    keys = {key for key in _keys(answers, rows) if not shown[key.sample_id]}
    return sorted(keys, key=example_rank)


def _spread_out(answers: Answers, chosen: NDArray[np.bool_]) -> list[PictureKey]:
    """A few pictures of each attribute; very many rows are thinned out evenly."""
    rows = np.flatnonzero(chosen)
    return _first_of_attributes(_keys(answers, rows[:: 1 + len(rows) // _MOST_CANDIDATES]), POOL)


def _take_in_turn(keys: Iterable[PictureKey], budget: _Budget, shown: Counter[str]) -> list[PictureKey]:
    """Take from every attribute in turn; photos that `shown` counts least come first."""
    groups = _by_attribute(keys)
    chosen: list[PictureKey] = []
    for _ in range(budget.each):
        for members in groups.values():
            if members and len(chosen) < budget.most:
                key = min(members, key=lambda member: shown[member.sample_id])
                members.remove(key)
                shown[key.sample_id] += 1
                chosen.append(key)
    return chosen


def _first_of_attributes(keys: Iterable[PictureKey], limit: int) -> list[PictureKey]:
    """The first pictures of each attribute by rank."""
    groups = _by_attribute(dict.fromkeys(keys))
    return [key for members in groups.values() for key in sorted(members, key=example_rank)[:limit]]


def _by_attribute(keys: Iterable[PictureKey]) -> dict[str, list[PictureKey]]:
    groups: defaultdict[str, list[PictureKey]] = defaultdict(list)
    for key in keys:
        groups[key.condition.attribute].append(key)
    return groups


def _keys(answers: Answers, rows: NDArray[Any]) -> list[PictureKey]:
    """The pictures of these rows, given as a mask or as positions."""
    columns = (answers.sample[rows].tolist(), answers.condition[rows].tolist(), answers.replicate[rows].tolist())
    return [
        PictureKey(answers.samples[sample], answers.conditions[condition], replicate)
        for sample, condition, replicate in zip(*columns, strict=True)
    ]


def _right_before(answers: Answers) -> NDArray[np.bool_]:
    """For each row, whether its model is right on the unedited photo."""
    return np.asarray((answers.original_rates == 1.0)[answers.model, answers.sample], bool)


def _is_failure(answers: Answers) -> NDArray[np.bool_]:
    """For each row, whether a wrong answer to it is a failure: the object is present and was edited."""
    return ~answers.conditions_of(NO_FAILURE)[answers.condition]


def _first_answers(
    study: Study, variants: Mapping[PictureKey, tuple[Variant, str]]
) -> dict[str, dict[str, tuple[str, float]]]:
    """Each model's first answers to these variants, with their confidence."""
    wanted = {variant.id for variant, _ in variants.values()}
    return {model: table.first_answers(wanted) for model, table in study.predictions.items()}


def _read_variants(table: Mapping[str, NDArray[Any]], wanted: set[PictureKey]) -> dict[PictureKey, tuple[Variant, str]]:
    """The manifest's rows of these pictures, and the hashes of their pixels."""
    columns = (table[name] for name in ("sample_id", "attribute", "edit", "level", "replicate"))
    rows = [
        row
        for row, (sample, attribute, edit, level, replicate) in enumerate(zip(*columns, strict=True))
        if (sample, (attribute, edit, level), int(replicate)) in wanted
    ]
    chosen = {name: column[rows] for name, column in table.items()}
    variants = zip(read_variants(chosen), chosen["sha256"], strict=True)
    return {picture_key(variant): (variant, pixels) for variant, pixels in variants}
