"""The offline package: a zip of pictures and page for one annotator, and the answers that it saves.

Pages opened from a file cannot fetch anything, so the tasks are a script. The ticket names the person and the pictures;
it is signed with the workspace's secret, and answers are imported only under a ticket with a valid signature.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from counterfoil.errors import Unusable, UserError
from counterfoil.store.files import open_atomically
from counterfoil.verification.accounts import find_by_name, invite_person, lock_person
from counterfoil.verification.assignment import lease_up_to
from counterfoil.verification.leases import AnnotatorRequest, Lease, read_task_variants, release_expired
from counterfoil.verification.project import Verification
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.signing import Signer
from counterfoil.verification.verdict_files import parse_amount

OFFLINE_FORMAT = "counterfoil-offline-answers"
_PAGES = Path(__file__).parent / "pages"
_SCRIPTS = ("messages", "keys", "upcoming_tasks", "zoom", "offline_client", "pictures", "annotate", "keyboard")
_STATIC = ("icon.svg", "style.css", "annotate.css", *(f"{name}.js" for name in _SCRIPTS))


@dataclass(frozen=True)
class Ticket:
    """The person, the pictures and the date of a package."""

    annotator: str
    workspace_digest: str
    made: str  # ISO 8601


@dataclass(frozen=True)
class PackedTask:
    """One task of a package."""

    task: str
    class_name: str
    picture: str  # variant id
    original: str | None  # variant id of the original, where it is shown beside the picture
    definition: str = ""
    references: tuple[str, ...] = ()  # variant ids of photos of the class


@dataclass(frozen=True)
class Package:
    """The content of a zip besides the page and the pictures."""

    ticket: Ticket
    signature: str
    questionnaire: Questionnaire
    tasks: Sequence[PackedTask]


@dataclass(frozen=True)
class OfflineAnswer:
    """The answers to one task of a package."""

    task: str
    answers: Mapping[str, str]
    seconds: float
    time: str

    @property
    def key(self) -> str:
        """The same for the same answer, so that a file imported twice counts once."""
        row = json.dumps(asdict(self), sort_keys=True)
        return f"offline-{hashlib.sha256(row.encode()).hexdigest()[:32]}"


def write_package(verification: Verification, name: str, count: int, days: float, out: Path) -> int:
    """Write an offline package with up to `count` tasks for a person; returns how many it holds."""
    now = time.time()
    with verification.database.writing() as connection:
        release_expired(connection, now)
    with verification.database.writing() as connection:
        person = find_by_name(connection, name) or invite_person(connection, name, "annotator", now, now)
        if person.role != "annotator":
            raise UserError(f"expected the name of an annotator, but '{name}' is an administrator")
        if not lock_person(connection, person.id):
            raise UserError(f"expected somebody whose answers count, but '{name}' is left out: {person.reason}")
        leases = lease_up_to(
            connection, AnnotatorRequest(person, verification.questionnaire, now, 24 * 60 * days), count
        )
        variants = read_task_variants(connection, person.id)
    if not leases:
        raise UserError(f"expected pictures for {name}, but none are left that they have not seen")
    tasks = [_pack_task(verification, lease, *variants[lease.task]) for lease in leases]
    made = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="seconds")
    ticket = Ticket(person.name, verification.project.workspace_digest, made)
    package = Package(ticket, sign_ticket(ticket, verification.signer), verification.questionnaire, tasks)
    try:
        write_zip(out, package, verification.read_picture, verification.draw_reference)
    except Unusable as error:
        raise UserError(f"expected the pictures of the workspace as they were built, but {error}") from error
    return len(tasks)


def _pack_task(verification: Verification, lease: Lease, picture: str, original: str | None) -> PackedTask:
    guide = verification.guides[lease.label]
    references = guide.choose_references(verification.sample_of(picture))
    return PackedTask(lease.task, guide.name, picture, original, guide.definition, references)


def write_zip(
    out: Path, package: Package, read_picture: Callable[[str], bytes], draw_reference: Callable[[str], bytes]
) -> Path:
    """Write the zip; `read_picture` gives the PNG of a variant, `draw_reference` the JPEG of a reference photo."""
    folder = "counterfoil-" + (re.sub(r"[^\w.-]+", "-", package.ticket.annotator).strip("-.") or "annotator")
    with open_atomically(out) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in _list_page_files(package):
            archive.writestr(zipfile.ZipInfo(f"{folder}/{name}"), content, zipfile.ZIP_DEFLATED)
        for name, variant_id in sorted(_list_picture_files(package.tasks).items()):
            archive.writestr(zipfile.ZipInfo(f"{folder}/{name}"), read_picture(variant_id))
        shown = {variant for task in package.tasks for variant in task.references}
        for variant_id in sorted(shown):
            archive.writestr(zipfile.ZipInfo(f"{folder}/{_reference_path(variant_id)}"), draw_reference(variant_id))
    return out


def sign_ticket(ticket: Ticket, signer: Signer) -> str:
    """Sign a ticket, which needs the workspace's secret."""
    return signer.sign_ticket(json.dumps(asdict(ticket), sort_keys=True))


