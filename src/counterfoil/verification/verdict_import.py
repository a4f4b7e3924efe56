"""Export, import, offline package of a workspace; import of verdicts and offline answers."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from counterfoil.errors import Unusable, UserError
from counterfoil.store.files import write_atomically
from counterfoil.types import Verdict
from counterfoil.verification import database_tables
from counterfoil.verification.assignment import Draw, give, lease_up_to, release_expired, take
from counterfoil.verification.database import Database
from counterfoil.verification.exchange import (
    check_verdicts,
    exported,
    read_label_studio,
    read_verdicts_csv,
    read_verdicts_json,
)
from counterfoil.verification.offline_package import (
    OFFLINE_FORMAT,
    OfflineAnswer,
    Packed,
    Ticket,
    read_offline_answers,
    write_package,
)
from counterfoil.verification.people import Person, by_name, invite, lock
from counterfoil.verification.project import shown_variants
from counterfoil.verification.project_setup import Verification
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.submissions import Refused, Submission, check_answers, submit, version_answers

_YEAR_10000 = 253402300800.0

_assignments = database_tables.assignments.c
_pictures = database_tables.pictures.c


@dataclass(frozen=True)
class Imported:
    """How many answers came in, and why others did not."""

    taken: int
    left_out: Mapping[str, int]


@dataclass(frozen=True)
class _Given:
    """One version of one person's answers to one picture."""

    answers: Mapping[str, str]
    seconds: float
    time: str


def import_verdicts(
    connection: Connection, questionnaire: Questionnaire, verdicts: Sequence[Verdict], now: float
) -> Imported:
    """Append what is not there yet: a file that is taken in twice counts once, and nothing goes beyond n."""
    results: Counter[str] = Counter()
    for (name, variant, kind), versions in _grouped(verdicts).items():
        person = by_name(connection, name) or invite(connection, name, "annotator", now, now)
        if person.role != "annotator":
            raise UserError(f"expected answers of annotators, but '{name}' is an administrator; give another name")
        results += _take_in(connection, Draw(person, questionnaire, now), (variant, kind), versions)
    return Imported(results.pop("", 0), dict(results))


def import_offline(
    database: Database, questionnaire: Questionnaire, name: str, rows: Iterable[OfflineAnswer], now: float
) -> Imported:
    """Append what a package saved under its own tasks."""
    results: Counter[str] = Counter()
    with database.writing() as connection:
        person = by_name(connection, name)
        if person is None:
            raise UserError(f"expected an annotator of this verification, but nobody is called '{name}'")
        for row in rows:
            draw = Draw(person, questionnaire, _seconds(row.time, now))
            try:
                new = submit(connection, draw, Submission(row.task, row.answers, row.seconds, row.key))
            except Refused as error:
                results[f"cannot be taken: {error}"] += 1
            else:
                results["" if new else "were there already"] += 1
    return Imported(results.pop("", 0), dict(results))


def _grouped(verdicts: Sequence[Verdict]) -> dict[tuple[str, str, str], list[_Given]]:
    """The versions of every person's answers to every picture, oldest first."""
    found: dict[tuple[str, str, str], dict[int, list[Verdict]]] = {}
    for verdict in verdicts:
        versions = found.setdefault((verdict.annotator, verdict.variant_id, verdict.control or "work"), {})
        versions.setdefault(verdict.version, []).append(verdict)
    return {
        key: [
            _Given({row.question: row.answer for row in rows}, rows[0].seconds, rows[0].time)
            for _, rows in sorted(versions.items())
        ]
        for key, versions in found.items()
    }


def _take_in(connection: Connection, draw: Draw, what: tuple[str, str], versions: Sequence[_Given]) -> Counter[str]:
    """Append the versions that are new; "" counts those, every other key is a reason against them."""
    assignment = _assignment(connection, draw.person, what)
    stored = version_answers(connection, assignment.id) if assignment else []
    given = [dict(version.answers) for version in versions]
    if given in (stored[: len(given)], stored[-len(given) :]):  # some forms carry the last version alone
        return Counter({"were there already": len(given)})
    if stored != given[: len(stored)]:
        return Counter({"differ from what the same person answered here": len(given)})
    new = versions[len(stored) :]
    if reason := _against(draw, new):  # asked before a place is taken for them
        return Counter({f"cannot be taken: {reason}": len(new)})
    task = assignment.task if assignment else _assigned(connection, draw, what)
    if task is None:
        return Counter({"are about pictures that have enough annotators, or were never to be verified": len(given)})
    return _append(connection, draw, task, new)


def _against(draw: Draw, versions: Iterable[_Given]) -> str:
    """What speaks against these answers, whatever they are about."""
    if draw.person.excluded:
        return f"{draw.person.name} is left out"
    try:
        for version in versions:
            check_answers(draw.questionnaire, version.answers)
    except Refused as error:
        return str(error)
    return ""


def _append(connection: Connection, draw: Draw, task: str, versions: Sequence[_Given]) -> Counter[str]:
    results: Counter[str] = Counter()
    for version in versions:
        when = Draw(draw.person, draw.questionnaire, _seconds(version.time, draw.now))
        key = f"import-{secrets.token_hex(16)}"
        try:
            submit(connection, when, Submission(task, version.answers, version.seconds, key))
        except Refused as error:
            results[f"cannot be taken: {error}"] += 1
        else:
            results[""] += 1
    return results


@dataclass(frozen=True)
class _Assignment:
    id: int
    task: str


def _assignment(connection: Connection, person: Person, what: tuple[str, str]) -> _Assignment | None:
    variant, kind = what
    query = (
        select(_assignments.id, _assignments.task)
        .join(database_tables.pictures, _pictures.id == _assignments.picture_id)
        .where(_assignments.person_id == person.id, _assignments.kind == kind, _pictures.variant_id == variant)
    )
    found = connection.execute(query).first()
    return None if found is None else _Assignment(*found)


def _assigned(connection: Connection, draw: Draw, what: tuple[str, str]) -> str | None:
    """Give the picture to the person, where it is one of the project's and has a place left."""
    variant, kind = what
    query = select(_pictures.id, _pictures.role).where(_pictures.variant_id == variant)
    found = connection.execute(query).first()
    if found is None or found.role != ("work" if kind == "repeat" else kind):
        return None
    if kind == "work" and not take(connection, found.id):
        return None
    give(connection, draw, found.id, kind)
    made = _assignment(connection, draw.person, what)
    return None if made is None else made.task


def _seconds(time: str, otherwise: float) -> float:
    """A time in ISO 8601 as seconds since 1970; one that no calendar could give back is none."""
    try:
        found = datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return otherwise
    return found if 0 <= found < _YEAR_10000 else otherwise


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
    pictures = {row.variant.id for row in verification.workspace.pictures}
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
