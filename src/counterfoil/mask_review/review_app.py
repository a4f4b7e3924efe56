"""The web application of a review of masks, for one person with the link that the command prints."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias
from urllib.parse import quote

import cv2
import numpy as np
from fastapi import APIRouter, Body, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from counterfoil.errors import Unusable, UserError
from counterfoil.labels.label_space import match_label_space
from counterfoil.mask_review.clicked_region import ClickKind, change_region
from counterfoil.mask_review.review_folder import MaskReview, encode_mask, page_size, reduce_mask
from counterfoil.object_mask import Bytes, hard_object
from counterfoil.sources.pixels import decode_mask
from counterfoil.types import Sample
from counterfoil.verification import app as verification_app
from counterfoil.verification.middleware import SecurityMiddleware
from counterfoil.verification.server_address import Address

_PAGES = Path(__file__).parent / "pages"
_SHARED = Path(verification_app.__file__).parent / "pages" / "static"
_LARGEST_BODY = 4 << 20  # bytes: a mask of the page's size as a PNG has far less
_QUALITY = 90
router = APIRouter()


@dataclass(frozen=True)
class ReviewSession:
    """A review that is served, and the secret of its link."""

    review: MaskReview
    address: Address
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def link(self) -> str:
        """The address that opens the page."""
        return f"{self.address.url}/open/{self.token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie; ports of one machine share cookies."""
        return f"masks-{self.address.port}"

    @property
    def csrf(self) -> str:
        """What the page's own requests carry."""
        return hmac.new(self.token.encode(), b"csrf", hashlib.sha256).hexdigest()


def create_review_app(session: ReviewSession) -> ASGIApp:
    """The web application of one review, behind the security middleware."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.session = session
    app.state.templates = Environment(loader=FileSystemLoader(_PAGES), autoescape=True)
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=_PAGES / "static"))
    app.mount("/shared", StaticFiles(directory=_SHARED))
    app.add_exception_handler(UserError, _reply_refused)
    app.add_exception_handler(Unusable, _reply_refused)
    return SecurityMiddleware(app, session.address, _LARGEST_BODY)


def _reply_refused(_: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 422)


def get_session(request: Request) -> ReviewSession:
    """The session; refuses requests without its cookie, and changes without the page's token."""
    session: ReviewSession = request.app.state.session
    if not hmac.compare_digest(request.cookies.get(session.cookie, ""), session.token):
        raise HTTPException(401, "open the link that the command printed")
    sent = request.headers.get("x-csrf-token", "")
    if request.method not in ("GET", "HEAD") and not hmac.compare_digest(sent, session.csrf):
        raise HTTPException(403, "the page is out of date; load it again")
    return session


CurrentSession: TypeAlias = Annotated[ReviewSession, Depends(get_session)]
PngBody: TypeAlias = Annotated[bytes, Body(media_type="image/png")]


def get_photo(session: CurrentSession, place: int) -> Sample:
    """The photo at a place of the review."""
    if not 0 <= place < len(session.review.photos):
        raise HTTPException(404, "there is no such photo")
    return session.review.photos[place]


CurrentPhoto: TypeAlias = Annotated[Sample, Depends(get_photo)]


@router.get("/open/{token}")
def open_link(request: Request, token: str) -> Response:
    """Let the person in who has the link."""
    session: ReviewSession = request.app.state.session
    if not hmac.compare_digest(token, session.token):
        raise HTTPException(403, "this link is not valid: a new one is printed each time the command starts")
    reply = RedirectResponse("/", 303)
    reply.set_cookie(
        session.cookie, session.token, path="/", httponly=True, samesite="lax", secure=session.address.is_encrypted
    )
    return reply


@router.get("/")
def show_page(request: Request, session: CurrentSession) -> Response:
    """The page."""
    templates: Environment = request.app.state.templates
    content = {"csrf": session.csrf, "folder": str(session.review.out)}
    return HTMLResponse(templates.get_template("review.html").render(content))