def read_offline_answers(content: Mapping[str, Any], signer: Signer) -> tuple[Ticket, list[OfflineAnswer]]:
    """Read the ticket and the answers of a file saved by a package; raises `UserError` for another project's ticket."""
    try:
        ticket = Ticket(**{name: str(value) for name, value in content["ticket"].items()})
        signature = str(content["signature"])
        rows = [_read_answer(row, place) for place, row in enumerate(content["answers"], 1)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"expected the file that an offline package saves, got one that is damaged: {error}") from error
    if not hmac.compare_digest(signature.encode(), sign_ticket(ticket, signer).encode()):
        raise UserError(
            f"expected answers to a package of this project, got a ticket for '{ticket.annotator}' that was not"
            " signed here or was changed since"
        )
    return ticket, rows


def _list_page_files(package: Package) -> Iterator[tuple[str, bytes]]:
    """The page, its scripts and the tasks."""
    environment = Environment(loader=FileSystemLoader(_PAGES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.get_template("annotate.html").render(
        csrf="", offline=True, static="page",
        project=package.questionnaire.page_content(), annotator=package.ticket.annotator,
    )  # fmt: skip
    yield "index.html", page.encode()
    tasks = {
        "ticket": asdict(package.ticket),
        "signature": package.signature,
        "tasks": [_format_task(task, package.questionnaire) for task in package.tasks],
    }
    yield "tasks.js", f"window.counterfoilPackage = {json.dumps(tasks)};\n".encode()
    for name in _STATIC:
        yield f"page/{name}", (_PAGES / "static" / name).read_bytes()


def _format_task(task: PackedTask, questionnaire: Questionnaire) -> dict[str, object]:
    """A task as the server gives it to the page."""
    return {
        "task": task.task,
        "class_name": task.class_name,
        "definition": task.definition,
        "references": [_reference_path(variant) for variant in task.references],
        "picture": _picture_path(task.task, "picture"),
        "original": task.original and _picture_path(task.task, "original"),
        "questions": [{"id": row.id, "text": row.about(task.class_name)} for row in questionnaire.questions],
    }


def _list_picture_files(tasks: Sequence[PackedTask]) -> dict[str, str]:
    """Variants by file; each task has its own files, so that a repeated picture cannot be recognised."""
    files = {_picture_path(task.task, "picture"): task.picture for task in tasks}
    return files | {_picture_path(task.task, "original"): task.original for task in tasks if task.original}


def _picture_path(task: str, kind: str) -> str:
    """A file name that reveals nothing about the picture."""
    return f"pictures/{hashlib.sha256(f'{kind}/{task}'.encode()).hexdigest()[:24]}.png"


def _reference_path(variant_id: str) -> str:
    return f"pictures/{hashlib.sha256(f'reference/{variant_id}'.encode()).hexdigest()[:24]}.jpg"


def _read_answer(row: Mapping[str, Any], place: int) -> OfflineAnswer:
    task = str(row["task"])
    if not task.isprintable():
        raise ValueError("a task that was never given out")
    answers = {str(question): str(answer) for question, answer in row["answers"].items()}
    return OfflineAnswer(task, answers, parse_amount(row["seconds"], f"answer {place}"), str(row["time"]))
