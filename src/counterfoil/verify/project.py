"""The verification of one workspace: it begins once, and goes on only with the same pictures and questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from counterfoil.errors import UserError
from counterfoil.verify import tables
from counterfoil.verify.database import Database
from counterfoil.verify.drawing import Shown, fraction
from counterfoil.verify.questions import Questionnaire

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
        row = connection.execute(select(tables.project)).first()
    if row is None:
        return None
    return Project(row.workspace_digest, Questionnaire.model_validate_json(row.questionnaire), row.began_at)


def begin(database: Database, project: Project, shown: Iterable[Shown], now: float) -> None:
    """Store the questions and the pictures; whoever begins at the same moment finds it done."""
    with database.writing() as connection:
        if connection.execute(select(tables.project.c.id)).first() is not None:
            return
        connection.execute(
            insert(tables.project).values(
                id=1, workspace_digest=project.workspace_digest, began_at=now,
                questionnaire=project.questionnaire.model_dump_json(),
            )
        )  # fmt: skip
        rows = [_row(picture, project.questionnaire) for picture in shown]
        connection.execute(insert(tables.pictures), rows)
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
    query = select(tables.pictures.c.variant_id).where(tables.pictures.c.role == "work")
    return set(connection.execute(query).scalars())


def role_counts(database: Database) -> Mapping[str, int]:
    """How many pictures there are of each role."""
    with database.reading() as connection:
        roles = list(connection.execute(select(tables.pictures.c.role)).scalars())
    return {role: roles.count(role) for role in ("work", "good", "bad")}


def _row(picture: Shown, questionnaire: Questionnaire) -> dict[str, object]:
    return {
        "variant_id": picture.variant_id,
        "original_id": picture.original_id,
        "label": picture.label,
        "role": picture.role,
        "shuffle": 1 + int(fraction(questionnaire.seed, "shuffle", picture.variant_id) * (_PRIME - 1)),
        "wanted": questionnaire.annotators if picture.role == "work" else 0,
        "taken": 0,
    }
