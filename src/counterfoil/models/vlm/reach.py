"""Where the endpoint is and how hard it may be asked: from the environment, never part of a run's record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx2
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from counterfoil.errors import UserError
from counterfoil.models.vlm.asking import fault_in

PREFIX = "COUNTERFOIL_VLM_"
_URLS = (PREFIX + "URL", "OPENAI_BASE_URL")
_KEYS = {PREFIX + "URL": (PREFIX + "KEY",), "OPENAI_BASE_URL": (PREFIX + "KEY", "OPENAI_API_KEY")}
_PATH = "/chat/completions"


class Limits(BaseModel):
    """How hard the endpoint is asked, and what it charges; none of it changes an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    concurrency: int = Field(default=4, ge=1, le=256)
    timeout_seconds: float = Field(default=120, gt=0)  # of one request, from its start to the last byte of its answer
    attempts: int = Field(default=6, ge=1, le=20)  # requests per question
    first_wait_seconds: float = Field(default=1, gt=0)  # doubled before every further attempt
    patience_seconds: float = Field(default=300, ge=0)  # waiting per question, over all its attempts
    input_price: float | None = Field(default=None, ge=0)  # per million tokens
    output_price: float | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class Reach:
    """The endpoint's address and key, which no message, table or log may hold."""

    url: httpx2.URL = field(repr=False)
    key: str = field(repr=False)
    key_name: str  # the variable the key is looked for in
    limits: Limits

    def without_key(self, text: str) -> str:
        """A server's words, without the key that it may have repeated."""
        return text.replace(self.key, "...") if self.key else text

    def without_secrets(self, text: str) -> str:
        """A server's reason in one line, without key and host."""
        told = self.without_key(text).replace(str(self.url), "...").replace(self.url.host, "...")
        return " ".join(told.split())[:300]


def reach_from(environment: Mapping[str, str] = os.environ) -> Reach:
    """Read and check; the key of one service is never sent to the address of another."""
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
    return Reach(_checked_url(environment[url_name].strip(), url_name), key, key_name, _limits(environment))


def _checked_url(text: str, name: str) -> httpx2.URL:
    # Nothing of the text is repeated: it may hold a password.
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
        raise UserError(f"{PREFIX}{str(error.errors()[0]['loc'][0]).upper()}: {fault_in(error)}") from None
