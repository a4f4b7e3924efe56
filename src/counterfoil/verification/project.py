"""Classes easily confused, unfit as controls.

Work pictures and hidden controls drawn; project: pictures and questions of one workspace; pictures behind an
annotator's tasks.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlalchemy import Connection, insert, select

from counterfoil.errors import UserError
from counterfoil.labels.label_space import LabelSpace, imagenet1k
from counterfoil.types import StoredVariant, Variant
from counterfoil.verification import database_tables
from counterfoil.verification.database import Database
from counterfoil.verification.questionnaire import Questionnaire

_ANIMALS = 398  # ImageNet's columns begin with them, near ones side by side
_NEAR = 60  # columns


def confusable_classes(space: LabelSpace) -> Callable[[str, str], bool]:
    """Classes whose names share a word, and animals of ImageNet that stand near one another."""
    words = {label: _words(space.name_of(label)) for label in space.labels}
    known = {label: place for place, label in enumerate(imagenet1k().labels[:_ANIMALS])}

    def alike(first: str, second: str) -> bool:
        near = first in known and second in known and abs(known[first] - known[second]) < _NEAR
        return near or bool(words[first] & words[second])

    return alike


def _words(name: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"\w+", name.lower().replace("_", " ")) if len(word) > 2)


Role: TypeAlias = Literal["work", "good", "bad"]
Alike: TypeAlias = Callable[[str, str], bool]  # whether somebody might take one label's object for the other's


@dataclass(frozen=True)
class ShownPicture:
    """A picture as annotators get it: under which class, beside which original, and why."""

    variant_id: str
    label: str
    role: Role
    original_id: str | None


def draw(
    pictures: Sequence[StoredVariant], chosen: Collection[str], questionnaire: Questionnaire, alike: Alike
) -> list[ShownPicture]:
    """The chosen pictures under their own classes, and controls from the pictures that were not chosen.

    A known bad one gets a class that nobody would take for its own; `alike` says which ones somebody might.
    """
    wanted = set(chosen)
    work = [stored.variant for stored in pictures if stored.variant.id in wanted]
    if not work:
        raise UserError("expected pictures to verify, got none; build or mine a workspace that holds edited pictures")
    spare = [stored.variant for stored in pictures if stored.variant.id not in wanted]
    originals = _originals(pictures) if questionnaire.show_original else {}

    def shown(variant: Variant, label: str, role: Role) -> ShownPicture:
        return ShownPicture(variant.id, label, role, originals.get(variant.sample_id))

    wrong = _wrong_labels((*work, *spare), questionnaire.seed, alike)
    good, bad = _controls(work, spare, questionnaire, wrong)
    return [
        *(shown(variant, variant.label, "work") for variant in work),
        *(shown(variant, variant.label, "good") for variant in good),
        *(shown(variant, wrong[variant.id], "bad") for variant in bad),
    ]


def fraction(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone: the same in every process and on every machine."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


def _originals(pictures: Iterable[StoredVariant]) -> dict[str | None, str]:
    return {e.variant.sample_id: e.variant.id for e in pictures if e.variant.attribute == "original"}


def _controls(
    work: Sequence[Variant], spare: Sequence[Variant], questionnaire: Questionnaire, wrong: Mapping[str, str]
) -> tuple[list[Variant], list[Variant]]:
    """Known good ones are unchanged photos, known bad ones any other picture, which will get a wrong class."""
    count = _control_count(len(work), questionnaire)
    sources = {variant.sample_id for variant in work}
    unchanged = [variant for variant in spare if variant.attribute in ("original", "control")]
    # a photo whose edit is the work comes first: mining has found that models know the object in it
    good = sorted(
        _shuffled(unchanged, "good", questionnaire.seed), key=lambda variant: variant.sample_id not in sources
    )
    half = good[: min(count, math.ceil(len(good) / 2))]
    taken = {variant.id for variant in half}
    rest = [variant for variant in spare if variant.id not in taken and variant.id in wrong]
    # an edited picture under a wrong class gives nothing away; an unchanged photo might
    bad = sorted(_shuffled(rest, "bad", questionnaire.seed), key=lambda variant: variant.attribute == "original")
    return half, bad[:count]


def _control_count(pictures: int, questionnaire: Questionnaire) -> int:
    """Enough of each kind for somebody who sees every picture, so that nobody meets a control twice."""
    return math.ceil(questionnaire.control_share * pictures)


def _shuffled(variants: Sequence[Variant], kind: str, seed: int) -> list[Variant]:
    return sorted(variants, key=lambda variant: fraction(seed, kind, variant.id))


def _wrong_labels(variants: Sequence[Variant], seed: int, alike: Alike) -> dict[str, str]:
    """A class for every picture that it surely does not show, where there is one."""
    labels = sorted({variant.label for variant in variants})
    others = {label: [other for other in labels if other != label and not alike(label, other)] for label in labels}
    return {
        variant.id: others[variant.label][int(fraction(seed, "label", variant.id) * len(others[variant.label]))]
        for variant in variants
        if others[variant.label]
    }


_PRIME = 2**31 - 1  # shuffles and the factors that permute them lie below it


@dataclass(frozen=True)
class Project:
    """What was stored when verification began."""

    workspace_digest: str
    questionnaire: Questionnaire
    began_at: float = 0.0  # seconds since 1970


def stored_project(database: Database) -> Project | None:
    """The verification that the database holds; None where none has begun."""
    with database.reading() as connection:
        row = connection.execute(select(database_tables.project)).first()
    if row is None:
        return None
    return Project(row.workspace_digest, Questionnaire.model_validate_json(row.questionnaire), row.began_at)


def begin(database: Database, project: Project, shown: Iterable[ShownPicture], now: float) -> None:
    """Store the questions and the pictures; whoever begins at the same moment finds it done."""
    with database.writing() as connection:
        if connection.execute(select(database_tables.project.c.id)).first() is not None:
            return
        connection.execute(
            insert(database_tables.project).values(
                id=1, workspace_digest=project.workspace_digest, began_at=now,
                questionnaire=project.questionnaire.model_dump_json(),
            )
        )  # fmt: skip
        rows = [_row(picture, project.questionnaire) for picture in shown]
        connection.execute(insert(database_tables.pictures), rows)
        connection.exec_driver_sql("ANALYZE")  # planners guess badly about tables that were just filled


def check_same(project: Project, questionnaire: Questionnaire) -> None:
    """Answers to other questions than those that verification began with cannot be put together."""
    before, now = (json.loads(found.model_dump_json()) for found in (project.questionnaire, questionnaire))
    different = [name for name in before if before[name] != now[name]]
    if different:
        raise UserError(
            f"expected the questions that verification began with, but {' and '.join(different)} differ now;"
            " leave --questions out to go on, or give another --database, such as sqlite:///second.sqlite, for a"
            " verification of its own"
        )


def work_ids(connection: Connection) -> set[str]:
    """The variants that people are asked about, controls left out."""
    query = select(database_tables.pictures.c.variant_id).where(database_tables.pictures.c.role == "work")
    return set(connection.execute(query).scalars())


def role_counts(database: Database) -> Mapping[str, int]:
    """How many pictures there are of each role."""
    with database.reading() as connection:
        roles = list(connection.execute(select(database_tables.pictures.c.role)).scalars())
    return {role: roles.count(role) for role in ("work", "good", "bad")}


def _row(picture: ShownPicture, questionnaire: Questionnaire) -> dict[str, object]:
    return {
        "variant_id": picture.variant_id,
        "original_id": picture.original_id,
        "label": picture.label,
        "role": picture.role,
        "shuffle": 1 + int(fraction(questionnaire.seed, "shuffle", picture.variant_id) * (_PRIME - 1)),
        "wanted": questionnaire.annotators if picture.role == "work" else 0,
        "taken": 0,
    }


_assignments = database_tables.assignments.c
_pictures = database_tables.pictures.c


def shown_variants(connection: Connection, person_id: int) -> dict[str, tuple[str, str | None]]:
    """Of every task of a person the variant that it shows, and the one beside it where there is one."""
    query = (
        select(_assignments.task, _pictures.variant_id, _pictures.original_id)
        .join(database_tables.pictures, _pictures.id == _assignments.picture_id)
        .where(_assignments.person_id == person_id)
    )
    return {task: (variant, original) for task, variant, original in connection.execute(query)}


def held_variant(connection: Connection, person_id: int, handle: str) -> str | None:
    """The variant behind a handle that this person holds; None for everybody else."""
    query = (
        select(_pictures.variant_id, _pictures.original_id, _assignments.original_handle)
        .join(database_tables.pictures, _pictures.id == _assignments.picture_id)
        .where(_assignments.person_id == person_id, _assignments.state.in_(("open", "done")))
        .where((_assignments.picture_handle == handle) | (_assignments.original_handle == handle))
    )
    found = connection.execute(query).first()
    if found is None:
        return None
    shown: str | None = found.original_id if found.original_handle == handle else found.variant_id
    return shown
