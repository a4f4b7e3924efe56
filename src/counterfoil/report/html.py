"""The page: everything in one file that asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from counterfoil.analyse import FEWEST_PHOTOS, INTERVAL_NAME, Contrast, significant
from counterfoil.report import wording
from counterfoil.report.accuracy_chart import accuracy_chart
from counterfoil.report.confidence import SIDE, bounded, clear, confidence_rows, reliability_panels
from counterfoil.report.content import MOST_PHOTOS_FOR_POWER, ReportInput
from counterfoil.report.dose_chart import dose_charts
from counterfoil.report.drops_chart import drops_chart
from counterfoil.report.failure_modes import told_fall, told_lender
from counterfoil.report.finding import Finding
from counterfoil.report.findings import findings_of
from counterfoil.report.gallery import shelves
from counterfoil.report.glance import glance
from counterfoil.report.heat_map import heat_map
from counterfoil.report.looks import Style, styles
from counterfoil.report.models_apart import told_apart
from counterfoil.report.paper_tables import HEADINGS, cell_text
from counterfoil.report.places import place_grids
from counterfoil.report.scatter_chart import scatter_chart
from counterfoil.report.surrogates import MARK, MEANING, surrogates_among
from counterfoil.store import write_atomically
from counterfoil.types import Skipped

_PAGE = Path(__file__).parent / "page"
_MOST_CONTRASTS = 400  # rows of differences between models; all of them are in summary.json
_MOST_NAMES = 200  # of skipped pictures under one reason; the rest is in skipped.csv


def write_report(out: Path, content: ReportInput) -> Path:
    """Write report.html into the folder `out`, whole or not at all."""
    return write_atomically(out / "report.html", render(content))


def render(content: ReportInput) -> str:
    """The page as text; what comes from files, labels or models is escaped, and no script but ours may run."""
    looks = styles([*(row.model for row in content.drops), *content.run.models])
    surrogates = surrogates_among(content.run)
    return (
        _environment(surrogates)
        .get_template("report.html")
        .render(
            content=content,
            words=wording,
            significant=significant,
            looks=looks,
            told_apart=told_apart,
            contrasts=sorted(content.contrasts, key=_doubt)[:_MOST_CONTRASTS],
            leads=("accuracy", "weakest") if content.accuracies else ("weakest",),
            paper_headings=HEADINGS,
            cell_text=cell_text,
            findings=_by_model(findings_of(content)),
            reasons=_by_reason(content),
            fewest_photos=FEWEST_PHOTOS,
            interval_name=INTERVAL_NAME,
            most_names=_MOST_NAMES,
            most_photos_for_power=MOST_PHOTOS_FOR_POWER,
            **_charts(content, surrogates),
            **_beyond_accuracy(content, looks),
            **_gallery(content),
            **page_script("report.js"),
        )
    )


def _charts(content: ReportInput, surrogates: tuple[str, ...]) -> dict[str, object]:
    return {
        "glance": glance(content),
        "drops_chart": drops_chart(content.drops),
        "accuracy_chart": None if content.has_drops else accuracy_chart(content.accuracies, surrogates),
        "dose_charts": dose_charts(content.drops),
        "heat_map": heat_map(content),
        "scatter_chart": scatter_chart(content),
    }


def _gallery(content: ReportInput) -> dict[str, object]:
    """The shelves of photos, and what their filters need."""
    shown = shelves(content)
    cards = [card for shelf in shown for card in shelf.cards]
    return {
        "shelves": shown,
        "classes": sorted({card.name for card in cards}),
        "flips": any(verdict.failed for card in cards for verdict in card.verdicts),
        "alone": any(not example.paired for example in content.examples),
    }


def page_script(name: str) -> dict[str, object]:
    """The one script of a page, and the hash by which the browser knows it."""
    script = (_PAGE / name).read_text(encoding="utf-8")
    told = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": Markup(script), "script_hash": told}


def _beyond_accuracy(content: ReportInput, looks: Mapping[str, Style]) -> dict[str, object]:
    """What the sections on confidence and on places are made of."""
    paired = any(curve.before for curve in content.confidences.curves)
    return {
        "reliability": reliability_panels(
            content.confidences, looks, "edited" if content.has_drops else "all pictures"
        ),
        "reliability_side": SIDE,
        "paired_curves": paired,
        "confidence_rows": confidence_rows(content.confidences),
        "bounded": bounded,
        "clear": clear,
        "places": {kind: place_grids(content.places, kind) for kind in ("moved", "unedited")},
    }


def page_environment(*filters: Callable[..., str]) -> Environment:
    """Escapes everything; a name that is not given is an error, not a gap."""
    environment = Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {word.__name__: word for word in filters}
    return environment


def _environment(surrogates: tuple[str, ...]) -> Environment:
    environment = page_environment(
        wording.count, wording.number, wording.p_value, wording.sentence_start, wording.unbroken,
        wording.whole_sentence, wording.number_of, told_fall, told_lender, with_code,
    )  # fmt: skip
    environment.globals |= {
        "surrogates": surrogates,
        "surrogate_meaning": MEANING,
        "surrogate_mark": Markup('<span class="badge" title="{}">{}</span>').format(MEANING, MARK),
    }
    return environment


def with_code(text: str) -> Markup:
    """Plain text for the page; what stands between two backticks, as commands do in a terminal, is set as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def _doubt(row: Contrast) -> float:
    """What is clearest first; no number last."""
    return row.p_value if row.p_value == row.p_value else 2.0


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
