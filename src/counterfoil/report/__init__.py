"""One self-contained HTML page; CSV, JSON, Markdown."""

from counterfoil.report.content import Example, PaperTable, Reply, ReportInput
from counterfoil.report.finding import Finding
from counterfoil.report.findings import findings
from counterfoil.report.html import write_report
from counterfoil.report.tables import accuracies_csv, drops_csv, skipped_csv, summary

__all__ = [
    "Example", "Finding", "PaperTable", "Reply", "ReportInput", "accuracies_csv", "drops_csv", "findings",
    "skipped_csv", "summary", "write_report",
]  # fmt: skip
