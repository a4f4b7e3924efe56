"""The examples of a report: pictures that models fail on, chosen at random with a fixed order."""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers, Condition
from counterfoil.store.parquet import DictionaryColumn
from counterfoil.store.prediction_tables import read_variants
from counterfoil.store.table_columns import TableColumns
from counterfoil.study.runs import Study
from counterfoil.types import TOOL_CHECKS, Attribute, EditLevel, Variant

ThumbnailReader: TypeAlias = Callable[[Variant, str], "bytes | None"]  # a variant and the hash of its pixels, to a JPEG

POOL = 72  # pictures of an attribute from which those shown are chosen
_FEWEST_STEPS = 3  # levels of an edit that are shown on one photo
_NOT_SHOWN = {"original", "presence", "control", *TOOL_CHECKS}  # without the object, an error is no failure
_PAINTED = "painted-"  # edits whose pictures take long to make again
_ROWS_AT_ONCE = 4096
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


@dataclass(frozen=True, kw_only=True)
class Example:
    """One photo before and after one edit, with thumbnails of both where available."""

    attribute: Attribute
    edit: str
    level: str
    sample_id: str
    label: str
    before: bytes | None  # JPEG of what the edit is compared with: the original, or its reference
    edited: bytes | None
    replies: tuple[ModelAnswer, ...]
    paired: bool = True  # False for a picture of a collection without an original
    reference: str = "original"  # what `before` shows: "original", or an edit and its level
    variant_id: str = ""  # of the edited picture
    model: str = ""  # the model that the picture was chosen for; empty where it concerns all
    step: bool = False  # one of a photo's pictures at every level of an edit, weakest first


class PictureKey(NamedTuple):
    """What identifies an edited picture among the answers."""

    sample_id: str
    condition: Condition
    replicate: int


class _Budget(NamedTuple):
    """How many pictures may be shown: each has to be made again, about a tenth of a second each."""

    most: int
    each: int  # of one attribute


_WRONG, _RIGHT = _Budget(40, 4), _Budget(16, 2)
_PAIRS = 4  # pictures of an attribute
_HELD = 2  # of an attribute without a failure
_MOST_PAIRS = 60  # pictures of one attribute that is asked for


def choose_examples(study: Study, thumbnail: ThumbnailReader) -> Iterator[Example]:
    """Yield failures with what they are compared with, a few of every attribute; models and edits in turn.

    A failure is right before the edit and wrong after it. Where an attribute has none, pictures that held are shown.
    Of an edit with several levels, one photo is shown at each of them.
    """
    answers = study.answers
    before = find_references(study)
    main = study.main_edits
    attributes = dict.fromkeys(row.attribute for row in answers.conditions if row.attribute not in _NOT_SHOWN)
    shown: Counter[str] = Counter()
    chosen: list[_Choice] = []
    for attribute in attributes:
        failures = _failures(answers, before, attribute)
        picked = _pick(failures, main.get(attribute), shown) or _held(answers, before, attribute)
        chosen += [*picked[:2], *_steps(answers, main.get(attribute), failures), *picked[2:]]
    for pair in _make_pairs(study, chosen, before):
        yield replace(pair.example, before=thumbnail(*pair.before), edited=thumbnail(*pair.after))


def choose_pairs(
    study: Study, *, attribute: str | None = None, model: str | None = None, photo: str | None = None
) -> Iterator[ExamplePair]:
    """Yield pictures without thumbnails, with the variants before and after: failures, or all of one photo."""
    answers = study.answers
    before = find_references(study)
    attributes = dict.fromkeys(row.attribute for row in answers.conditions if row.attribute != "original")
    wanted = [name for name in attributes if attribute in (None, name)]
    chosen: list[_Choice] = []
    shown: Counter[str] = Counter()
    for name in wanted:
        if photo is not None:
            rows = answers.conditions_of({name})[answers.condition] & (answers.sample == answers.samples.index(photo))
            chosen += [_Choice(key, model or "") for key in dict.fromkeys(_keys(answers, rows))]
        elif name not in _NOT_SHOWN or name == attribute:
            failures = {own: keys for own, keys in _failures(answers, before, name).items() if model in (None, own)}
            chosen += _pick(failures, study.main_edits.get(name), shown, most=_MOST_PAIRS if attribute else _PAIRS)
    yield from _make_pairs(study, chosen, before)


class ExamplePair(NamedTuple):
    """An example without its pictures, and the variants and hashes of these."""

    example: Example
    before: tuple[Variant, str]
    after: tuple[Variant, str]


