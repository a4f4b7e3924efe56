"""Seeds and ids of variants: hashes of their content, independent of the order of work.

Adding, removing or reordering edits, samples or workers changes no other picture. A seed has 64 bits, an id 20
hexadecimal digits.
"""

from __future__ import annotations

import hashlib
import json


def content_hash(*parts: object) -> bytes:
    """The SHA-256 of the parts written as JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


def seed_from(*parts: object) -> int:
    """The seed for this content."""
    return int.from_bytes(content_hash(*parts)[:8], "big")


def id_from(*parts: object) -> str:
    """The id for this content."""
    return content_hash(*parts).hex()[:20]


def id_of_choice(variant_id: str, choice: str) -> str:
    """The id of a variant after a choice of donor or settings."""
    return hashlib.sha256(f"{variant_id} {choice}".encode()).hexdigest()[:20]


def seed_of_attempt(seed: int, attempt: int) -> int:
    """The seed of one of several draws for a variant."""
    return int.from_bytes(hashlib.sha256(f"{seed} {attempt}".encode()).digest()[:8], "big")
