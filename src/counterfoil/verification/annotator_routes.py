"""Routes of the annotator's page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from counterfoil.errors import Unusable
from counterfoil.verification.assignment import MOST_AHEAD, Lease
from counterfoil.verification.service import AnAnnotator, TheDesk, VerificationService
from counterfoil.verification.submissions import Refused, Submission

router = APIRouter()

_PICTURE_HEADERS = {"Cache-Control": "private, max-age=3600", "Vary": "Cookie"}


class Wanted(BaseModel):
    """How many tasks the page wants to have in hand."""

    model_config = ConfigDict(extra="forbid")

    count: int = Field(default=5, ge=1, le=1000)


class Given(BaseModel):
    """The answers to one task."""

    model_config = ConfigDict(extra="forbid")

    task: str = Field(max_length=64)
    answers: dict[Annotated[str, Field(max_length=40)], Annotated[str, Field(max_length=60)]] = Field(max_length=20)
    seconds: float = Field(ge=0, le=86_400, allow_inf_nan=False)
    key: str = Field(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")


class Nothing(BaseModel):
    """A request that says everything by its address."""

    model_config = ConfigDict(extra="forbid")


@router.post("/api/next")
def next_tasks(desk: TheDesk, visitor: AnAnnotator, wanted: Wanted) -> dict[str, Any]:
    """Tasks in hand, with enough of them to fetch pictures ahead."""
    leases, progress = desk.next_tasks(visitor.person, min(wanted.count, MOST_AHEAD))
    tasks = [told(desk, lease) for lease in leases]
    return {"tasks": tasks, "progress": asdict(progress), "finished": not tasks}


@router.post("/api/answer")
def answer(desk: TheDesk, visitor: AnAnnotator, given: Given) -> dict[str, Any]:
    """Keep the answers to one task."""
    try:
        progress = desk.answer(visitor.person, Submission(given.task, given.answers, given.seconds, given.key))
    except Refused as error:
        raise HTTPException(409, str(error)) from error
    return {"ok": True, "progress": asdict(progress)}


@router.post("/api/undo")
def undo(desk: TheDesk, visitor: AnAnnotator, _: Nothing) -> dict[str, Any]:
    """Take the last answer back: the task is in hand again, with what was answered before."""
    found = desk.undo(visitor.person)
    if found is None:
        return {"task": None, "progress": asdict(desk.progress(visitor.person))}
    lease, before, progress = found
    return {"task": {**told(desk, lease), "answers": before}, "progress": asdict(progress)}


@router.get("/api/me/progress")
def progress(desk: TheDesk, visitor: AnAnnotator) -> dict[str, Any]:
    """How far this annotator is."""
    return {"progress": asdict(desk.progress(visitor.person))}


@router.get("/picture/{handle}")
def picture(desk: TheDesk, visitor: AnAnnotator, handle: str) -> Response:
    """The picture of a task that this annotator holds."""
    try:
        found = desk.picture_of(visitor.person, handle)
    except Unusable as error:
        raise HTTPException(404, "this picture is damaged or was overwritten; tell the administrator") from error
    if found is None:
        raise HTTPException(404, "no such picture")
    return Response(found, media_type="image/png", headers=_PICTURE_HEADERS)


def told(desk: VerificationService, lease: Lease) -> dict[str, Any]:
    """A task as the page gets it: nothing in it tells a control from the work."""
    name = desk.class_name(lease.label)
    return {
        "task": lease.task,
        "class_name": name,
        "picture": f"/picture/{lease.picture_handle}",
        "original": f"/picture/{lease.original_handle}" if lease.original_handle else None,
        "questions": [{"id": row.id, "text": row.about(name)} for row in desk.questionnaire.questions],
    }