def _make_pairs(study: Study, chosen: Sequence[_Choice], before: Sequence[int]) -> Iterator[ExamplePair]:
    """The examples of chosen pictures, with every model's answers before and after."""
    conditions = study.answers.conditions
    before_of = {
        key: PictureKey(key.sample_id, conditions[before[conditions.index(key.condition)]], 0) for key, *_ in chosen
    }
    variants = read_pictures(study.manifest, {*before_of, *before_of.values()})
    said = _first_answers(study, variants)
    for choice in chosen:
        if choice.key in variants and before_of[choice.key] in variants:
            first, second = variants[before_of[choice.key]], variants[choice.key]
            yield ExamplePair(_example(choice, first[0], second[0], said), first, second)


class _Choice(NamedTuple):
    """A picture to show, and the model that it is shown for."""

    key: PictureKey
    model: str
    step: bool = False


def find_references(study: Study) -> list[int]:
    """For each condition, the position of the one that the table compares it with."""
    conditions = study.answers.conditions
    original = next(place for place, row in enumerate(conditions) if row.attribute == "original")
    place_of = {str(EditLevel(row.edit, row.level)): place for place, row in reversed(list(enumerate(conditions)))}
    reference = {(row.attribute, row.edit, row.level): row.reference for row in study.drops}
    return [place_of.get(reference.get(row, "original"), original) for row in conditions]


def _failures(answers: Answers, before: Sequence[int], attribute: Attribute) -> dict[str, list[PictureKey]]:
    """Each model's pictures of an attribute that it got wrong although it was right before, by rank."""
    conditions = np.flatnonzero(answers.conditions_of({attribute})).tolist()
    wrong = answers.scored & ~answers.correct & np.isin(answers.condition, conditions)
    was_right = answers.rates[:, before, :] == 1.0  # (models, conditions, samples)
    rows = wrong & was_right[answers.model, answers.condition, answers.sample]
    limit = flips_per_model(len(answers.models))
    return {
        model: heapq.nsmallest(limit, _keys(answers, rows & (answers.model == place)), key=example_rank)
        for place, model in enumerate(answers.models)
    }


def _pick(
    failures: Mapping[str, Sequence[PictureKey]], main: EditLevel | None, shown: Counter[str], most: int = _PAIRS
) -> list[_Choice]:
    """A few failures, models in turn: first its main edit, then edits that were picked least; new photos first."""
    picked: list[_Choice] = []
    edits: Counter[EditLevel] = Counter()
    for model in itertools.chain.from_iterable(itertools.repeat(list(failures), most)):
        taken = {choice.key for choice in picked}
        left = [key for key in failures[model] if key not in taken]
        if left and len(picked) < most:
            again = any(choice.model == model for choice in picked)
            times = edits if again else Counter[EditLevel]()
            key = min(left, key=lambda key: (times[_level(key)], _level(key) != main, shown[key.sample_id]))
            picked.append(_Choice(key, model))
            edits[_level(key)] += 1
            shown[key.sample_id] += 1
    return picked


def _held(answers: Answers, before: Sequence[int], attribute: Attribute) -> list[_Choice]:
    """Pictures of an attribute without a failure: right before and after, or at least answered."""
    rows = answers.scored & answers.conditions_of({attribute})[answers.condition]
    right = (
        rows & answers.correct & (answers.rates[:, before, :] == 1.0)[answers.model, answers.condition, answers.sample]
    )
    shown = np.flatnonzero(right if right.any() else rows)
    shown = shown[np.unique(answers.picture[shown], return_index=True)[1]]  # to several models
    keys = heapq.nsmallest(_HELD, _keys(answers, shown), key=example_rank)
    return [_Choice(key, answers.models[0]) for key in keys]


def _steps(answers: Answers, main: EditLevel | None, failures: Mapping[str, Sequence[PictureKey]]) -> list[_Choice]:
    """One photo at every level of the main edit: one that a model fails on at the main level, models in turn."""
    levels = [row for row in answers.conditions if main and row.edit == main.edit and row.attribute not in TOOL_CHECKS]
    fails = [(key, model) for model, keys in failures.items() for key in keys if _level(key) == main]
    if len(levels) < _FEWEST_STEPS or not fails or fails[0][0].condition.edit.startswith(_PAINTED):
        return []
    key, model = fails[0]
    steps = [_Choice(key._replace(condition=condition), model, step=True) for condition in levels]
    return steps[-_PAIRS:]


def _level(key: PictureKey) -> EditLevel:
    return EditLevel(key.condition.edit, key.condition.level)


