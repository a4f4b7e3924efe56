"""One exchange with the endpoint: a request, and the reply or the kind of failure it met."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from counterfoil.errors import UserError
from counterfoil.models.vlm.reach import Reach
from counterfoil.models.vlm.reply import Reply, body_of, fault_in, is_filter, reply_in, status_in

_LONGEST_BODY = 4 << 20  # bytes: an answer of one word has hundreds
_MAY_PASS = {408, 409, 425, 429}
_WRONG_DOOR = {401, 402, 403, 404, 405, 407}


class Transient(Exception):
    """A failure that another attempt may cure."""

    def __init__(self, reason: str, wait_seconds: float | None = None, *, reached: bool = True) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds  # what the endpoint asked for
        self.reached = reached


class Rejected(Exception):
    """The endpoint will not answer this one request, however often it is asked."""


class Filtered(Exception):
    """The endpoint's content filter stopped the request: a refusal, not an error."""


class Endpoint:
    """An OpenAI-compatible endpoint for chat completions."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        headers = {"Authorization": f"Bearer {reach.key}"} if reach.key else {}
        connections = httpx2.Limits(max_connections=reach.limits.concurrency)
        self._client = httpx2.Client(headers=headers, timeout=reach.limits.timeout_seconds, limits=connections)

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def ask(self, body: Mapping[str, Any]) -> Reply:
        """Send a request; raises `Transient`, `Rejected`, `Filtered`, or `UserError` where all requests must fail."""
        # Causes are cut off: a traceback through the HTTP client could show the address.
        try:
            response, content = self._exchanged(body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as problem:
            raise Transient(f"no connection ({type(problem).__name__})", reached=False) from None
        except httpx2.TimeoutException:
            raise Transient(f"no answer within {self._reach.limits.timeout_seconds:g} s") from None
        except httpx2.RequestError as problem:
            raise Transient(f"the connection broke off ({type(problem).__name__})") from None
        return self._judged(response, content)

    def _exchanged(self, body: Mapping[str, Any]) -> tuple[httpx2.Response, bytes]:
        """The response and its whole body, within the time limit."""
        # The client's own time-out begins anew with every byte, so an answer that dribbles is stopped here.
        deadline = time.monotonic() + self._reach.limits.timeout_seconds
        content = b""
        with self._client.stream("POST", self._reach.url, json=body) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout("the answer comes too slowly")
                if len(content) > _LONGEST_BODY:
                    raise Transient(f"the reply is longer than {_LONGEST_BODY} bytes")
        return response, content

    def _judged(self, response: httpx2.Response, content: bytes) -> Reply:
        body = body_of(content)
        fault = fault_in(body)
        if not response.is_success:
            raise self._failure(response.status_code, fault, response.headers.get("retry-after"))
        if fault:
            raise self._failure(status_in(fault), fault, None)
        reply = reply_in(body)
        if reply is None:
            raise Transient("the reply is cut off or no chat completion")
        return reply._replace(text=self._reach.without_key(reply.text))

    def _failure(self, status: int, fault: Mapping[str, Any], retry_after: str | None) -> Exception:
        said = self._reach.without_secrets(str(fault.get("message", "")))
        if is_filter(fault):
            return Filtered(said)
        if fault.get("code") == "insufficient_quota":
            return self._wrong_door(status, " and said that the quota is spent")
        if status in _MAY_PASS or status >= 500:
            return Transient(f"status {status} {said}".strip(), _seconds(retry_after))
        if status in _WRONG_DOOR or 300 <= status < 400:
            return self._wrong_door(status, "")
        return Rejected(f"status {status} {said}".strip())

    def _wrong_door(self, status: int, addition: str) -> UserError:
        # The server's words are left out: some repeat a part of the key.
        return UserError(
            f"expected the endpoint to take requests, but it answered {status}"
            f" {httpx2.codes.get_reason_phrase(status)}{addition}; check the URL, the key in {self._reach.key_name} and"
            f" the model's name, then run the same command again: what is answered is kept"
        )


def _seconds(retry_after: str | None) -> float | None:
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
