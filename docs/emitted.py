"""Every sentence that the program can emit, to be read at once.

    python docs/emitted.py                    all of them: kind, place, words
    python docs/emitted.py --kind error       of one kind: error, reason, terminal, help, reply, page, script, text
    python docs/emitted.py --longer 30        those with a sentence of more than so many words, the longest first

Strings come from the syntax trees of the package (a value that is filled in is shown as {name}), text and labels from
the templates of pages, messages from their scripts, descriptions from recipes. Of docstrings only those of commands
are emitted. What has fewer than three words is a label, a key or a format, and left out.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "counterfoil"
FEWEST_WORDS = 3
KINDS = {  # by the name of the function or class that a string is given to
    "UserError": "error", "FolderClaimedError": "error", "ValueError": "error", "fail": "error",
    "reporting_errors": "error", "Refused": "reply", "HTTPException": "reply",
    "Unusable": "reason", "Unsegmented": "reason", "Skipped": "reason", "PaintRefused": "reason", "Removal": "reason",
    "echo": "terminal", "print": "terminal", "show_stage": "terminal", "Extent": "terminal",
    "option": "help", "argument": "help", "Place": "help", "version_option": "help",
}  # fmt: skip
SHOWN_ATTRIBUTES = {"aria-label", "title", "alt", "placeholder", "data-label"}
_HIDDEN_TAGS = {"script", "style"}
_NOT_WORDS = re.compile(r"[;<>=]\s*$|^\s*[.#@]|^\(|\\[dsw.]|\]\s*\||\w \| \w|^\S+$")  # code, patterns, types, paths


class Emitted(NamedTuple):
    """One text that may be shown to somebody."""

    kind: str
    file: str
    line: int
    words: str

    def __str__(self) -> str:
        return f"{self.kind:9} {self.file}:{self.line}: {self.words}"


def list_emitted(package: Path = PACKAGE) -> list[Emitted]:
    """Every text of the package that may be shown, in the order of its files."""
    found: list[Emitted] = []
    for path in sorted(package.rglob("*")):
        if path.suffix in _READERS:
            name = path.relative_to(package).as_posix()
            texts = _READERS[path.suffix](path.read_text(encoding="utf-8"))
            found += [Emitted(kind, name, line, words) for kind, line, words in texts]
    return found


def _read_python(text: str) -> Iterator[tuple[str, int, str]]:
    reader = _StringReader()
    reader.visit(ast.parse(text))
    yield from reader.found


class _StringReader(ast.NodeVisitor):
    """Collects strings with the kind of the call that they are given to."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int, str]] = []
        self._kinds = ["text"]
        self._docstrings: set[int] = set()

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self._kinds.append(KINDS.get(name, self._kinds[-1]))
        self.generic_visit(node)
        self._kinds.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._skip_docstring(node)
        decorators = [ast.unparse(one) for one in node.decorator_list]
        if any(re.search(r"\.(command|group)\(", one) for one in decorators):
            self._add("help", node.lineno, ast.get_docstring(node) or "")
        self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._skip_docstring(node)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._skip_docstring(node)
        self.generic_visit(node)

    def visit_Module(self, node: ast.Module) -> None:
        self._skip_docstring(node)
        self.generic_visit(node)

    def _skip_docstring(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) -> None:
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            self._docstrings.add(id(first.value))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and id(node) not in self._docstrings:
            self._add(self._kinds[-1], node.lineno, node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._add(self._kinds[-1], node.lineno, "".join(_show_part(part) for part in node.values))
        for part in node.values:  # texts within the values that are filled in
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def _add(self, kind: str, line: int, text: str) -> None:
        words = " ".join(text.split())
        if _is_sentence(words):
            self.found.append((kind, line, words))


def _show_part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    names = [node.id for node in ast.walk(part.value) if isinstance(node, ast.Name)]
    names += [node.attr for node in ast.walk(part.value) if isinstance(node, ast.Attribute)]
    return "{" + (names[-1] if names else "value") + "}"


def _is_sentence(words: str) -> bool:
    plain = re.sub(r"\{\w*\}", " ", words)
    return len(re.findall(r"[A-Za-z]{2,}", plain)) >= FEWEST_WORDS and not _NOT_WORDS.search(words)


def _read_template(text: str) -> Iterator[tuple[str, int, str]]:
    """Text nodes and labels of a page; Jinja's values become {…}, its other tags disappear."""
    plain = re.sub(r"\{#.*?#\}|\{%.*?%\}", _keep_lines, text, flags=re.S)
    plain = re.sub(r"\{\{.*?\}\}", lambda match: "{…}" + "\n" * match[0].count("\n"), plain, flags=re.S)
    reader = _TextNodes()
    reader.feed(plain)
    yield from (("page", line, words) for line, words in reader.found if _is_sentence(words))


def _keep_lines(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


class _TextNodes(HTMLParser):
    """Collects text between tags, joined over inline tags, and the attributes that are read out."""

    _INLINE = frozenset({"b", "em", "i", "strong", "code", "a", "span", "small", "kbd", "abbr", "br", "sub", "sup"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._text, self._start, self._hidden = "", 0, 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN_TAGS
        if tag not in self._INLINE:
            self._flush()
        self.found += [(self.getpos()[0], value) for name, value in attributes if name in SHOWN_ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN_TAGS
        if tag not in self._INLINE:
            self._flush()

    def handle_data(self, data: str) -> None:
        if self._hidden == 0:
            self._start = self._start if self._text.strip() else self.getpos()[0]
            self._text += data

    def _flush(self) -> None:
        words = " ".join(self._text.split())
        if words:
            self.found.append((self._start, words))
        self._text = ""


def _read_script(text: str) -> Iterator[tuple[str, int, str]]:
    """Strings of a script; `${value}` becomes {…}."""
    plain = re.sub(r"(?m)^\s*//.*$", "", text)
    for match in re.finditer(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', plain):
        words = " ".join(re.sub(r"\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", "{…}", match[1] or match[2] or "").split())
        if _is_sentence(words):
            yield "script", plain[: match.start()].count("\n") + 1, words


def _read_recipe(text: str) -> Iterator[tuple[str, int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("about:", "note:")):
            yield "text", number, line.partition(":")[2].strip()


_READERS = {".py": _read_python, ".html": _read_template, ".js": _read_script, ".yaml": _read_recipe}


def count_longest(words: str) -> int:
    """The number of words of the longest sentence."""
    return max(len(re.findall(r"[\w{}…'-]+", sentence)) for sentence in re.split(r"(?<=[.!?;:])\s", words))


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description="Every sentence that the program can emit.")
    parser.add_argument("--kind", choices=sorted({*KINDS.values(), "page", "script", "text"}))
    parser.add_argument("--longer", type=int, metavar="WORDS", help="only texts with a longer sentence, longest first")
    chosen = parser.parse_args()
    found = [one for one in list_emitted() if chosen.kind in (None, one.kind)]
    if chosen.longer is not None:
        found = [one for one in found if count_longest(one.words) > chosen.longer]
        found.sort(key=lambda one: -count_longest(one.words))
    for one in found:
        print(one)


if __name__ == "__main__":
    main()
