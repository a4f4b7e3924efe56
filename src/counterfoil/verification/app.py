"""Web application: join, pages, routes; HTTP server around the application."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader
from sqlalchemy.exc import DataError, OperationalError
from starlette.exceptions import HTTPException as StarletteException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from counterfoil.errors import UserError
from counterfoil.verification import admin_routes, annotator_routes
from counterfoil.verification.people import SESSION_SECONDS
from counterfoil.verification.security import Address, RateLimit, SecurityMiddleware
from counterfoil.verification.service import (
    AnAdministrator,
    AnAnnotator,
    AnyVisitor,
    TheDesk,
    VerificationService,
    Visitor,
    cookie_name,
)

_PAGES = Path(__file__).parent / "pages"

router = APIRouter()


def create_app(desk: VerificationService) -> ASGIApp:
    """The whole page around one verification, guarded."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.desk = desk
    app.state.tries = RateLimit(desk.clock)
    app.state.templates = Environment(loader=FileSystemLoader(_PAGES), autoescape=True)
    for part in (router, annotator_routes.router, admin_routes.router):
        app.include_router(part)
    app.mount("/static", StaticFiles(directory=_PAGES / "static"))
    app.add_exception_handler(StarletteException, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(OperationalError, _not_stored)
    app.add_exception_handler(DataError, _not_storable)
    return SecurityMiddleware(app, desk.address)


@router.get("/join/{token}")
def join(request: Request, desk: TheDesk, token: str) -> Response:
    """Let somebody in by their invitation link."""
    tries: RateLimit = request.app.state.tries
    who = request.client.host if request.client else ""
    if tries.are_used_up(who):
        raise HTTPException(429, "too many links that lead nowhere; wait a minute", {"Retry-After": "60"})
    joined = desk.join(token, request.cookies.get(cookie_name(desk)))
    if joined is None:
        tries.failed(who)
        raise HTTPException(403, "this link is not valid, or not any more; ask for a new one")
    person, session = joined
    reply = RedirectResponse("/admin" if person.role == "admin" else "/annotate", 303)
    reply.set_cookie(
        cookie_name(desk), session, max_age=int(SESSION_SECONDS), path="/", httponly=True, samesite="lax",
        secure=desk.address.is_encrypted,
    )  # fmt: skip
    return reply


@router.get("/")
def front(visitor: AnyVisitor) -> Response:
    """Everybody to their own page."""
    return RedirectResponse("/admin" if visitor.person.role == "admin" else "/annotate", 303)


@router.get("/annotate")
def annotate(request: Request, desk: TheDesk, visitor: AnAnnotator) -> Response:
    """The annotator's page."""
    return _page(request, "annotate.html", _context(desk, visitor))


@router.get("/admin")
def admin(request: Request, desk: TheDesk, visitor: AnAdministrator) -> Response:
    """The administrator's page."""
    return _page(request, "admin.html", _context(desk, visitor))


@router.post("/api/leave")
def leave(desk: TheDesk, visitor: AnyVisitor) -> Response:
    """End the session."""
    desk.leave(visitor.session)
    reply = JSONResponse({"ok": True})
    reply.delete_cookie(cookie_name(desk), path="/", secure=desk.address.is_encrypted, httponly=True)
    return reply


def _context(desk: VerificationService, visitor: Visitor) -> dict[str, Any]:
    project = desk.questionnaire.model_dump(mode="json", include={"name", "instructions", "questions", "show_original"})
    return {"csrf": desk.signer.csrf(visitor.session), "project": project, "annotator": visitor.person.name}


def _page(request: Request, name: str, context: dict[str, Any], status: int = 200) -> Response:
    templates: Environment = request.app.state.templates
    return HTMLResponse(templates.get_template(name).render(context), status)


def _refused(request: Request, error: Exception) -> Response:
    """JSON for scripts, a page for people."""
    assert isinstance(error, StarletteException)
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)
    context = {"title": "Not here", "message": error.detail}
    reply = _page(request, "message.html", context, error.status_code)
    reply.headers.update(error.headers or {})
    return reply


def _malformed(_: Request, error: Exception) -> Response:
    """What is wrong with a request, without repeating what it said."""
    assert isinstance(error, RequestValidationError)
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"][1:])
    return JSONResponse({"error": f"{place}: {fault['msg']}"}, 422)


def _not_stored(_: Request, error: Exception) -> Response:
    """A full disk or a database that is away: nothing is acknowledged, the browser tries again."""
    return JSONResponse({"error": "the database does not answer; nothing was stored, try again"}, 503)


def _not_storable(_: Request, error: Exception) -> Response:
    """A character of code 0, which PostgreSQL keeps nowhere."""
    return JSONResponse({"error": "the request holds text that cannot be stored"}, 422)


_WAITING = 128


def open_listener(host: str, port: int) -> socket.socket:
    """A socket that is ours, or one line that says why not; port 0 takes a free one."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(_WAITING)  # from now on nobody is turned away, they wait until the page is up
    except OSError as error:
        bound.close()
        busy = error.errno == errno.EADDRINUSE
        reason = "is taken by another program; choose another --port" if busy else f"cannot be used: {error.strerror}"
        raise UserError(f"expected {host}:{port} to listen on, which {reason}") from error
    return bound


def server_of(app: ASGIApp, address: Address) -> uvicorn.Server:
    """The server of a page, to be run on a socket that listens."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False,  # the log would hold invitation links
        proxy_headers=address.is_behind_proxy, server_header=False, timeout_keep_alive=30, lifespan="off",
    )  # fmt: skip
    return uvicorn.Server(config)
