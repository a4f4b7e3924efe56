"""pip's own settings: where this machine gets its packages from, and how."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from counterfoil.errors import UserError

Number = TypeVar("Number", int, float)

# Later sections win. pip reads [install] for installing only, but people keep their mirror's settings there.
SECTIONS = ("global", "install", "download", ":env:")
OTHER_NAMES = {"default-timeout": "timeout", "pypi-url": "index-url"}
LINE = re.compile(r"(?P<section>[^.=]+)\.(?P<key>[^=]+)=(?P<value>['\"].*['\"])")


@dataclass(frozen=True)
class PipSettings:
    """The part of pip's settings that decides where a distribution comes from."""

    index_url: str | None = None  # None: the public index
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    trusted_hosts: tuple[str, ...] = ()
    proxy: str | None = None
    certificates: str | None = None
    client_certificate: str | None = None
    timeout_seconds: float = 15.0
    retries: int = 5


def read_pip_settings() -> PipSettings:
    """Ask pip for its settings (files and environment); without pip the PIP_* environment has to do."""
    values = _asked_from_pip() if importlib.util.find_spec("pip") else _from_environment()
    proxy = values.get("proxy")
    return PipSettings(
        index_url=_address(values["index-url"]) if "index-url" in values else None,
        extra_index_urls=tuple(map(_address, values.get("extra-index-url", "").split())),
        find_links=tuple(map(_address, values.get("find-links", "").split())),
        no_index=values.get("no-index", "no").lower() in {"y", "yes", "t", "true", "on", "1"},
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        proxy=f"http://{proxy}" if proxy and "://" not in proxy else proxy,
        certificates=values.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE") or None,
        client_certificate=values.get("client-cert"),
        timeout_seconds=_number(values, "timeout", float, PipSettings.timeout_seconds),
        retries=_number(values, "retries", int, PipSettings.retries),
    )


def _asked_from_pip() -> dict[str, str]:
    # A quiet pip prints no settings, and a file named pip.py in the working folder must not run.
    environment = {**os.environ, "PIP_QUIET": "0", "PIP_VERBOSE": "0", "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        reason = " ".join(answer.stderr.split()) or f"exit code {answer.returncode}"
        raise UserError(f"pip's settings cannot be read: {reason}; repair them until `pip config list` works")
    return _merged(answer.stdout)


def _merged(listing: str) -> dict[str, str]:
    by_section: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        found = LINE.fullmatch(line.strip())
        if found and found["section"] in by_section:
            _note(by_section[found["section"]], found["key"], ast.literal_eval(found["value"]))
    return {key: value for section in SECTIONS for key, value in by_section[section].items()}


def _from_environment() -> dict[str, str]:
    values: dict[str, str] = {}
    for variable, value in os.environ.items():
        if variable.startswith("PIP_"):
            _note(values, variable[len("PIP_") :].lower().replace("_", "-"), value)
    return values


def _note(values: dict[str, str], key: str, value: str) -> None:
    if value:  # pip, too, takes an empty setting for none
        values[OTHER_NAMES.get(key, key)] = value


def _address(place: str) -> str:
    """A URL; the paths of folders, which pip also accepts, become file URLs."""
    if "://" not in place:
        return Path(place).expanduser().absolute().as_uri()
    try:
        _ = urlsplit(place).port
    except ValueError as problem:
        raise UserError(f"pip's settings name an address that is none: {problem}; see `pip config list`") from None
    return place


def _number(values: Mapping[str, str], key: str, kind: Callable[[str], Number], default: Number) -> Number:
    try:
        return kind(values[key]) if key in values else default
    except ValueError:
        raise UserError(f"pip's setting {key} must be a number, got {values[key]!r}; see `pip config list`") from None
