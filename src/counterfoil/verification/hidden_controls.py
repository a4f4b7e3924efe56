"""Hidden controls: which pictures serve as controls, and their places among an annotator's tasks.

A known good control is an unchanged photo under its own class, a known bad one a picture under a wrong class, and a
repeat a picture that the same annotator answered before. All random draws follow from the questionnaire's seed.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from sqlalchemy import Connection, func, select

from counterfoil.errors import UserError
from counterfoil.labels.label_space import LabelSpace, imagenet1k
from counterfoil.types import StoredVariant, Variant
from counterfoil.verification.leases import AnnotatorRequest
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.schema import assignments, pictures

PictureRole: TypeAlias = Literal["work", "good", "bad"]
Confusable: TypeAlias = Callable[[str, str], bool]  # whether one label's object might be taken for the other's

_REPEAT_AFTER = 8  # other pictures between the first showing and the repeat
_ANIMALS = 398  # the first columns of ImageNet, similar animals side by side
_NEAR = 60  # columns


@dataclass(frozen=True)
class ShownPicture:
    """A picture as shown to annotators: its class, its original beside it, and its role."""

    variant_id: str
    label: str
    role: PictureRole
    original_id: str | None


def choose_pictures(
    stored: Sequence[StoredVariant], chosen: Collection[str], questionnaire: Questionnaire, confusable: Confusable
) -> list[ShownPicture]:
    """Return the selected pictures under their own classes, and controls from the other pictures.

    A known bad control gets a class that `confusable` does not relate to its own.
    """
    wanted = set(chosen)
    work = [row.variant for row in stored if row.variant.id in wanted]
    if not work:
        raise UserError("expected pictures to verify, got none; build or mine a workspace that holds edited pictures")
    others = [row.variant for row in stored if row.variant.id not in wanted]
    originals = {row.variant.sample_id: row.variant.id for row in stored if row.variant.attribute == "original"}

    def show(variant: Variant, label: str, role: PictureRole) -> ShownPicture:
        original = originals.get(variant.sample_id) if questionnaire.show_original else None
        return ShownPicture(variant.id, label, role, original)

    wrong = _draw_wrong_labels((*work, *others), questionnaire.seed, confusable)
    good, bad = _choose_controls(work, others, questionnaire, wrong)
    return [
        *(show(variant, variant.label, "work") for variant in work),
        *(show(variant, variant.label, "good") for variant in good),
        *(show(variant, wrong[variant.id], "bad") for variant in bad),
    ]


def find_confusable_classes(space: LabelSpace) -> Confusable:
    """Return the relation of classes whose names share a word, and of ImageNet animals with near columns."""
    words = {label: _split_words(space.name_of(label)) for label in space.labels}
    columns = {label: column for column, label in enumerate(imagenet1k().labels[:_ANIMALS])}

    def confusable(first: str, second: str) -> bool:
        near = first in columns and second in columns and abs(columns[first] - columns[second]) < _NEAR
        return near or bool(words[first] & words[second])

    return confusable


def choose_control(
    connection: Connection, request: AnnotatorRequest, place: int, used: set[int]
) -> tuple[int, str] | None:
    """Return a control (picture, kind) for this place of the annotator's sequence; None where none is due or left."""
    name, seed = request.person.name, request.questionnaire.seed
    if not _is_control_place(seed, request.questionnaire.control_share, name, place):
        return None
    for kind in sorted(("good", "bad", "repeat"), key=lambda kind: hash_fraction(seed, kind, name, place)):
        person = request.person.id
        candidates = _find_repeats(connection, person) if kind == "repeat" else _find_unseen(connection, person, kind)
        left = [picture for picture in candidates if picture not in used]
        if left:
            return left[int(hash_fraction(seed, "which", name, place) * len(left))], kind
    return None


