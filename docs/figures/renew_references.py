"""Renew the line numbers in docs/architecture.md: python docs/figures/renew_references.py [--check]

With --check nothing is written, and the exit status is 1 where a line is another one.

A reference names a file and a definition: [`runner.py:96`](../src/counterfoil/runner.py#L96) `execute`. The line is
looked up in the code.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
REFERENCE = re.compile(r"\[`([\w/]+\.py):\d+`\]\(\.\./src/counterfoil/\1#L\d+\) `([\w.]+)`")


def line_of(file: str, name: str) -> int:
    """The line on which `name` (a function, a class, or Class.method) is defined in a file of the package."""
    nodes = ast.parse((ROOT / "src" / "counterfoil" / file).read_text(encoding="utf-8")).body
    line = 0
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = [node for node in nodes if isinstance(node, kinds) and node.name == part]
        if not found:
            raise LookupError(f"docs/architecture.md names {name} in {file}, which does not define it")
        line, nodes = found[0].lineno, found[0].body
    return line


def renew(text: str) -> str:
    """The text with every reference at its line of today."""

    def reference(match: re.Match[str]) -> str:
        file, name = match.groups()
        line = line_of(file, name)
        return f"[`{file}:{line}`](../src/counterfoil/{file}#L{line}) `{name}`"

    return REFERENCE.sub(reference, text)


def list_old(text: str, renewed: str) -> list[str]:
    """The references whose line is another one today."""
    pairs = zip(REFERENCE.finditer(text), REFERENCE.finditer(renewed), strict=True)
    return [old[0].partition("]")[0].strip("[`") for old, new in pairs if old[0] != new[0]]


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    try:
        today = renew(page)
    except LookupError as error:
        sys.exit(f"{error}: name what is there now, then run `make rooms`")
    if "--check" not in sys.argv:
        PAGE.write_text(today, encoding="utf-8")
        print(f"renewed {PAGE}")
    elif old := list_old(page, today):
        sys.exit(f"docs/architecture.md names other lines than the code has ({', '.join(old)}): run `make rooms`")
