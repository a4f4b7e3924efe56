"""Examples: photos that flipped and held; examples without originals; thumbnails kept or rendered again."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.sources.pixels import hash_pixels
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.drops import flipped
from counterfoil.store.files import write_atomically
from counterfoil.store.prediction_tables import read_variants
from counterfoil.study.runs import Study
from counterfoil.types import Attribute, Picture, Variant


@dataclass(frozen=True)
class ModelAnswer:
    """What one model answered before and after an edit; labels and confidences in 0..1."""

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
    """One photo before and after one edit, with small pictures of both where they are at hand."""

    attribute: Attribute
    edit: str
    level: str
    sample_id: str
    label: str
    original: bytes | None  # JPEG
    edited: bytes | None
    replies: tuple[ModelAnswer, ...]
    paired: bool = True  # False for a picture of a collection that has no original: there is nothing before


def small_jpeg(image: NDArray[np.uint8], side: int, quality: int) -> bytes:
    """The picture as a JPEG whose longer side has at most so many pixels."""
    scale = min(1.0, side / max(image.shape[:2]))
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return data.tobytes()


PictureLoader: TypeAlias = Callable[[Variant], "Picture | None"]

_THUMBNAIL = 192  # pixels of the longer side
_QUALITY = 82


@dataclass(frozen=True)
class ThumbnailCache:
    """The pictures of a report; what had to be made is kept in `keep`, so that the report can be made again."""

    folders: tuple[Path, ...]
    make: PictureLoader
    keep: Path | None = None
    ready: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # JPEGs made before, by hash of the pixels

    def picture(self, variant: Variant, pixels: str) -> bytes | None:
        """A JPEG of the variant whose pixels have this hash; None where neither it nor its photo is at hand."""
        for folder in self.folders:
            path = _thumbnail(folder, pixels)
            if path.is_file():
                return path.read_bytes()
        jpeg = self.ready.get(pixels) or self._made(variant, pixels)
        if jpeg is not None and self.keep is not None:
            write_atomically(_thumbnail(self.keep, pixels), jpeg)
        return jpeg

    def _made(self, variant: Variant, pixels: str) -> bytes | None:
        made = self.make(variant)
        return None if made is None or hash_pixels(made.image) != pixels else thumbnail_jpeg(made.image)


def _thumbnail(folder: Path, pixels: str) -> Path:
    """Named by the picture's hash: an older picture of the same variant is never taken for it."""
    return folder / "thumbnails" / f"{pixels[:20]}.jpg"


def thumbnail_jpeg(image: NDArray[np.uint8]) -> bytes:
    """A picture on the page's scale."""
    return small_jpeg(image, _THUMBNAIL, _QUALITY)


POOL = 72  # flips per attribute, over all models, from which those shown are chosen
NO_EXAMPLES = {"original", "presence"}  # being wrong where the object is gone is no failure


class ExampleBudget(NamedTuple):
    """How many pictures may be shown: every one has to be made again, about a tenth of a second each."""

    most: int
    each: int  # of one attribute


_FLIPS, _HELD, _OTHERS = ExampleBudget(60, 18), ExampleBudget(24, 4), ExampleBudget(12, 12)
FEW_PHOTOS = 12  # of a trial: whoever brings so few looks for each of them


class PictureKey(NamedTuple):
    """One edited picture."""

    sample_id: str
    condition: Condition
    replicate: int


def choose_examples(study: Study, album: ThumbnailCache) -> Iterator[Example]:
    """The chosen pictures with what every model said, attributes in the order of the table."""
    shown: Counter[str] = Counter()
    picks = [*in_turn(_flips(study.answers), _FLIPS, shown), *in_turn(_held(study.answers), _HELD, shown)]
    picks += in_turn(_others(study.answers, shown), _OTHERS, shown)
    originals = {PictureKey(pick.sample_id, _original(study.answers), 0) for pick in picks}
    variants = variants_of(study.manifest, {*picks, *originals})
    wanted = {variant.id for variant, _ in variants.values()}
    said = {model: table.first_answers(wanted) for model, table in study.predictions.items()}
    for pick in picks:
        before, after = variants[PictureKey(pick.sample_id, _original(study.answers), 0)], variants[pick]
        yield Example(
            *pick.condition, pick.sample_id, after[0].label, album.picture(*before), album.picture(*after),
            tuple(_replies(said, before[0], after[0])),
        )  # fmt: skip


def _replies(
    said: Mapping[str, Mapping[str, tuple[str, float]]], before: Variant, after: Variant
) -> Iterator[ModelAnswer]:
    for model, answers in said.items():
        if before.id in answers and after.id in answers:
            yield ModelAnswer(model, *answers[before.id], *answers[after.id])


def _original(answers: Answers) -> Condition:
    return next(condition for condition in answers.conditions if condition.attribute == "original")


def _flips(answers: Answers) -> list[PictureKey]:
    found = flipped(answers, limit=flips_per_model(len(answers.models)))
    picks = {PictureKey(flip.sample_id, flip.condition, flip.replicate) for flip in found}
    return sorted(picks, key=example_rank)


