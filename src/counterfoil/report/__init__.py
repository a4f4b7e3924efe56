"""One self-contained HTML page; CSV, JSON, Markdown."""

from counterfoil.report.content import Example, Reply, ReportInput
from counterfoil.report.finding import Finding
from counterfoil.report.headline import headline
from counterfoil.report.html import render, write_report
from counterfoil.report.tables import drops_csv, markdown, skipped_csv, summary

__all__ = [
    "Example",
    "Finding",
    "Reply",
    "ReportInput",
    "drops_csv",
    "headline",
    "markdown",
    "render",
    "skipped_csv",
    "summary",
    "write_report",
]
