"""Verdicts as CSV and JSON files."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Literal, TypeAlias, cast, get_args

from counterfoil.errors import UserError
from counterfoil.types import Verdict
from counterfoil.verification.questionnaire import Questionnaire

Control: TypeAlias = Literal["", "good", "bad", "repeat"]
_COLUMNS = tuple(field.name for field in fields(Verdict))
_JSON_FORMAT = "counterfoil-verdicts"
_CONTROLS = get_args(Control)
_FORMULA = r"[=+\-@\t\r]"  # first characters of a spreadsheet formula
_MANDATORY = ("variant_id", "annotator", "question", "answer")


def format_csv(verdicts: Iterable[Verdict]) -> str:
    """Return one row per answer, corrections included."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, _COLUMNS)  # rows end in \r\n, so cells that hold either character are quoted
    writer.writeheader()
    writer.writerows({name: _escape_formula(value) for name, value in asdict(verdict).items()} for verdict in verdicts)
    return stream.getvalue()


def format_json(verdicts: Iterable[Verdict], questionnaire: Questionnaire, workspace_digest: str) -> str:
    """Return the answers with their questions and pictures."""
    content = {
        "format": _JSON_FORMAT,
        "workspace_digest": workspace_digest,
        "questions": [question.model_dump(mode="json") for question in questionnaire.questions],
        "verdicts": [asdict(verdict) for verdict in verdicts],
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def read_csv(text: str) -> list[Verdict]:
    """Read the answers of a CSV file that has at least the mandatory columns of `format_csv`."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    try:
        missing = [name for name in _MANDATORY if name not in (rows.fieldnames or ())]
        if missing:
            raise UserError(
                f"expected a CSV file with the columns {', '.join(_MANDATORY)}, got one without {missing[0]}"
            )
        return [_parse_verdict(_unescape_formulas(row), f"line {rows.line_num}") for row in rows]
    except csv.Error as error:
        raise UserError(f"expected a CSV file, got one that is damaged in line {rows.line_num + 1}: {error}") from error


def read_json(content: Mapping[str, Any], workspace_digest: str) -> list[Verdict]:
    """Read the answers of a file of `format_json`; raises `UserError` where they are about other pictures."""
    rows = content.get("verdicts")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError("expected a list of verdicts under 'verdicts', got none")
    if content.get("workspace_digest", workspace_digest) != workspace_digest:
        raise UserError("expected answers about the pictures of this workspace, got answers about others")
    return [_parse_verdict(row, f"verdict {place}") for place, row in enumerate(rows, 1)]


def check_verdicts(verdicts: Sequence[Verdict], questionnaire: Questionnaire, pictures: Collection[str]) -> None:
    """Raise `UserError` for unknown questions, unknown answers, and unknown pictures."""
    answers = {question.id: question.answers for question in questionnaire.questions}
    for verdict in verdicts:
        if verdict.variant_id not in pictures:
            raise UserError(f"expected pictures of this workspace, got '{verdict.variant_id}', which is none of them")
        if verdict.question not in answers:
            raise UserError(f"expected questions {', '.join(answers)}, got '{verdict.question}'")
        if verdict.answer not in answers[verdict.question]:
            known = ", ".join(answers[verdict.question])
            raise UserError(f"expected {known} as answer to '{verdict.question}', got '{verdict.answer}'")


def parse_amount(value: object, place: str) -> float:
    """Parse a number of at least 0; a missing one is 0."""
    try:
        number = float(str(value or 0))
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise UserError(f"expected a number of at least 0, got '{str(value)[:40]}' in {place}")
    return number


def _parse_verdict(row: Mapping[str, Any], place: str) -> Verdict:
    """Parse one answer; columns that a spreadsheet may have dropped get their defaults."""
    missing = [name for name in _MANDATORY if row.get(name) in (None, "")]
    if missing:
        raise UserError(f"expected every answer with its {missing[0]}, got none in {place}")
    variant_id, annotator, question, answer = (str(row[name]) for name in _MANDATORY)
    control = str(row.get("control") or "")
    if control not in _CONTROLS:
        raise UserError(f"expected control to be empty, good, bad or repeat, got '{control}' in {place}")
    return Verdict(
        variant_id=variant_id,
        annotator=annotator,
        question=question,
        answer=answer,
        seconds=parse_amount(row.get("seconds"), place),
        time=str(row.get("time") or ""),
        version=int(parse_amount(row.get("version") or 1, place)),
        control=cast(Control, control),
    )


def _escape_formula(value: object) -> object:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    return f"'{value}" if isinstance(value, str) and re.match(rf"'*{_FORMULA}", value) else value


def _unescape_formulas(row: Mapping[str, object]) -> dict[str, object]:
    """The cells as they were before `_escape_formula`."""
    return {
        name: value[1:] if isinstance(value, str) and re.match(rf"'+{_FORMULA}", value) else value
        for name, value in row.items()
    }
