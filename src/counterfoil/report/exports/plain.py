"""The summary as JSON with its schema, and as Markdown for a README or a pull request."""

from __future__ import annotations

import json
from importlib import resources

from counterfoil.report.content import ReportInput
from counterfoil.report.headline import headline
from counterfoil.report.tables import markdown, summary


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
    """The findings and the table of drops."""
    findings = "\n".join(f"- {finding.text}" for finding in headline(content.drops, content.contrasts, content.unseen))
    return {"results.md": f"# {content.title}\n\n{findings}\n\n{markdown(content.drops)}"}