@router.get("/api/photos")
def list_photos(session: CurrentSession) -> list[dict[str, Any]]:
    """The photos in the order of the review, with what was decided."""
    review = session.review
    verdicts = review.verdicts()
    space = match_label_space(sorted({sample.label for sample in review.photos}))
    return [
        {
            "id": sample.id, "label": space.name_of(sample.label), "verdict": verdicts.get(sample.id, ""),
            "doubt": review.doubts.get(sample.id, ""),
        }
        for sample in review.photos
    ]  # fmt: skip


@router.get("/api/photos/{place}/image")
def show_photo(session: CurrentSession, sample: CurrentPhoto) -> Response:
    """The photo as a JPEG at the size of the page."""
    image = session.review.read_photo(sample)
    small = cv2.resize(image, page_size(image), interpolation=cv2.INTER_AREA)
    _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return Response(jpeg.tobytes(), media_type="image/jpeg")


@router.get("/api/photos/{place}/mask")
def show_mask(session: CurrentSession, sample: CurrentPhoto) -> Response:
    """The mask as a PNG at the size of the page; the header X-Note says where it comes from."""
    state = session.review.read_mask(sample)
    size = page_size(session.review.read_photo(sample))
    kind = "draft" if state.is_draft else "doubtful" if state.is_doubtful else "plain"
    headers = {"X-Note": quote(state.note), "X-Kind": kind}
    return Response(encode_mask(reduce_mask(state.values, size)), media_type="image/png", headers=headers)


class Click(NamedTuple):
    """A click on the photo, in pixels of the page's size."""

    x: int
    y: int
    kind: ClickKind


def get_click(x: int, y: int, kind: ClickKind) -> Click:
    """The click that a request names."""
    return Click(x, y, kind)


@router.post("/api/photos/{place}/region")
def find_region(
    session: CurrentSession, sample: CurrentPhoto, click: Annotated[Click, Depends(get_click)], drawn: PngBody
) -> Response:
    """The mask with the region around a click added or taken away."""
    image = session.review.read_photo(sample)
    size = page_size(image)
    small = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    changed = change_region(small, hard_object(_decode(drawn, size)), (click.x, click.y), click.kind)
    return Response(encode_mask(np.where(changed, 255, 0).astype(np.uint8)), media_type="image/png")


@router.post("/api/photos/{place}/draft")
def keep_draft(session: CurrentSession, sample: CurrentPhoto, drawn: PngBody) -> dict[str, bool]:
    """Keep strokes before a decision."""
    session.review.keep_draft(sample, _decode(drawn, page_size(session.review.read_photo(sample))))
    return {"ok": True}


@router.post("/api/photos/{place}/forget")
def forget_draft(session: CurrentSession, sample: CurrentPhoto) -> dict[str, bool]:
    """Forget strokes that were taken back."""
    session.review.drop_draft(sample)
    return {"ok": True}


@router.post("/api/photos/{place}/accept")
def accept(session: CurrentSession, sample: CurrentPhoto, drawn: PngBody = b"") -> dict[str, bool]:
    """Accept the mask as drawn; without a body, as it is."""
    size = page_size(session.review.read_photo(sample))
    session.review.accept(sample, _decode(drawn, size) if drawn else None)
    return {"ok": True}


@router.post("/api/photos/{place}/reject")
def reject(session: CurrentSession, sample: CurrentPhoto) -> dict[str, bool]:
    """Leave the photo out."""
    session.review.reject(sample)
    return {"ok": True}


@router.post("/api/photos/{place}/reopen")
def reopen(session: CurrentSession, sample: CurrentPhoto) -> dict[str, bool]:
    """Take a decision back."""
    session.review.reopen(sample)
    return {"ok": True}


def _decode(drawn: bytes, size: tuple[int, int]) -> Bytes:
    """A mask that the page sent; refuses one of another size."""
    mask = decode_mask(drawn)
    if mask.shape != size[::-1]:
        raise HTTPException(422, f"expected a mask of {size[0]} x {size[1]} pixels")
    return mask
