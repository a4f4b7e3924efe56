"""The page: everything in one file that asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from counterfoil.analyse import FEWEST_PHOTOS, significant
from counterfoil.report import wording
from counterfoil.report.content import ReportInput
from counterfoil.report.dose_chart import dose_chart
from counterfoil.report.drops_chart import drops_chart
from counterfoil.report.gallery import MOST_FLIPS, shelves
from counterfoil.report.headline import Finding, headline
from counterfoil.report.looks import styles
from counterfoil.types import Skipped

_PAGE = Path(__file__).parent / "page"
_MOST_NAMES = 200  # of skipped pictures under one reason; the rest is in skipped.csv


def write_report(out: Path, content: ReportInput) -> Path:
    """Write report.html into the folder `out`, whole or not at all."""
    path = out / "report.html"
    temporary = out / f".report.{os.getpid()}.html"
    out.mkdir(parents=True, exist_ok=True)
    try:
        temporary.write_text(render(content), encoding="utf-8", newline="\n")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def render(content: ReportInput) -> str:
    """The page as text; what comes from files, labels or models is escaped, and no script but ours may run."""
    script = (_PAGE / "report.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for word in (wording.number, wording.p_value, wording.sentence_start, wording.unbroken):
        environment.filters[word.__name__] = word
    return environment.get_template("report.html").render(
        content=content,
        words=wording,
        significant=significant,
        looks=styles([*(row.model for row in content.drops), *content.run.models]),
        findings=_by_model(headline(content.drops)),
        drops_chart=drops_chart(content.drops),
        dose_chart=dose_chart(content.drops),
        shelves=shelves(content),
        reasons=_by_reason(content),
        fewest_photos=FEWEST_PHOTOS,
        most_flips=MOST_FLIPS,
        most_names=_MOST_NAMES,
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _by_model(findings: tuple[Finding, ...]) -> dict[str, list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.model, []).append(finding)
    return groups


def _by_reason(content: ReportInput) -> list[tuple[Skipped, list[str]]]:
    """One example of each stage, edit and reason with the ids of all, the most frequent first."""
    groups: dict[tuple[str, str, str], list[Skipped]] = {}
    for row in content.skipped:
        groups.setdefault((row.stage, row.edit, row.reason), []).append(row)
    ordered = sorted(groups.values(), key=lambda rows: -len(rows))
    return [(rows[0], [row.sample_id for row in rows]) for rows in ordered]
