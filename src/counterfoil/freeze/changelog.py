"""CHANGELOG.md: what each version brought, the newest first; no dates, so that the same freeze gives the same bytes."""

from __future__ import annotations

from pathlib import Path

from counterfoil.freeze.comparing import Comparison, comparison_lines
from counterfoil.freeze.record import Record

CHANGELOG = "CHANGELOG.md"
_TOP = "# Changelog\n"


def changelog(record: Record, comparison: Comparison | None, previous: Path | None) -> str:
    """The changelog of a version, on top of the earlier one's where there is one."""
    counts = record.counts
    lines = [f"{counts.test} pictures of {len(record.labels.classes)} classes, {counts.reference} for reference."]
    if comparison is not None:
        lines += ["", f"Since {comparison.old_version}:", "", *_marked(comparison_lines(comparison)[1:])]
    elif previous is None:
        lines += ["", "First version."]
    earlier = (previous / CHANGELOG).read_text(encoding="utf-8").removeprefix(_TOP) if previous else ""
    return "\n".join([_TOP, f"## {record.version}", "", *lines, ""]) + earlier


def _marked(lines: list[str]) -> list[str]:
    """Lines of the comparison as a list; those that stand under another are indented."""
    return [f"  - {line.strip()}" if line.startswith("  ") else f"- {line}" for line in lines]
