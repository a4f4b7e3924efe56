"""The summary as JSON with its schema, and as Markdown for a README or a pull request."""

from __future__ import annotations

import json
from importlib import resources

from counterfoil.report.content import ReportInput
from counterfoil.report.findings import findings_of
from counterfoil.report.paper_tables import papers_markdown
from counterfoil.report.surrogates import surrogates_among
from counterfoil.report.tables import accuracies_markdown, markdown, summary


def summary_schema() -> str:
    """The JSON schema of summary.json."""
    return resources.files("counterfoil.report").joinpath("summary.schema.json").read_text(encoding="utf-8")


def json_files(content: ReportInput) -> dict[str, str]:
    """summary.json, and the schema that it keeps to."""
    document = {"$schema": "summary.schema.json", **summary(content)}
    return {
        "summary.json": json.dumps(document, indent=1, allow_nan=False) + "\n",
        "summary.schema.json": summary_schema(),
    }


def markdown_files(content: ReportInput) -> dict[str, str]:
    """The findings, the table of drops or of accuracies, and what a paper's own rule gives."""
    surrogates = surrogates_among(content.run)
    parts = [f"# {content.title}\n", "\n".join(f"- {finding.text}" for finding in findings_of(content)) + "\n"]
    parts += [f"> {note}\n" for note in content.run.notes]
    if content.drops or not content.accuracies:
        parts.append(markdown(content.drops, surrogates))
    if content.accuracies:
        parts.append(accuracies_markdown(content.accuracies, surrogates))
    return {"results.md": "\n".join([*parts, *papers_markdown(content.papers)])}
