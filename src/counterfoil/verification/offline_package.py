"""Offline zip and its answers.

Pages that are opened from a file may fetch nothing, so the tasks are a script. The ticket names the person and the
pictures; it is signed with the project's secret, and answers come in only under a ticket whose signature holds.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from counterfoil.errors import UserError
from counterfoil.store.files import open_atomically
from counterfoil.verification.exchange import amount
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.security import Signer

OFFLINE_FORMAT = "counterfoil-offline-answers"
_PAGES = Path(__file__).parent / "pages"
_SCRIPTS = ("words", "keys", "picture_cache", "zoom", "offline_client", "pictures", "annotate", "keyboard")
_STATIC = ("icon.svg", "style.css", "annotate.css", *(f"{name}.js" for name in _SCRIPTS))


@dataclass(frozen=True)
class Ticket:
    """Whose package it is, about which pictures, and since when."""

    annotator: str
    workspace_digest: str
    made: str  # ISO 8601


@dataclass(frozen=True)
class Packed:
    """One task of a package."""

    task: str
    class_name: str
    picture: str  # variant id
    original: str | None  # variant id of what is shown beside it, where the protocol shows it


@dataclass(frozen=True)
class OfflineAnswer:
    """One task's answers out of a package."""

    task: str
    answers: Mapping[str, str]
    seconds: float
    time: str

    @property
    def key(self) -> str:
        """The same for the same answer, so that a file that is taken in twice counts once."""
        row = json.dumps(asdict(self), sort_keys=True)
        return f"offline-{hashlib.sha256(row.encode()).hexdigest()[:32]}"


def write_package(
    out: Path, ticket: Ticket, signer: Signer, content: tuple[Questionnaire, Sequence[Packed]],
    picture: Callable[[str], bytes],
) -> Path:  # fmt: skip
    """Write the zip; `picture` gives the PNG of a variant."""
    questionnaire, tasks = content
    folder = "counterfoil-" + (re.sub(r"[^\w.-]+", "-", ticket.annotator).strip("-.") or "annotator")
    with open_atomically(out) as file, zipfile.ZipFile(file, "w") as archive:
        for name, data in _files(ticket, signature(ticket, signer), questionnaire, tasks):
            archive.writestr(zipfile.ZipInfo(f"{folder}/{name}"), data, zipfile.ZIP_DEFLATED)
        for name, variant_id in sorted(_pictures(tasks).items()):
            archive.writestr(zipfile.ZipInfo(f"{folder}/{name}"), picture(variant_id))
    return out


def signature(ticket: Ticket, signer: Signer) -> str:
    """What only the holder of the project's secret can put under a ticket."""
    text = json.dumps(asdict(ticket), sort_keys=True)
    return hmac.new(signer.secret.encode(), b"offline" + text.encode(), hashlib.sha256).hexdigest()


def read_offline_answers(content: Mapping[str, Any], signer: Signer) -> tuple[Ticket, list[OfflineAnswer]]:
    """The ticket and the answers of a file that the package saved; a ticket of another project is refused."""
    try:
        ticket = Ticket(**{name: str(value) for name, value in content["ticket"].items()})
        signed = str(content["signature"])
        rows = [
            OfflineAnswer(
                _task_name(row), _words(row["answers"]), amount(row["seconds"], f"answer {place}"), str(row["time"])
            )
            for place, row in enumerate(content["answers"], 1)
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"expected the file that an offline package saves, got one that is damaged: {error}") from error
    if not hmac.compare_digest(signed.encode(), signature(ticket, signer).encode()):
        raise UserError(
            f"expected answers to a package of this project, got a ticket for '{ticket.annotator}' that was not"
            " signed here or was changed since"
        )
    return ticket, rows


def _files(
    ticket: Ticket, signed: str, questionnaire: Questionnaire, tasks: Sequence[Packed]
) -> Iterator[tuple[str, bytes]]:
    """The page, its scripts and the tasks."""
    environment = Environment(loader=FileSystemLoader(_PAGES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    project = questionnaire.model_dump(mode="json", include={"name", "instructions", "questions", "show_original"})
    page = environment.get_template("annotate.html").render(
        csrf="", project=project, annotator=ticket.annotator, offline=True, static="page"
    )
    yield "index.html", page.encode()
    package = {
        "ticket": asdict(ticket),
        "signature": signed,
        "tasks": [_task(task, questionnaire) for task in tasks],
    }
    yield "tasks.js", f"window.counterfoilPackage = {json.dumps(package)};\n".encode()
    for name in _STATIC:
        yield f"page/{name}", (_PAGES / "static" / name).read_bytes()


def _task(task: Packed, questionnaire: Questionnaire) -> dict[str, object]:
    """A task as the page knows it from the server."""
    return {
        "task": task.task,
        "class_name": task.class_name,
        "picture": _place(task.task, "picture"),
        "original": task.original and _place(task.task, "original"),
        "questions": [
            {"id": question.id, "text": question.about(task.class_name)} for question in questionnaire.questions
        ],
    }


def _pictures(tasks: Sequence[Packed]) -> dict[str, str]:
    """File to variant; each task has files of its own, so that a repeated picture does not show."""
    found = {_place(task.task, "picture"): task.picture for task in tasks}
    return found | {_place(task.task, "original"): task.original for task in tasks if task.original}


def _place(task: str, kind: str) -> str:
    """A name that tells nothing of the picture, not even whether it is shown twice."""
    return f"pictures/{hashlib.sha256(f'{kind}/{task}'.encode()).hexdigest()[:24]}.png"


def _task_name(row: Mapping[str, object]) -> str:
    name = str(row["task"])
    if not name.isprintable():
        raise ValueError("a task that was never given out")
    return name


def _words(answers: Mapping[str, object]) -> dict[str, str]:
    return {str(question): str(answer) for question, answer in answers.items()}
