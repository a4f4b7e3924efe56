"""Export of every answer as CSV, JSON, Label Studio tasks, or the labelling set-up for them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select

from counterfoil.store.files import write_atomically
from counterfoil.verification.label_studio import PictureTask, format_setup, format_tasks
from counterfoil.verification.project import Verification
from counterfoil.verification.schema import pictures
from counterfoil.verification.submissions import read_all_verdicts
from counterfoil.verification.verdict_files import format_csv, format_json


class ExportFormat(NamedTuple):
    """The extension and media type of an exported file."""

    ending: str
    media_type: str


FORMATS = {
    "csv": ExportFormat("csv", "text/csv; charset=utf-8"),
    "json": ExportFormat("json", "application/json"),
    "label-studio": ExportFormat("label-studio.json", "application/json"),
    "label-studio-setup": ExportFormat("label-studio.xml", "application/xml"),
}


def export_verdicts(verification: Verification, form: str, out: Path) -> Path:
    """Write every answer to a file in one of the `FORMATS`."""
    return write_atomically(out, format_verdicts(verification, form))


def format_verdicts(verification: Verification, form: str) -> str:
    """Return the answers of everyone, excluded people included."""
    questionnaire = verification.questionnaire
    if form == "label-studio-setup":
        return format_setup(questionnaire)
    work = select(pictures.c.variant_id, pictures.c.label).where(pictures.c.role == "work").order_by(pictures.c.id)
    with verification.database.reading() as connection:
        verdicts = read_all_verdicts(connection)
        rows = connection.execute(work).all()
    if form == "csv":
        return format_csv(verdicts)
    if form == "json":
        return format_json(verdicts, questionnaire, verification.project.workspace_digest)
    tasks = [
        PictureTask(variant, verification.class_name(label), verification.label_studio_url(variant))
        for variant, label in rows
    ]
    return format_tasks(tasks, verdicts, questionnaire)
