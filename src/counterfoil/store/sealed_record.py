"""JSON records with a checksum of their own, for folders that are unfinished and have no list of checksums yet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.store.files import write_atomically

_CHECKSUM = "checksum"


def write_sealed(path: Path, content: Mapping[str, Any]) -> Path:
    """Write a record with its checksum."""
    plain = {key: value for key, value in json.loads(json.dumps(content)).items() if key != _CHECKSUM}
    return write_atomically(path, json.dumps({**plain, _CHECKSUM: _hash_record(plain)}, indent=1))


def read_sealed(path: Path) -> dict[str, Any]:
    """A record without its checksum; raises `UserError` where it is damaged. Earlier versions wrote no checksum."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        line = " ".join(str(error).split())[:160]
        raise UserError(f"expected a run's record, got {path}, which cannot be read: {line}; run it again") from error
    if not isinstance(content, dict):
        raise UserError(f"expected a run's record, got {path}, which is no JSON object; run it again")
    if content.pop(_CHECKSUM, None) not in (None, _hash_record(content)):
        raise UserError(
            f"expected the record that counterfoil wrote in {path}, which is damaged: its checksum is another; remove"
            " that file and run the same command again"
        )
    return content


def _hash_record(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
