"""The page of an analysis: every question with its answer, its numbers and how they are defined."""

from __future__ import annotations

import json
from pathlib import Path

from counterfoil.analysis.analyser import Analysis, render_analysis_json
from counterfoil.report import words
from counterfoil.report.page import create_environment, mark_code
from counterfoil.store.files import write_atomically

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_ROWS = 60  # of numbers shown; all are in analysis.json


def write_analysis(folder: Path, analysis: Analysis) -> Path:
    """Write analysis.html and analysis.json into a folder; returns the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    write_analysis_json(folder / "analysis.json", analysis)
    return write_atomically(folder / "analysis.html", render_analysis(analysis))


def write_analysis_json(path: Path, analysis: Analysis) -> Path:
    """Write the answers as JSON."""
    return write_atomically(path, json.dumps(render_analysis_json(analysis), indent=1, allow_nan=False))


def render_analysis(analysis: Analysis) -> str:
    """Render the page; it needs no script, and all text from files is escaped."""
    environment = create_environment(words.format_count, words.pluralize, mark_code, templates=_TEMPLATES)
    return environment.get_template("analysis.html").render(
        analysis=analysis,
        run=analysis.study.run,
        photos=len(analysis.study.answers.samples),
        models=list(analysis.study.predictions),
        most_rows=_MOST_ROWS,
    )
