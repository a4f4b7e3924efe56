"""What a command prints with --json, checked against the schema that ships with the package."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

SCHEMA = json.loads(resources.files("counterfoil.cli").joinpath("output.schema.json").read_text(encoding="utf-8"))


def read_document(text: str, name: str) -> dict[str, Any]:
    """Standard output as the document of this command, checked against its schema."""
    import jsonschema  # type: ignore[import-untyped, unused-ignore]

    document: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], **SCHEMA["$defs"][name]}).validate(document)
    assert document["command"] == name
    return document
