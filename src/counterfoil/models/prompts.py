"""What a zero-shot model is told about each class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.labels import LabelSpace


def prompt_name(name: str) -> str:
    """A class name as ImageNet-D's prompts have it: lower case, no dashes or underscores, "a/b" as "a or b"."""
    return " ".join(name.lower().replace("_", " ").replace("-", " ").replace("/", " or ").split())


def prompts(space: LabelSpace, templates: Sequence[str]) -> list[list[str]]:
    """Of each class, in the order of the labels, every template filled in."""
    return [[template.replace("{c}", prompt_name(name)) for template in templates] for name in space.names]


def read_templates(text: str) -> tuple[str, ...]:
    """A template such as "a sketch of a {c}", or a text file with one a line."""
    if "{c}" in text:
        return (text,)
    if not Path(text).is_file():
        raise UserError(f"expected a prompt template with {{c}} for the class, or a text file of them, got '{text}'")
    return tuple(line.strip() for line in Path(text).read_text(encoding="utf-8").splitlines() if line.strip())
