"""Every answer as a file in one of the known forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import Connection, select

from counterfoil.errors import UserError
from counterfoil.verify import tables
from counterfoil.verify.database import Database
from counterfoil.verify.exchange import verdicts_csv, verdicts_json
from counterfoil.verify.label_studio import Pictured, label_studio_setup, label_studio_tasks
from counterfoil.verify.project import stored_project
from counterfoil.verify.verdicts import all_verdicts


class Format(NamedTuple):
    """How a form is called as a file."""

    ending: str
    media: str


FORMATS = {
    "csv": Format("csv", "text/csv; charset=utf-8"),
    "json": Format("json", "application/json"),
    "label-studio": Format("label-studio.json", "application/json"),
    "label-studio-setup": Format("label-studio.xml", "application/xml"),
}


def exported(database: Database, form: str, class_name: Callable[[str], str], place: Callable[[str], str]) -> str:
    """The answers of everybody, those left out included; `place` says where Label Studio finds a variant's picture."""
    project = stored_project(database)
    if project is None:
        raise UserError("expected a verification that has begun, got none; start it with `counterfoil verify serve`")
    with database.reading() as connection:
        verdicts = all_verdicts(connection)
        if form == "label-studio":
            return label_studio_tasks(_pictured(connection, class_name, place), verdicts, project.questionnaire)
    if form == "csv":
        return verdicts_csv(verdicts)
    if form == "json":
        return verdicts_json(verdicts, project.questionnaire, project.workspace_digest)
    return label_studio_setup(project.questionnaire)


def _pictured(connection: Connection, class_name: Callable[[str], str], place: Callable[[str], str]) -> list[Pictured]:
    """The work, without the hidden controls."""
    query = select(tables.pictures.c.variant_id, tables.pictures.c.label).where(tables.pictures.c.role == "work")
    rows = connection.execute(query.order_by(tables.pictures.c.id))
    return [Pictured(variant, class_name(label), place(variant)) for variant, label in rows]
