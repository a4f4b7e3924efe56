"""The body of a response: a chat completion, or an error in one of the shapes that are about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

_FILTER_CODES = {"content_filter", "content_policy_violation", "moderation_blocked"}


class Reply(NamedTuple):
    """What came back."""

    text: str
    refused: bool
    input_tokens: int | None
    output_tokens: int | None
    served: str  # the model that the endpoint says it used


def body_of(content: bytes) -> Any:
    """The body as JSON, None where it is cut off or something else."""
    try:
        return json.loads(content)
    except ValueError:
        return None


def reply_in(body: Any) -> Reply | None:
    """The chat completion, None where there is none."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
        usage = body.get("usage") or {}
        return Reply(
            text=_text(message.get("refusal") or message.get("content") or ""),
            refused=bool(message.get("refusal")) or choice.get("finish_reason") == "content_filter",
            input_tokens=_whole(usage.get("prompt_tokens")),
            output_tokens=_whole(usage.get("completion_tokens")),
            served=str(body.get("model") or ""),
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        return None


def fault_in(body: Any) -> Mapping[str, Any]:
    """The error that a body reports, empty where it reports none."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return error
    return {"message": error} if error else {}


def status_in(fault: Mapping[str, Any]) -> int:
    """The status of a failure that some gateways wrap in status 200."""
    code = str(fault.get("code", ""))
    return int(code) if code.isdecimal() and 300 <= int(code) < 600 else 500


def is_filter(fault: Mapping[str, Any]) -> bool:
    """Whether a content filter stopped the request."""
    metadata = fault.get("metadata")
    flagged = isinstance(metadata, dict) and "flagged_input" in metadata
    return flagged or bool({str(fault.get("code")), str(fault.get("type"))} & _FILTER_CODES)


def _text(content: Any) -> str:
    """Content is a text, or a list of parts some of which hold text."""
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content)


def _whole(number: Any) -> int | None:
    return number if isinstance(number, int) and number >= 0 else None
