"""One self-contained HTML page; CSV, JSON, Markdown."""

from counterfoil.report.content import Flip, ReportInput
from counterfoil.report.headline import Finding, headline
from counterfoil.report.html import render, write_report
from counterfoil.report.tables import drops_csv, markdown, skipped_csv, summary

__all__ = [
    "Finding",
    "Flip",
    "ReportInput",
    "drops_csv",
    "headline",
    "markdown",
    "render",
    "skipped_csv",
    "summary",
    "write_report",
]
