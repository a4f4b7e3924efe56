"""Routes of the administrator's page."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select

from counterfoil.errors import Unusable, UserError
from counterfoil.verification.admin_summary import summarize
from counterfoil.verification.schema import pictures
from counterfoil.verification.session_csrf import CurrentAdministrator, CurrentService
from counterfoil.verification.submissions import Refused
from counterfoil.verification.verdict_export import FORMATS, format_verdicts

router = APIRouter()


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class InviteRequest(_Body):
    """Whom to invite."""

    name: str = Field(max_length=200)
    role: Literal["annotator", "admin"] = "annotator"
    days: float = Field(default=30, gt=0, le=366)


class RevokeRequest(_Body):
    """Whose link and sessions to stop."""

    annotator: str = Field(max_length=200)


class ExcludeRequest(_Body):
    """Whose answers to leave out or to count again."""

    annotator: str = Field(max_length=200)
    excluded: bool
    reason: str = Field(default="", max_length=500)


class AdjudicateRequest(_Body):
    """The administrator's answer to one question about one picture."""

    id: int = Field(ge=1, lt=2**31)  # of the picture; a database takes no larger ones
    question: str = Field(max_length=40)
    answer: str = Field(max_length=60)


@router.get("/api/admin/summary")
def read_summary(service: CurrentService, _: CurrentAdministrator) -> dict[str, Any]:
    """Progress, agreement, people, disagreements."""
    return summarize(service.verification)


@router.post("/api/admin/invite")
def invite(service: CurrentService, _: CurrentAdministrator, body: InviteRequest) -> dict[str, Any]:
    """Make a link for somebody; it replaces the link of a name that is known."""
    try:
        return {"link": service.invite(body.name, body.role, body.days)}
    except UserError as error:
        raise HTTPException(409, str(error)) from error


@router.post("/api/admin/revoke")
def revoke(service: CurrentService, _: CurrentAdministrator, body: RevokeRequest) -> dict[str, Any]:
    """Stop somebody's link and sessions; their answers stay."""
    if not service.revoke(body.annotator):
        raise HTTPException(404, "nobody has this name")
    return {"ok": True}


@router.post("/api/admin/exclude")
def exclude(service: CurrentService, _: CurrentAdministrator, body: ExcludeRequest) -> dict[str, Any]:
    """Leave somebody's answers out, or let them count again."""
    if not service.set_excluded(body.annotator, body.excluded, body.reason or "by the administrator"):
        raise HTTPException(404, "no annotator has this name")
    return {"ok": True}


@router.post("/api/admin/adjudicate")
def adjudicate(service: CurrentService, visitor: CurrentAdministrator, body: AdjudicateRequest) -> dict[str, Any]:
    """Decide a question on which annotators disagree."""
    try:
        stored = service.adjudicate(visitor.person, body.id, body.question, body.answer)
    except Refused as error:
        raise HTTPException(409, str(error)) from error
    if not stored:
        raise HTTPException(404, "no such picture")
    return {"ok": True}


@router.get("/api/admin/{name}")
def export(service: CurrentService, _: CurrentAdministrator, name: str) -> Response:
    """Every answer as a file: export.csv, export.json, export.label-studio, export.label-studio-setup."""
    form = name.removeprefix("export.")
    if form not in FORMATS:
        raise HTTPException(404, "no such file")
    headers = {"Content-Disposition": f'attachment; filename="verdicts.{FORMATS[form].ending}"'}
    return Response(format_verdicts(service.verification, form), media_type=FORMATS[form].media_type, headers=headers)


@router.get("/admin/picture/{picture_id}")
def picture(
    service: CurrentService, _: CurrentAdministrator, picture_id: Annotated[int, Path(ge=1, lt=2**31)]
) -> Response:
    """Any picture of the project."""
    query = select(pictures.c.variant_id).where(pictures.c.id == picture_id)
    with service.database.reading() as connection:
        variant = connection.execute(query).scalar()
    if variant is None:
        raise HTTPException(404, "no such picture")
    try:
        content = service.verification.read_picture(variant)
    except Unusable as error:
        raise HTTPException(404, str(error)) from error
    return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})
