"""The web application: invitation links, pages, errors, and the HTTP server around it."""

from __future__ import annotations

import logging
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

from counterfoil.verification import admin_routes, annotator_routes
from counterfoil.verification.accounts import SESSION_SECONDS
from counterfoil.verification.connection_bounds import ConnectionBounds, LogLimit, make_bounded_protocol
from counterfoil.verification.middleware import SecurityMiddleware
from counterfoil.verification.rate_limit import RateLimit
from counterfoil.verification.server_address import LOOPBACK, Address
from counterfoil.verification.service import VerificationService
from counterfoil.verification.session_csrf import (
    CurrentAdministrator,
    CurrentAnnotator,
    CurrentService,
    CurrentVisitor,
    Visitor,
    cookie_name,
)

_PAGES = Path(__file__).parent / "pages"
router = APIRouter()


def create_app(service: VerificationService) -> ASGIApp:
    """Create the web application of one verification, behind the security middleware."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.service = service
    app.state.rate_limit = RateLimit(service.clock)
    app.state.templates = Environment(loader=FileSystemLoader(_PAGES), autoescape=True)
    for part in (router, annotator_routes.router, admin_routes.router):
        app.include_router(part)
    app.mount("/static", StaticFiles(directory=_PAGES / "static"))
    app.add_exception_handler(StarletteException, _reply_refused)
    app.add_exception_handler(RequestValidationError, _reply_malformed)
    app.add_exception_handler(OperationalError, _reply_unavailable)
    app.add_exception_handler(DataError, _reply_not_storable)
    return SecurityMiddleware(app, service.address)


def create_server(app: ASGIApp, address: Address, bounds: ConnectionBounds | None = None) -> uvicorn.Server:
    """Create the HTTP server of an app, to be run on a listening socket."""
    bounds = bounds or ConnectionBounds(trusted=frozenset(LOOPBACK if address.is_behind_proxy else ()))
    config = uvicorn.Config(
        app, log_level="warning", access_log=False,  # the log would hold invitation links
        proxy_headers=address.is_behind_proxy, server_header=False, timeout_keep_alive=30, lifespan="off",
        http=make_bounded_protocol(bounds), ws="none", timeout_graceful_shutdown=10,
    )  # fmt: skip
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        if not any(isinstance(other, LogLimit) for other in logger.filters):
            logger.addFilter(LogLimit())
    return uvicorn.Server(config)


@router.get("/join/{token}")
def join(request: Request, service: CurrentService, token: str) -> Response:
    """Let somebody in by their invitation link."""
    rate_limit: RateLimit = request.app.state.rate_limit
    client = request.client.host if request.client else ""
    if rate_limit.is_reached(client) and service.verification.signer.read_invitation(token) is None:
        raise HTTPException(429, "too many links that are not valid; wait a minute", {"Retry-After": "60"})
    joined = service.join(token, request.cookies.get(cookie_name(service)))
    if joined is None:
        rate_limit.add_failure(client)
        raise HTTPException(403, "this link is not valid or has expired; ask for a new one")
    person, session = joined
    reply = RedirectResponse("/admin" if person.role == "admin" else "/annotate", 303)
    reply.set_cookie(
        cookie_name(service), session, max_age=int(SESSION_SECONDS), path="/", httponly=True, samesite="lax",
        secure=service.address.is_encrypted,
    )  # fmt: skip
    return reply


@router.get("/")
def redirect_home(visitor: CurrentVisitor) -> Response:
    """Send administrators and annotators to their pages."""
    return RedirectResponse("/admin" if visitor.person.role == "admin" else "/annotate", 303)


@router.get("/annotate")
def annotate(request: Request, service: CurrentService, visitor: CurrentAnnotator) -> Response:
    """The annotator's page."""
    return _render_page(request, "annotate.html", _page_context(service, visitor))


@router.get("/admin")
def admin(request: Request, service: CurrentService, visitor: CurrentAdministrator) -> Response:
    """The administrator's page."""
    return _render_page(request, "admin.html", _page_context(service, visitor))


@router.post("/api/leave")
def leave(service: CurrentService, visitor: CurrentVisitor) -> Response:
    """End the session."""
    service.leave(visitor.session)
    reply = JSONResponse({"ok": True})
    reply.delete_cookie(cookie_name(service), path="/", secure=service.address.is_encrypted, httponly=True)
    return reply


def _page_context(service: VerificationService, visitor: Visitor) -> dict[str, Any]:
    token = service.verification.signer.csrf_token(visitor.session)
    return {"csrf": token, "project": service.questionnaire.page_content(), "annotator": visitor.person.name}


def _render_page(request: Request, name: str, context: dict[str, Any], status: int = 200) -> Response:
    templates: Environment = request.app.state.templates
    return HTMLResponse(templates.get_template(name).render(context), status)


def _reply_refused(request: Request, error: Exception) -> Response:
    """Reply with JSON to scripts, with a page to people."""
    assert isinstance(error, StarletteException)
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)
    context = {"title": "Not available", "message": error.detail}
    reply = _render_page(request, "message.html", context, error.status_code)
    reply.headers.update(error.headers or {})
    return reply


def _reply_malformed(_: Request, error: Exception) -> Response:
    """Say what is wrong with a request, without repeating its content."""
    assert isinstance(error, RequestValidationError)
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"][1:])
    return JSONResponse({"error": f"{place}: {fault['msg']}"}, 422)


def _reply_unavailable(_: Request, error: Exception) -> Response:
    """Reply to a full disk or an unreachable database: the answer is not stored, and the browser tries again."""
    return JSONResponse({"error": "the database does not answer; nothing was stored, try again"}, 503)


def _reply_not_storable(_: Request, error: Exception) -> Response:
    """Reply to text with a null character, which PostgreSQL cannot store."""
    return JSONResponse({"error": "the request holds text that cannot be stored"}, 422)
