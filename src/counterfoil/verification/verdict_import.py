"""Import of verdicts from CSV, JSON, Label Studio and offline packages.

A file imported twice counts once, existing answers are not overwritten, and no picture gets more annotators than
wanted. Answers that are left out are counted by reason.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from counterfoil.errors import UserError
from counterfoil.types import Verdict
from counterfoil.verification.accounts import Person, find_by_name, invite_person
from counterfoil.verification.label_studio import read_label_studio
from counterfoil.verification.leases import AnnotatorRequest, take_place, write_lease
from counterfoil.verification.offline_package import OFFLINE_FORMAT, read_offline_answers
from counterfoil.verification.project import Verification
from counterfoil.verification.schema import assignments, pictures
from counterfoil.verification.submissions import Refused, Submission, check_answers, read_version_answers, submit
from counterfoil.verification.verdict_files import check_verdicts, read_csv, read_json

_YEAR_10000 = 253402300800.0
_KNOWN = "were there already"


@dataclass(frozen=True)
class ImportResult:
    """How many answers were imported, and how many were not, by reason."""

    imported: int
    left_out: Mapping[str, int]


def import_file(verification: Verification, path: Path) -> ImportResult:
    """Import the answers of a CSV, JSON or Label Studio file, or of one that an offline package saved."""
    text = _read_text(path)
    if path.suffix.lower() == ".csv":
        return _import_verdicts(verification, read_csv(text))
    content = _parse_json(text, path)
    if isinstance(content, list):
        return _import_verdicts(verification, read_label_studio(content))
    if isinstance(content, dict) and content.get("format") == OFFLINE_FORMAT:
        return _import_offline(verification, content)
    if isinstance(content, dict):
        return _import_verdicts(verification, read_json(content, verification.project.workspace_digest))
    raise UserError(f"expected verdicts as CSV, JSON or Label Studio's JSON, got {path}, which holds none of them")


class _Version(NamedTuple):
    """One version of one person's answers to one picture."""

    answers: Mapping[str, str]
    seconds: float
    time: str


class _Task(NamedTuple):
    id: int  # of the assignment
    task: str


def _import_verdicts(verification: Verification, verdicts: Sequence[Verdict]) -> ImportResult:
    """Append the answers that are not stored yet."""
    questionnaire, now = verification.questionnaire, time.time()
    check_verdicts(verdicts, questionnaire, {row.variant.id for row in verification.workspace.pictures})
    counts: Counter[str] = Counter()
    with verification.database.writing() as connection:
        for (name, variant, kind), versions in _group_versions(verdicts).items():
            person = find_by_name(connection, name) or invite_person(connection, name, "annotator", now, now)
            if person.role != "annotator":
                raise UserError(f"expected answers of annotators, but '{name}' is an administrator; give another name")
            request = AnnotatorRequest(person, questionnaire, now)
            counts += _import_versions(connection, request, (variant, kind), versions)
    return ImportResult(counts.pop("", 0), dict(counts))


def _import_offline(verification: Verification, content: Mapping[str, Any]) -> ImportResult:
    """Append the answers saved by an offline package, under its own tasks."""
    ticket, rows = read_offline_answers(content, verification.signer)
    if ticket.workspace_digest != verification.project.workspace_digest:
        raise UserError("expected answers about the pictures of this workspace, got a package about others")
    now = time.time()
    counts: Counter[str] = Counter()
    with verification.database.writing() as connection:
        person = find_by_name(connection, ticket.annotator)
        if person is None:
            raise UserError(f"expected an annotator of this verification, but nobody is called '{ticket.annotator}'")
        for row in rows:
            request = AnnotatorRequest(person, verification.questionnaire, _parse_time(row.time, now))
            counts[_submit(connection, request, Submission(row.task, row.answers, row.seconds, row.key))] += 1
    return ImportResult(counts.pop("", 0), dict(counts))


