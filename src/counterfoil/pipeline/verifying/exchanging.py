"""Verdicts out of the database and into it, and packages for people without access to the page."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from counterfoil.errors import Unusable, UserError
from counterfoil.pipeline.verifying.opening import Verification
from counterfoil.store import write_atomically
from counterfoil.types import Verdict
from counterfoil.verify.assigning import Draw, release_expired
from counterfoil.verify.exchange import check_verdicts, read_verdicts_csv, read_verdicts_json
from counterfoil.verify.exporting import exported
from counterfoil.verify.importing import Imported, import_offline, import_verdicts
from counterfoil.verify.label_studio import read_label_studio
from counterfoil.verify.leasing import lease_up_to
from counterfoil.verify.offline import OFFLINE_FORMAT, Packed, Ticket, read_offline_answers, write_package
from counterfoil.verify.people import by_name, invite, lock
from counterfoil.verify.showing import shown_variants


def export_verdicts(verification: Verification, form: str, out: Path) -> Path:
    """Write every answer in one of the known forms."""
    return write_atomically(out, exported(verification.database, form, verification.class_name, verification.place))


def import_file(verification: Verification, path: Path) -> Imported:
    """Take in the answers of a CSV, JSON or Label Studio file, or what an offline package saved."""
    text = _text(path)
    if path.suffix.lower() == ".csv":
        return _imported(verification, read_verdicts_csv(text))
    content = _json(text, path)
    if isinstance(content, list):
        return _imported(verification, read_label_studio(content))
    if isinstance(content, dict) and content.get("format") == OFFLINE_FORMAT:
        return _from_package(verification, content)
    if isinstance(content, dict):
        return _imported(verification, read_verdicts_json(content, verification.project.workspace_digest))
    raise UserError(f"expected verdicts as CSV, JSON or Label Studio's JSON, got {path}, which holds none of them")


def package(verification: Verification, name: str, count: int, days: float, out: Path) -> int:
    """Write an offline package with up to `count` tasks for somebody; gives back how many it holds."""
    now = time.time()
    with verification.database.writing() as connection:
        release_expired(connection, now)
    with verification.database.writing() as connection:
        person = by_name(connection, name) or invite(connection, name, "annotator", now, now)
        if person.role != "annotator":
            raise UserError(f"expected the name of an annotator, but '{name}' is an administrator")
        if not lock(connection, person.id):
            raise UserError(f"expected somebody whose answers count, but '{name}' is left out: {person.reason}")
        leases = lease_up_to(connection, Draw(person, verification.questionnaire, now, 24 * 60 * days), count)
        variants = shown_variants(connection, person.id)
    if not leases:
        raise UserError(f"expected pictures for {name}, but none are left that they have not seen")
    tasks = [Packed(lease.task, verification.class_name(lease.label), *variants[lease.task]) for lease in leases]
    made = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="seconds")
    ticket = Ticket(person.name, verification.project.workspace_digest, made)
    try:
        write_package(out, ticket, verification.signer, (verification.questionnaire, tasks), verification.picture)
    except Unusable as error:
        raise UserError(f"expected the pictures of the workspace as they were built, but {error}") from error
    return len(tasks)


def _imported(verification: Verification, verdicts: list[Verdict]) -> Imported:
    pictures = {row.variant.id for row in verification.workspace.exhibits}
    check_verdicts(verdicts, verification.questionnaire, pictures)
    with verification.database.writing() as connection:
        return import_verdicts(connection, verification.questionnaire, verdicts, time.time())


def _from_package(verification: Verification, content: dict[str, Any]) -> Imported:
    ticket, rows = read_offline_answers(content, verification.signer)
    if ticket.workspace_digest != verification.project.workspace_digest:
        raise UserError("expected answers about the pictures of this workspace, got a package about others")
    return import_offline(verification.database, verification.questionnaire, ticket.annotator, rows, time.time())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"expected a file of verdicts, got {path}, which cannot be read: {error}") from error


def _json(text: str, path: Path) -> Any:
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # halves of characters are no text: they could not be stored
        return found
    except (ValueError, RecursionError) as error:
        raise UserError(f"expected verdicts as .csv or JSON, got {path}, which is neither: {error}") from error
