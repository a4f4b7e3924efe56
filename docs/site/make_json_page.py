"""Write docs/json.md, what every command prints with --json, from the schema that the package ships."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "json.md"
SHARED = ("judgement", "drop", "contrast", "status", "error")
INTRODUCTION = """# JSON of every command

Every command takes `--json`: standard output then holds one document and nothing else, and what is usually printed
goes to standard error (`-q` drops it). `counterfoil gate` and `counterfoil analyse` write the document into a file
where `--json FILE` names one. `format` is raised when a key changes its meaning or goes; keys may be added. Numbers
that do not exist are `null`. A refusal is a document too: `format`, `command` and `error`, the line that standard
error has; the exit status is 2. The same as a JSON schema, a definition per command, is in the package:
`counterfoil/cli/output.schema.json`. This page is made from it by `python docs/site/make_json_page.py`.
"""


def describe_type(schema: Mapping[str, Any]) -> str:
    """The type of a key in a few words."""
    if "$ref" in schema:
        return f"[{schema['$ref'].rpartition('/')[2]}](#{schema['$ref'].rpartition('/')[2]})"
    if "anyOf" in schema:
        return " or ".join(describe_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kinds = schema.get("type", "anything")
    kind = " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
    if kind == "array":
        return f"list of {describe_type(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {describe_type(schema['additionalProperties'])}"
    return kind


def describe_object(schema: Mapping[str, Any]) -> Iterator[str]:
    """The keys as a table."""
    yield "| key | value | meaning |"
    yield "|---|---|---|"
    for key, value in schema["properties"].items():
        if key not in ("format", "command"):
            yield f"| `{key}` | {describe_type(value)} | {value.get('description', '')} |"


def write_page(schema: Mapping[str, Any]) -> str:
    """The whole page."""
    definitions = schema["$defs"]
    lines = [INTRODUCTION]
    for name, definition in definitions.items():
        if name not in SHARED and name != "version":
            about = definition["description"]
            lines += [f"## {name}", f"{about[0].upper()}{about[1:]}.", "", *describe_object(definition["anyOf"][0]), ""]
    lines.append("`counterfoil version` prints `version`. Parts that several documents have:\n")
    for name in SHARED:
        lines += [f"### {name}", *describe_object(definitions[name]), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    text = resources.files("counterfoil.cli").joinpath("output.schema.json").read_text(encoding="utf-8")
    PAGE.write_text(write_page(json.loads(text)), encoding="utf-8")