def _example(
    choice: _Choice, before: Variant, after: Variant, said: Mapping[str, Mapping[str, tuple[str, float]]]
) -> Example:
    replies = tuple(
        ModelAnswer(model, *own[before.id], *own[after.id])
        for model, own in said.items()
        if before.id in own and after.id in own
    )
    return Example(
        **choice.key.condition._asdict(),
        sample_id=choice.key.sample_id,
        label=after.label,
        before=None,
        edited=None,
        replies=replies,
        reference="original" if before.attribute == "original" else str(EditLevel(before.edit, before.level)),
        variant_id=after.id,
        model=choice.model,
        step=choice.step,
    )


def choose_unpaired_examples(study: Study, thumbnail: ThumbnailReader) -> Iterator[Example]:
    """Yield pictures of a collection without originals, with every model's answers, attributes in turn."""
    answers = study.answers
    failed = np.isin(answers.picture, answers.picture[answers.scored & ~answers.correct])  # for some model
    shown: Counter[str] = Counter()
    keys = _take_in_turn(_spread_out(answers, failed), _WRONG, shown)
    keys += _take_in_turn(_spread_out(answers, ~failed & answers.scored), _RIGHT, shown)
    variants = read_pictures(study.manifest, keys)
    said = _first_answers(study, variants)
    for key in keys:
        variant, pixels = variants[key]
        replies = tuple(
            ModelAnswer(model, "", 0.0, *own[variant.id]) for model, own in said.items() if variant.id in own
        )
        yield Example(
            **key.condition._asdict(),
            sample_id=key.sample_id,
            label=variant.label,
            before=None,
            edited=thumbnail(variant, pixels),
            replies=replies,
            paired=False,
            variant_id=variant.id,
        )


def list_originals(study: Study) -> Iterator[PictureKey]:
    """Yield the unedited photos of a study, one picture of each."""
    table = study.manifest
    rows = np.flatnonzero(_is_one_of(table.texts("attribute"), {"original"}))
    photos = table.texts("sample_id")
    last = np.full(len(photos.dictionary), -1)
    last[photos.indices[rows]] = rows
    return iterate_keys(table, last[last >= 0])


def iterate_keys(table: TableColumns, rows: NDArray[np.intp]) -> Iterator[PictureKey]:
    """Yield the pictures of these rows of a manifest."""
    texts = [table.texts(name) for name in ("sample_id", "attribute", "edit", "level")]
    replicates = table.numbers("replicate")
    for row in rows.tolist():
        sample, *condition = (words[codes[row]] for words, codes in texts)
        yield PictureKey(sample, Condition(*condition), int(replicates[row]))


def _is_one_of(column: DictionaryColumn, wanted: Collection[str]) -> NDArray[np.bool_]:
    """Which rows of a column hold one of these texts."""
    rows: NDArray[np.bool_] = np.array([word in wanted for word in column.dictionary], bool)[column.indices]
    return rows


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


def _keys(answers: Answers, rows: NDArray[Any]) -> Iterator[PictureKey]:
    """The pictures of these rows, given as a mask or as positions; each is made when it is asked for."""
    places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    for start in range(0, len(places), _ROWS_AT_ONCE):
        few = places[start : start + _ROWS_AT_ONCE]
        columns = (answers.sample[few].tolist(), answers.condition[few].tolist(), answers.replicate[few].tolist())
        for sample, condition, replicate in zip(*columns, strict=True):
            yield PictureKey(answers.samples[sample], answers.conditions[condition], replicate)


def _first_answers(
    study: Study, variants: Mapping[PictureKey, tuple[Variant, str]]
) -> dict[str, dict[str, tuple[str, float]]]:
    """Each model's first answers to these variants, with their confidence."""
    wanted = {variant.id for variant, _ in variants.values()}
    return {model: table.first_answers(wanted) for model, table in study.predictions.items()}


def read_pictures(table: TableColumns, wanted: Collection[PictureKey]) -> dict[PictureKey, tuple[Variant, str]]:
    """The manifest's rows of these pictures, and the hashes of their pixels."""
    wanted = set(wanted)
    of_photos = np.flatnonzero(_is_one_of(table.texts("sample_id"), {key.sample_id for key in wanted}))
    rows = [row for row, key in zip(of_photos, iterate_keys(table, of_photos), strict=True) if key in wanted]
    chosen = table.take(np.array(rows, np.intp))
    variants = zip(read_variants(chosen), chosen["sha256"], strict=True)
    return {picture_key(variant): (variant, pixels) for variant, pixels in variants}
