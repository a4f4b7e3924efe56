"""Routes of the annotator's page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from counterfoil.errors import Unusable
from counterfoil.verification.assignment import MOST_AHEAD
from counterfoil.verification.leases import Lease
from counterfoil.verification.project import Verification
from counterfoil.verification.session_csrf import CurrentAnnotator, CurrentService
from counterfoil.verification.submissions import Refused, Submission

router = APIRouter()


class EmptyRequest(BaseModel):
    """A request without content."""

    model_config = ConfigDict(extra="forbid")


class NextRequest(EmptyRequest):
    """How many tasks the page wants to hold."""

    count: int = Field(default=5, ge=1, le=1000)


class AnswerRequest(EmptyRequest):
    """The answers to one task."""

    task: str = Field(max_length=64)
    answers: dict[Annotated[str, Field(max_length=40)], Annotated[str, Field(max_length=60)]] = Field(max_length=20)
    seconds: float = Field(ge=0, le=86_400, allow_inf_nan=False)
    key: str = Field(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")


@router.post("/api/next")
def next_tasks(service: CurrentService, visitor: CurrentAnnotator, body: NextRequest) -> dict[str, Any]:
    """The annotator's tasks, enough of them to load pictures ahead."""
    leases, progress = service.next_tasks(visitor.person, min(body.count, MOST_AHEAD))
    tasks = [_format_task(service.verification, lease) for lease in leases]
    return {"tasks": tasks, "progress": asdict(progress), "finished": not tasks}


@router.post("/api/answer")
def answer(service: CurrentService, visitor: CurrentAnnotator, body: AnswerRequest) -> dict[str, Any]:
    """Store the answers to one task."""
    try:
        progress = service.answer(visitor.person, Submission(body.task, body.answers, body.seconds, body.key))
    except Refused as error:
        raise HTTPException(409, str(error)) from error
    return {"ok": True, "progress": asdict(progress)}


@router.post("/api/undo")
def undo(service: CurrentService, visitor: CurrentAnnotator, _: EmptyRequest) -> dict[str, Any]:
    """Take the last answer back: its task is open again, with what was answered before."""
    undone = service.undo(visitor.person)
    progress = asdict(service.progress(visitor.person))
    if undone is None:
        return {"task": None, "progress": progress}
    lease, before = undone
    return {"task": {**_format_task(service.verification, lease), "answers": before}, "progress": progress}


@router.get("/api/me/progress")
def progress(service: CurrentService, visitor: CurrentAnnotator) -> dict[str, Any]:
    """How far this annotator is."""
    return {"progress": asdict(service.progress(visitor.person))}


@router.get("/picture/{handle}")
def picture(service: CurrentService, visitor: CurrentAnnotator, handle: str) -> Response:
    """The picture of a task that this annotator holds."""
    try:
        content = service.read_picture(visitor.person, handle)
    except Unusable as error:
        raise HTTPException(404, "this picture is damaged or was overwritten; tell the administrator") from error
    if content is None:
        raise HTTPException(404, "no such picture")
    headers = {"Cache-Control": "private, max-age=3600", "Vary": "Cookie"}
    return Response(content, media_type="image/png", headers=headers)


@router.get("/reference/{handle}")
def reference(service: CurrentService, visitor: CurrentAnnotator, handle: str) -> Response:
    """A photo of the class, for comparison."""
    try:
        content = service.verification.read_reference(handle)
    except Unusable as error:
        raise HTTPException(404, "this photo is damaged or was overwritten; tell the administrator") from error
    if content is None:
        raise HTTPException(404, "no such photo")
    headers = {"Cache-Control": "private, max-age=3600", "Vary": "Cookie"}
    return Response(content, media_type="image/jpeg", headers=headers)


def _format_task(verification: Verification, lease: Lease) -> dict[str, Any]:
    """A task for the page; nothing in it distinguishes a control from the work."""
    name, guide = verification.class_name(lease.label), verification.guides[lease.label]
    references = guide.choose_references(verification.sample_of(lease.variant_id))
    return {
        "task": lease.task,
        "class_name": name,
        "definition": guide.definition,
        "references": [f"/reference/{verification.reference_handle(variant)}" for variant in references],
        "picture": f"/picture/{lease.picture_handle}",
        "original": f"/picture/{lease.original_handle}" if lease.original_handle else None,
        "questions": [{"id": row.id, "text": row.about(name)} for row in verification.questionnaire.questions],
    }
