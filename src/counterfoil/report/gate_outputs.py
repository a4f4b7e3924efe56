"""The outcome of a gate as JUnit XML, as Markdown for a pull request's comment, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from counterfoil.report.gate import EXIT_STATUS, SHOWN_FIRST, Check, combine_verdicts
from counterfoil.report.words import ABSENT, capitalize_first, format_count, format_number

GATE_FORMAT = 1  # raised when a key changes its meaning or is removed
_TITLES = {
    "holds": "every bound holds",
    "violated": "a bound is violated",
    "cannot tell": "the photos cannot tell",
    "not judged": "not judged",
}
_MEANINGS = {
    "holds": "Every bound is shown to hold.",
    "violated": "At least one bound is shown to be violated.",
    "cannot tell": "No bound is shown to be violated, and not all are shown to hold.",
    "not judged": "A model is not set up as it was trained, so its numbers say nothing about it.",
}
_EXPLANATION = (
    "Points lost to each attribute against its reference, and photos wrong when unedited, paired by photo. In brackets"
    " the bounds that decide: violated where the first is above what is allowed, holds where the second is not."
)
_MARKS = {"holds": "✅", "violated": "❌", "cannot tell": "❔", "not judged": "⛔"}


def to_junit(checks: Sequence[Check]) -> str:
    """Return the checks as JUnit XML: a violation is a failure, a check without a decision an error."""
    counts = {verdict: sum(check.verdict == verdict for check in checks) for verdict in EXIT_STATUS}
    suite = ElementTree.Element(
        "testsuite", name="counterfoil gate", tests=str(len(checks)),
        failures=str(counts["violated"]), errors=str(counts["cannot tell"] + counts["not judged"]), skipped="0",
    )  # fmt: skip
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", classname=check.model, name=check.subject, time="0")
        if check.verdict != "holds":
            kind = "failure" if check.verdict == "violated" else "error"
            ElementTree.SubElement(case, kind, type=check.verdict, message=check.message)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def to_markdown(checks: Sequence[Check]) -> str:
    """Return the checks as Markdown: the verdict, then a table with the worst rows first."""
    verdict = combine_verdicts(checks)
    lines = [f"### {_MARKS[verdict]} Robustness gate: {_TITLES[verdict]}", "", _MEANINGS[verdict], ""]
    compared = any(not math.isnan(check.before) for check in checks)
    columns = ["", "", *(["before", "now", "change"] if compared else ["measured"]), "allowed", "photos", ""]
    lines += [_markdown_row(columns), _markdown_row(["---"] * len(columns))]
    lines += [_markdown_row(_cells(check, compared)) for check in sort_checks(checks)]
    notes = [check.message for check in sort_checks(checks) if math.isnan(check.measured)]
    lines += ["", *(f"- {capitalize_first(note)}" for note in notes)] if notes else []
    if compared:
        lines += ["", _EXPLANATION]
    return "\n".join(lines) + "\n"


def to_json(checks: Sequence[Check]) -> dict[str, Any]:
    """Return the verdict, the exit status and every check as plain JSON, null where there is no number."""
    verdict = combine_verdicts(checks)
    return {
        "format": GATE_FORMAT,
        "verdict": verdict,
        "exit_status": EXIT_STATUS[verdict],
        "checks": [
            {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
            for row in (check._asdict() for check in checks)
        ],
    }


def sort_checks(checks: Sequence[Check]) -> list[Check]:
    """The checks, the worst first."""
    return sorted(checks, key=lambda check: SHOWN_FIRST.index(check.verdict))


def _cells(check: Check, compared: bool) -> list[str]:
    change = (
        ABSENT
        if math.isnan(check.measured)
        else (f"{format_number(check.measured)} [{format_number(check.low)}, {format_number(check.high)}]")
    )
    numbers = [format_number(check.before), format_number(check.after), change] if compared else [change]
    allowed = ABSENT if math.isnan(check.limit) else f"{check.limit:g}"
    decided = f"{check.verdict}; {format_count(check.photos)} photos would decide" if check.photos else check.verdict
    return [f"{_MARKS[check.verdict]} {check.model}", check.subject, *numbers, allowed, str(check.n), decided]


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
