"""Routes of the administrator's page."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select

from counterfoil.errors import Unusable, UserError
from counterfoil.verification import database_tables
from counterfoil.verification.exchange import FORMATS, exported
from counterfoil.verification.service import AnAdministrator, TheDesk
from counterfoil.verification.submissions import Refused, adjudicate, check_answer
from counterfoil.verification.summary import summary

router = APIRouter()

PictureId = Annotated[int, Path(ge=1, lt=2**31)]  # a database takes no larger ones


class Invited(BaseModel):
    """Who is to be let in."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=200)
    role: Literal["annotator", "admin"] = "annotator"
    days: float = Field(default=30, gt=0, le=366)


class Named(BaseModel):
    """Whose link and sessions are to stop."""

    model_config = ConfigDict(extra="forbid")

    annotator: str = Field(max_length=200)


class Excluded(BaseModel):
    """Whose answers are to count, or not."""

    model_config = ConfigDict(extra="forbid")

    annotator: str = Field(max_length=200)
    excluded: bool
    reason: str = Field(default="", max_length=500)


class Adjudicated(BaseModel):
    """The last word on one picture and question."""

    model_config = ConfigDict(extra="forbid")

    id: int = Field(ge=1, lt=2**31)  # of a disagreement
    question: str = Field(max_length=40)
    answer: str = Field(max_length=60)


@router.get("/api/admin/summary")
def the_summary(desk: TheDesk, _: AnAdministrator) -> dict[str, Any]:
    """Progress, agreement, people, disagreements."""
    return summary(desk)


@router.post("/api/admin/invite")
def invite(desk: TheDesk, _: AnAdministrator, invited: Invited) -> dict[str, Any]:
    """A link for somebody; a name that is known gets a new one in place of the old."""
    try:
        return {"link": desk.invite(invited.name, invited.role, invited.days)}
    except UserError as error:
        raise HTTPException(409, str(error)) from error


@router.post("/api/admin/revoke")
def revoke(desk: TheDesk, _: AnAdministrator, named: Named) -> dict[str, Any]:
    """Stop somebody's link and sessions; their answers stay."""
    if not desk.revoke(named.annotator):
        raise HTTPException(404, "nobody has this name")
    return {"ok": True}


@router.post("/api/admin/exclude")
def exclude(desk: TheDesk, _: AnAdministrator, wanted: Excluded) -> dict[str, Any]:
    """Leave somebody's answers out, or let them count again."""
    if not desk.set_excluded(wanted.annotator, wanted.excluded, wanted.reason or "by the administrator"):
        raise HTTPException(404, "no annotator has this name")
    return {"ok": True}


@router.post("/api/admin/adjudicate")
def adjudicate_route(desk: TheDesk, visitor: AnAdministrator, word: Adjudicated) -> dict[str, Any]:
    """Decide between annotators who disagree."""
    try:
        check_answer(desk.questionnaire, word.question, word.answer)
    except Refused as error:
        raise HTTPException(409, str(error)) from error
    work = select(database_tables.pictures.c.id).where(
        database_tables.pictures.c.id == word.id, database_tables.pictures.c.role == "work"
    )
    with desk.database.writing() as connection:
        if connection.execute(work).first() is None:
            raise HTTPException(404, "no such picture")
        adjudicate(connection, word.id, visitor.person.id, [(word.question, word.answer)], desk.clock())
    return {"ok": True}


@router.get("/api/admin/{name}")
def export(desk: TheDesk, _: AnAdministrator, name: str) -> Response:
    """Every answer as a file: export.csv, export.json, label-studio."""
    form = name.removeprefix("export.")
    if form not in FORMATS:
        raise HTTPException(404, "no such file")
    headers = {"Content-Disposition": f'attachment; filename="verdicts.{FORMATS[form].ending}"'}
    content = exported(desk.database, form, desk.class_name, desk.place)
    return Response(content, media_type=FORMATS[form].media, headers=headers)


@router.get("/admin/picture/{picture_id}")
def picture(desk: TheDesk, _: AnAdministrator, picture_id: PictureId) -> Response:
    """Any picture of the project."""
    query = select(database_tables.pictures.c.variant_id).where(database_tables.pictures.c.id == picture_id)
    with desk.database.reading() as connection:
        variant = connection.execute(query).scalar()
    if variant is None:
        raise HTTPException(404, "no such picture")
    try:
        content = desk.picture(variant)
    except Unusable as error:
        raise HTTPException(404, str(error)) from error
    return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})