def _group_versions(verdicts: Sequence[Verdict]) -> dict[tuple[str, str, str], list[_Version]]:
    """The versions of every person's answers to every picture, oldest first."""
    groups: dict[tuple[str, str, str], dict[int, list[Verdict]]] = {}
    for verdict in verdicts:
        versions = groups.setdefault((verdict.annotator, verdict.variant_id, verdict.control or "work"), {})
        versions.setdefault(verdict.version, []).append(verdict)
    return {
        key: [
            _Version({row.question: row.answer for row in rows}, rows[0].seconds, rows[0].time)
            for _, rows in sorted(versions.items())
        ]
        for key, versions in groups.items()
    }


def _import_versions(
    connection: Connection, request: AnnotatorRequest, shown: tuple[str, str], versions: Sequence[_Version]
) -> Counter[str]:
    """Append the new versions; "" counts those, every other key is the reason for leaving versions out."""
    task = _find_task(connection, request.person, shown)
    stored = read_version_answers(connection, task.id) if task else []
    given = [dict(version.answers) for version in versions]
    if given in (stored[: len(given)], stored[-len(given) :]):  # some formats hold the last version only
        return Counter({_KNOWN: len(given)})
    if stored != given[: len(stored)]:
        return Counter({"differ from what the same person answered here": len(given)})
    new = versions[len(stored) :]
    if objection := _find_objection(request, new):  # checked before a place is taken
        return Counter({objection: len(new)})
    task = task or _assign(connection, request, shown)
    if task is None:
        return Counter({"are about pictures that have enough annotators, or were never to be verified": len(given)})
    counts: Counter[str] = Counter()
    for version in new:
        dated = AnnotatorRequest(request.person, request.questionnaire, _parse_time(version.time, request.now))
        submission = Submission(task.task, version.answers, version.seconds, f"import-{secrets.token_hex(16)}")
        counts[_submit(connection, dated, submission)] += 1
    return counts


def _submit(connection: Connection, request: AnnotatorRequest, submission: Submission) -> str:
    """Store a submission; returns the reason against it, or "" where it was stored."""
    try:
        return "" if submit(connection, request, submission) else _KNOWN
    except Refused as error:
        return f"cannot be imported: {error}"


def _find_objection(request: AnnotatorRequest, versions: Iterable[_Version]) -> str:
    """The reason against these answers that does not depend on their picture, or ""."""
    if request.person.excluded:
        return f"cannot be imported: {request.person.name} is left out"
    try:
        for version in versions:
            check_answers(request.questionnaire, version.answers)
    except Refused as error:
        return f"cannot be imported: {error}"
    return ""


def _find_task(connection: Connection, person: Person, shown: tuple[str, str]) -> _Task | None:
    variant, kind = shown
    query = (
        select(assignments.c.id, assignments.c.task)
        .join(pictures, pictures.c.id == assignments.c.picture_id)
        .where(assignments.c.person_id == person.id, assignments.c.kind == kind, pictures.c.variant_id == variant)
    )
    row = connection.execute(query).first()
    return None if row is None else _Task(*row)


def _assign(connection: Connection, request: AnnotatorRequest, shown: tuple[str, str]) -> _Task | None:
    """Lease the picture to the person, if it is one of the project's and has a place left."""
    variant, kind = shown
    query = select(pictures.c.id, pictures.c.role).where(pictures.c.variant_id == variant)
    picture = connection.execute(query).first()
    if picture is None or picture.role != ("work" if kind == "repeat" else kind):
        return None
    if kind == "work" and not take_place(connection, picture.id):
        return None
    write_lease(connection, request, picture.id, kind)
    return _find_task(connection, request.person, shown)


def _parse_time(time: str, otherwise: float) -> float:
    """Parse a time in ISO 8601 to seconds since 1970; `otherwise` where it cannot be written back."""
    try:
        seconds = datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return otherwise
    return seconds if 0 <= seconds < _YEAR_10000 else otherwise


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"expected a file of verdicts, got {path}, which cannot be read: {error}") from error


def _parse_json(text: str, path: Path) -> Any:
    try:
        content = json.loads(text)
        json.dumps(content, ensure_ascii=False).encode()  # refuses lone surrogates, which cannot be stored
        return content
    except (ValueError, RecursionError) as error:
        raise UserError(f"expected verdicts as .csv or JSON, got {path}, which is neither: {error}") from error