def count_expected_controls(connection: Connection, request: AnnotatorRequest, work: int) -> int:
    """Return the expected number of hidden controls among this many more pictures of the work."""
    questionnaire = request.questionnaire
    if not work or not questionnaire.control_share:
        return 0
    kinds = select(assignments.c.kind, func.count().label("times")).group_by(assignments.c.kind)
    rows = connection.execute(kinds.where(assignments.c.person_id == request.person.id))
    had = {row.kind: int(row.times) for row in rows}
    place, left, controls = sum(had.values()), work, 0
    while left:
        is_control = _is_control_place(questionnaire.seed, questionnaire.control_share, request.person.name, place)
        controls, left, place = controls + is_control, left - (not is_control), place + 1
    known = select(func.count()).select_from(pictures).where(pictures.c.role != "work")
    unseen = int(connection.execute(known).scalar_one()) - had.get("good", 0) - had.get("bad", 0)
    repeats = had.get("work", 0) + work - _REPEAT_AFTER - had.get("repeat", 0)
    return min(controls, max(0, unseen) + max(0, repeats))


def hash_fraction(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts alone: the same in every process and on every machine."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


def _choose_controls(
    work: Sequence[Variant], others: Sequence[Variant], questionnaire: Questionnaire, wrong: Mapping[str, str]
) -> tuple[list[Variant], list[Variant]]:
    """Choose known good controls (unchanged photos) and known bad ones (other pictures with a wrong class)."""

    def shuffle(variants: Sequence[Variant], kind: str) -> list[Variant]:
        return sorted(variants, key=lambda variant: hash_fraction(questionnaire.seed, kind, variant.id))

    # enough of each kind for an annotator who sees every picture, so that no control is shown twice
    count = math.ceil(questionnaire.control_share * len(work))
    samples = {variant.sample_id for variant in work}
    unchanged = [variant for variant in others if variant.attribute in ("original", "control")]
    # photos whose edits are the work come first: mining has found that models recognise the object in them
    good = sorted(shuffle(unchanged, "good"), key=lambda variant: variant.sample_id not in samples)
    good = good[: min(count, math.ceil(len(good) / 2))]
    taken = {variant.id for variant in good}
    rest = [variant for variant in others if variant.id not in taken and variant.id in wrong]
    # an edited picture under a wrong class looks like the work; an unchanged photo might not
    bad = sorted(shuffle(rest, "bad"), key=lambda variant: variant.attribute == "original")
    return good, bad[:count]


def _draw_wrong_labels(variants: Sequence[Variant], seed: int, confusable: Confusable) -> dict[str, str]:
    """A class for each picture that it certainly does not show, where there is one."""
    labels = sorted({variant.label for variant in variants})
    others = {label: [other for other in labels if other != label and not confusable(label, other)] for label in labels}
    return {
        variant.id: others[variant.label][int(hash_fraction(seed, "label", variant.id) * len(others[variant.label]))]
        for variant in variants
        if others[variant.label]
    }


def _split_words(name: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"\w+", name.lower().replace("_", " ")) if len(word) > 2)


@lru_cache(maxsize=1 << 17)  # called again after every answer
def _is_control_place(seed: int, share: float, name: str, place: int) -> bool:
    """Whether a hidden control is due at this place of an annotator's sequence."""
    return hash_fraction(seed, "control", name, place) < share


def _find_unseen(connection: Connection, person_id: int, role: str) -> Sequence[int]:
    """Controls of a role that this annotator has not seen."""
    had = select(assignments.c.picture_id).where(assignments.c.person_id == person_id, assignments.c.state != "expired")
    query = select(pictures.c.id).where(pictures.c.role == role, pictures.c.id.not_in(had)).order_by(pictures.c.id)
    return connection.execute(query).scalars().all()


def _find_repeats(connection: Connection, person_id: int) -> Sequence[int]:
    """Pictures that this annotator answered a while ago and has not been shown again."""
    query = select(assignments).where(assignments.c.person_id == person_id).order_by(assignments.c.id)
    rows = connection.execute(query).all()
    repeated = {row.picture_id for row in rows if row.kind == "repeat"}
    answered = [row.picture_id for row in rows[:-_REPEAT_AFTER] if row.kind == "work" and row.state == "done"]
    return [picture for picture in answered if picture not in repeated]