def flips_per_model(models: int) -> int:
    """How many flips of an attribute each of so many models brings into the pool."""
    return max(8, POOL // models)


def in_turn(picks: list[PictureKey], room: ExampleBudget, shown: Counter[str]) -> list[PictureKey]:
    """Every attribute in turn, so that none crowds out another; photos that `shown` counts least come first."""
    groups: defaultdict[str, list[PictureKey]] = defaultdict(list)
    for pick in picks:
        groups[pick.condition.attribute].append(pick)
    chosen: list[PictureKey] = []
    for _ in range(room.each):
        for members in groups.values():
            if members and len(chosen) < room.most:
                pick = min(members, key=lambda member: shown[member.sample_id])
                members.remove(pick)
                shown[pick.sample_id] += 1
                chosen.append(pick)
    return chosen


def _held(answers: Answers) -> list[PictureKey]:
    """Pictures on which no model flipped and one was right both times; a few per attribute, by lot."""
    groups: defaultdict[str, list[PictureKey]] = defaultdict(list)
    for row in np.flatnonzero(_held_rows(answers)):
        condition = answers.conditions[answers.condition[row]]
        groups[condition.attribute].append(
            PictureKey(answers.samples[answers.sample[row]], condition, int(answers.replicate[row]))
        )
    return [pick for picks in groups.values() for pick in sorted(set(picks), key=example_rank)[:POOL]]


def _others(answers: Answers, shown: Counter[str]) -> list[PictureKey]:
    """Where photos are few, pictures of those that neither flipped nor held: models were wrong from the beginning."""
    if len(answers.samples) > FEW_PHOTOS:
        return []
    attribute = np.array([condition.attribute for condition in answers.conditions], object)[answers.condition]
    known = set(answers.sample[answers.scored & (attribute == "original")].tolist())
    rows = np.flatnonzero(answers.scored & ~np.isin(attribute, list(NO_EXAMPLES)))
    picks = {
        PictureKey(
            answers.samples[answers.sample[row]],
            answers.conditions[answers.condition[row]],
            int(answers.replicate[row]),
        )
        for row in rows
        if answers.sample[row] in known
    }
    return sorted((pick for pick in picks if not shown[pick.sample_id]), key=example_rank)


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


def example_rank(pick: PictureKey) -> bytes:
    """A fixed lot: the same picture is drawn in every report."""
    return hashlib.sha256("\0".join((pick.sample_id, *pick.condition, str(pick.replicate))).encode()).digest()


def variants_of(table: Mapping[str, NDArray[Any]], wanted: set[PictureKey]) -> dict[PictureKey, tuple[Variant, str]]:
    """The manifest's lines of these pictures, and the hashes of their pixels."""
    columns = (table[name] for name in ("sample_id", "attribute", "edit", "level", "replicate"))
    rows = [
        row
        for row, (sample, attribute, edit, level, replicate) in enumerate(zip(*columns, strict=True))
        if (sample, (attribute, edit, level), int(replicate)) in wanted
    ]
    chosen = _rows(table, rows)
    variants = zip(read_variants(chosen), chosen["sha256"], strict=True)
    return {picture_key(variant): (variant, pixels) for variant, pixels in variants}


def _rows(table: Mapping[str, NDArray[Any]], rows: list[int]) -> dict[str, NDArray[Any]]:
    return {name: column[rows] for name, column in table.items()}


def picture_key(variant: Variant) -> PictureKey:
    """The picture that a variant is."""
    condition = Condition(variant.attribute, variant.edit, variant.level)
    return PictureKey(str(variant.sample_id), condition, variant.replicate)


_WRONG, _RIGHT = ExampleBudget(60, 18), ExampleBudget(16, 4)
_POOL = 72  # pictures of an attribute from which those shown are chosen
_MOST_LOTS = 20_000  # answers that take part in the draw, spread over all of them


def choose_unpaired_examples(study: Study, album: ThumbnailCache) -> Iterator[Example]:
    """The chosen pictures with what every model said, attributes in turn."""
    failed = _failed(study.answers)
    shown: Counter[str] = Counter()
    picks = [
        *in_turn(_drawn(study.answers, failed), _WRONG, shown),
        *in_turn(_drawn(study.answers, ~failed & study.answers.scored), _RIGHT, shown),
    ]
    variants = variants_of(study.manifest, set(picks))
    wanted = {variant.id for variant, _ in variants.values()}
    said = {model: table.first_answers(wanted) for model, table in study.predictions.items()}
    for pick in picks:
        variant, pixels = variants[pick]
        replies = [ModelAnswer(model, "", 0.0, *told[variant.id]) for model, told in said.items() if variant.id in told]
        yield Example(
            *pick.condition, pick.sample_id, variant.label, None, album.picture(variant, pixels), tuple(replies),
            paired=False,
        )  # fmt: skip


def _failed(answers: Answers) -> NDArray[np.bool_]:
    """Of each answer whether some model got its picture wrong."""
    shape = (len(answers.conditions), len(answers.samples), int(answers.replicate.max(initial=0)) + 1)
    picture = np.ravel_multi_index((answers.condition, answers.sample, answers.replicate), shape)
    wrong = np.zeros(int(np.prod(shape)), bool)
    wrong[picture[answers.scored & ~answers.correct]] = True
    return np.asarray(wrong[picture], bool)


def _drawn(answers: Answers, rows: NDArray[np.bool_]) -> list[PictureKey]:
    """A few pictures of each attribute, by lot."""
    groups: defaultdict[str, set[PictureKey]] = defaultdict(set)
    found = np.flatnonzero(rows)
    for row in found[:: 1 + len(found) // _MOST_LOTS]:
        condition = answers.conditions[answers.condition[row]]
        pick = PictureKey(answers.samples[answers.sample[row]], condition, int(answers.replicate[row]))
        groups[condition.attribute].add(pick)
    return [pick for picks in groups.values() for pick in sorted(picks, key=example_rank)[:_POOL]]
