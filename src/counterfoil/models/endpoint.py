"""An OpenAI-compatible HTTP endpoint: its settings from the environment, one request, and its parsed response."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

import httpx2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from counterfoil.errors import UserError


def describe_validation_error(error: ValidationError) -> str:
    """The first error, with its key and value."""
    fault = error.errors()[0]
    return f"'{fault['loc'][0]}': {fault['msg'].lower()}, got '{fault['input']}'"


PREFIX = "COUNTERFOIL_VLM_"
_URLS = (PREFIX + "URL", "OPENAI_BASE_URL")
_KEYS = {PREFIX + "URL": (PREFIX + "KEY",), "OPENAI_BASE_URL": (PREFIX + "KEY", "OPENAI_API_KEY")}
_PATH = "/chat/completions"


class Limits(BaseModel):
    """Concurrency, time limits and prices of requests; they do not affect the answers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    concurrency: int = Field(default=4, ge=1, le=256)
    timeout_seconds: float = Field(default=120, gt=0)  # of one request, from its start to the last byte of its answer
    attempts: int = Field(default=6, ge=1, le=20)  # requests per question
    first_wait_seconds: float = Field(default=1, gt=0)  # doubled before every further attempt
    patience_seconds: float = Field(default=300, ge=0)  # total wait per question, over all attempts
    input_price: float | None = Field(default=None, ge=0)  # per million tokens
    output_price: float | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class EndpointSettings:
    """The endpoint's address and key; neither may appear in a message, table or log."""

    url: httpx2.URL = field(repr=False)
    key: str = field(repr=False)
    key_name: str  # the environment variable of the key
    limits: Limits

    def without_key(self, text: str) -> str:
        """A server's text with the key removed."""
        return text.replace(self.key, "...") if self.key else text

    def without_secrets(self, text: str) -> str:
        """A server's error text in one line, with key and host removed."""
        hidden = self.without_key(text).replace(str(self.url), "...").replace(self.url.host, "...")
        return " ".join(hidden.split())[:300]


def read_endpoint_settings(environment: Mapping[str, str] = os.environ) -> EndpointSettings:
    """Read and check the settings; one service's key is never sent to another's address. Raises `UserError`."""
    url_name = next((name for name in _URLS if environment.get(name, "").strip()), None)
    if url_name is None:
        raise UserError(
            f"expected the endpoint's base URL in {_URLS[0]} (or {_URLS[1]}), got none;"
            f" set it, for example to http://localhost:8000/v1, and the key, where one is needed, in {PREFIX}KEY"
        )
    names = _KEYS[url_name]
    key_name = next((name for name in names if environment.get(name, "").strip()), names[0])
    key = environment.get(key_name, "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UserError(f"expected a key of plain characters without spaces in {key_name}; set it again")
    return EndpointSettings(_checked_url(environment[url_name].strip(), url_name), key, key_name, _limits(environment))


def _checked_url(text: str, name: str) -> httpx2.URL:
    # The text is not repeated, since it may hold a password.
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL:
        raise UserError(f"expected a URL such as http://localhost:8000/v1 in {name}; set it again") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise UserError(f"expected a URL with http:// or https:// in {name}; set it again")
    if url.userinfo:
        raise UserError(f"expected a URL without user and password in {name}; put the key into {PREFIX}KEY")
    path = url.path.rstrip("/")
    return url.copy_with(path=path if path.endswith(_PATH) else path + _PATH)


def _limits(environment: Mapping[str, str]) -> Limits:
    given = {name: environment.get(PREFIX + name.upper(), "").strip() for name in Limits.model_fields}
    try:
        return Limits.model_validate({name: value for name, value in given.items() if value})
    except ValidationError as error:
        raise UserError(
            f"{PREFIX}{str(error.errors()[0]['loc'][0]).upper()}: {describe_validation_error(error)}"
        ) from None


_FILTER_CODES = {"content_filter", "content_policy_violation", "moderation_blocked"}


class ChatCompletion(NamedTuple):
    """The endpoint's answer to one question."""

    text: str
    refused: bool
    input_tokens: int | None
    output_tokens: int | None
    served: str  # the model that the endpoint says it used


def parse_body(content: bytes) -> Any:
    """The body as JSON; None where it cannot be parsed."""
    try:
        return json.loads(content)
    except ValueError:
        return None


def parse_reply(body: Any) -> ChatCompletion | None:
    """The chat completion; None where there is none."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
        usage = body.get("usage") or {}
        return ChatCompletion(
            text=_join_text(message.get("refusal") or message.get("content") or ""),
            refused=bool(message.get("refusal")) or choice.get("finish_reason") == "content_filter",
            input_tokens=_parse_count(usage.get("prompt_tokens")),
            output_tokens=_parse_count(usage.get("completion_tokens")),
            served=str(body.get("model") or ""),
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        return None


def parse_error(body: Any) -> Mapping[str, Any]:
    """The error that a body reports; empty where it reports none."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return error
    return {"message": error} if error else {}


def parse_status(fault: Mapping[str, Any]) -> int:
    """The status of an error that some gateways wrap in status 200."""
    code = str(fault.get("code", ""))
    return int(code) if code.isdecimal() and 300 <= int(code) < 600 else 500


def is_content_filter(fault: Mapping[str, Any]) -> bool:
    """Whether a content filter stopped the request."""
    metadata = fault.get("metadata")
    flagged = isinstance(metadata, dict) and "flagged_input" in metadata
    return flagged or bool({str(fault.get("code")), str(fault.get("type"))} & _FILTER_CODES)


def _join_text(content: Any) -> str:
    """The text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content)


def _parse_count(number: Any) -> int | None:
    return number if isinstance(number, int) and number >= 0 else None


_LONGEST_BODY = 4 << 20  # bytes: an answer of one word has hundreds
_TRANSIENT_STATUSES = {408, 409, 425, 429}
_REFUSED_STATUSES = {401, 402, 403, 404, 405, 407}


class Transient(Exception):
    """A failure after which another attempt may succeed."""

    def __init__(self, reason: str, wait_seconds: float | None = None, *, reached: bool = True) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds  # what the endpoint asked for
        self.reached = reached


class Rejected(Exception):
    """The endpoint refuses this request; another attempt would not help."""


class Filtered(Exception):
    """The endpoint's content filter stopped the request: a refusal, not an error."""


class Endpoint:
    """An OpenAI-compatible endpoint for chat completions."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        headers = {"Authorization": f"Bearer {settings.key}"} if settings.key else {}
        connections = httpx2.Limits(max_connections=settings.limits.concurrency)
        self._client = httpx2.Client(headers=headers, timeout=settings.limits.timeout_seconds, limits=connections)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, body: Mapping[str, Any]) -> ChatCompletion:
        """Send a request; raises `Transient`, `Rejected`, `Filtered`, or `UserError` where all requests must fail."""
        # Raised without causes: a traceback through the HTTP client could show the address.
        try:
            response, content = self._exchange(body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as problem:
            raise Transient(f"no connection ({type(problem).__name__})", reached=False) from None
        except httpx2.TimeoutException:
            raise Transient(f"no answer within {self._settings.limits.timeout_seconds:g} s") from None
        except httpx2.RequestError as problem:
            raise Transient(f"the connection broke off ({type(problem).__name__})") from None
        return self._parse_response(response, content)

    def _exchange(self, body: Mapping[str, Any]) -> tuple[httpx2.Response, bytes]:
        """The response and its whole body, within the time limit."""
        # The client's own time-out restarts with every byte, so a slow response is stopped here.
        deadline = time.monotonic() + self._settings.limits.timeout_seconds
        content = b""
        with self._client.stream("POST", self._settings.url, json=body) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout("the answer comes too slowly")
                if len(content) > _LONGEST_BODY:
                    raise Transient(f"the reply is longer than {_LONGEST_BODY} bytes")
        return response, content

    def _parse_response(self, response: httpx2.Response, content: bytes) -> ChatCompletion:
        body = parse_body(content)
        fault = parse_error(body)
        if not response.is_success:
            raise self._failure(response.status_code, fault, response.headers.get("retry-after"))
        if fault:
            raise self._failure(parse_status(fault), fault, None)
        reply = parse_reply(body)
        if reply is None:
            raise Transient("the reply is cut off or no chat completion")
        return reply._replace(text=self._settings.without_key(reply.text))

    def _failure(self, status: int, fault: Mapping[str, Any], retry_after: str | None) -> Exception:
        message = self._settings.without_secrets(str(fault.get("message", "")))
        if is_content_filter(fault):
            return Filtered(message)
        if fault.get("code") == "insufficient_quota":
            return self._refused_error(status, " and said that the quota is spent")
        if status in _TRANSIENT_STATUSES or status >= 500:
            return Transient(f"status {status} {message}".strip(), _parse_retry_after(retry_after))
        if status in _REFUSED_STATUSES or 300 <= status < 400:
            return self._refused_error(status, "")
        return Rejected(f"status {status} {message}".strip())

    def _refused_error(self, status: int, addition: str) -> UserError:
        # The server's text is left out: some repeat a part of the key.
        return UserError(
            f"expected the endpoint to take requests, but it answered {status}"
            f" {httpx2.codes.get_reason_phrase(status)}{addition}; check the URL, the key in"
            f" {self._settings.key_name} and the model's name, then run the same command again:"
            " what is answered is kept"
        )


def _parse_retry_after(retry_after: str | None) -> float | None:
    """`Retry-After` in seconds; it may be a number or a date."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        seconds = _seconds_until(retry_after)
    return None if math.isnan(seconds) else max(0.0, seconds)


def _seconds_until(date: str) -> float:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return math.nan
    aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return (aware - datetime.now(timezone.utc)).total_seconds()


def encode_data_url(image: NDArray[np.uint8], form: Literal["jpeg", "png"], longest_side: int) -> str:
    """The picture as a data URL, reduced where its longer side exceeds the bound."""
    picture = Image.fromarray(image)
    scale = longest_side / max(picture.size)
    if scale < 1:
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    if form == "jpeg":
        picture.save(buffer, "JPEG", quality=95, subsampling=0)  # full chroma, so that colour edits are kept
    else:
        picture.save(buffer, "PNG")
    return f"data:image/{form};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
