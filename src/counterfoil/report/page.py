"""Study to report content and files; HTML page in one file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from counterfoil.labels.label_space import match_label_space
from counterfoil.report import words
from counterfoil.report.attribute_chart import attribute_chart, heat_map
from counterfoil.report.charts import Style, accuracy_chart, drops_chart, scatter_chart, styles
from counterfoil.report.curves import (
    SIDE,
    bounded,
    clear,
    confidence_rows,
    dose_charts,
    place_grids,
    reliability_panels,
)
from counterfoil.report.findings import findings_of
from counterfoil.report.gallery import gallery_sections
from counterfoil.report.model_findings import Finding, differ_significantly
from counterfoil.report.report_input import PaperTable, ReportInput
from counterfoil.report.result_tables import HEADINGS, accuracies_csv, cell_text, drops_csv, skipped_csv, summary
from counterfoil.report.words import MARK, MEANING, describe_donor_confusion, describe_threshold
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant, mean_drops
from counterfoil.statistics.intervals import INTERVAL_NAME, Estimate
from counterfoil.statistics.paired import Contrast
from counterfoil.statistics.ties import rank_models
from counterfoil.store.files import write_atomically
from counterfoil.study.confidence import measure_confidences, position_maps
from counterfoil.study.examples import ThumbnailCache, choose_examples, choose_unpaired_examples
from counterfoil.study.failure_modes import FailureModes, find_failure_modes, read_details
from counterfoil.study.predictions import DETAIL_COLUMNS, REPORT_COLUMNS
from counterfoil.study.runs import MOST_PHOTOS_FOR_POWER, Study, find_surrogates
from counterfoil.types import Skipped

TEMPLATES = Path(__file__).parent / "templates"
_MOST_CONTRASTS = 400  # rows of differences between models; all of them are in summary.json
_MOST_NAMES = 200  # of skipped pictures under one reason; the rest is in skipped.csv


def write_report(out: Path, content: ReportInput) -> Path:
    """Write report.html into the folder `out`, whole or not at all."""
    return write_atomically(out / "report.html", render(content))


def render(content: ReportInput) -> str:
    """The page as text; what comes from files, labels or models is escaped, and no script but ours may run."""
    looks = styles([*(row.model for row in content.drops), *content.run.models])
    surrogates = find_surrogates(content.run)
    return (
        _environment(surrogates)
        .get_template("report.html")
        .render(
            content=content,
            words=words,
            significant=is_significant,
            looks=looks,
            told_apart=differ_significantly,
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
        "glance": attribute_chart(content),
        "drops_chart": drops_chart(content.drops),
        "accuracy_chart": None if content.has_drops else accuracy_chart(content.accuracies, surrogates),
        "dose_charts": dose_charts(content.drops),
        "heat_map": heat_map(content),
        "scatter_chart": scatter_chart(content),
    }


def _gallery(content: ReportInput) -> dict[str, object]:
    """The shelves of photos, and what their filters need."""
    shown = gallery_sections(content)
    cards = [card for shelf in shown for card in shelf.cards]
    return {
        "shelves": shown,
        "classes": sorted({card.name for card in cards}),
        "flips": any(verdict.failed for card in cards for verdict in card.verdicts),
        "alone": any(not example.paired for example in content.examples),
    }


def page_script(name: str, templates: Path | None = None) -> dict[str, object]:
    """The one script of a page, and the hash by which the browser knows it."""
    script = ((templates or TEMPLATES) / name).read_text(encoding="utf-8")
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


def page_environment(*filters: Callable[..., str], templates: Path | None = None) -> Environment:
    """Escapes everything; a name that is not given is an error, not a gap. `templates` are looked up first."""
    environment = Environment(
        loader=FileSystemLoader([templates or TEMPLATES, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {word.__name__: word for word in filters}
    return environment


def _environment(surrogates: tuple[str, ...]) -> Environment:
    environment = page_environment(
        words.count, words.number, words.p_value, words.sentence_start, words.unbroken,
        words.whole_sentence, words.number_of, describe_threshold, describe_donor_confusion, with_code,
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


PapersOf: TypeAlias = Callable[[Study], Sequence[PaperTable]]


def no_papers(study: Study) -> Sequence[PaperTable]:
    """No paper is known to be behind the pictures."""
    return ()


def content_of(study: Study, album: ThumbnailCache, papers: PapersOf = no_papers) -> ReportInput:
    """Everything that the page says; `papers` gives tables by the rules of the paper behind the pictures."""
    for table in study.predictions.values():  # all that the page needs, in one reading of the file
        table.columns(REPORT_COLUMNS if study.run.collection else DETAIL_COLUMNS)
    manifest = study.manifest["sample_id"]
    alone = bool(study.accuracies) and not any(row.n for row in study.drops)
    show = choose_unpaired_examples if alone else choose_examples
    details = read_details(study)
    shown = list(show(study, album)) if len(manifest) and (alone or study.has_originals) else []
    return ReportInput(
        title=_title(study),
        run=study.run,
        drops=study.drops,
        photos=len(set(manifest)),
        variants=len(manifest),
        examples=shown,
        skipped=study.skipped,
        names=_names(study),
        unscored=study.unscored,
        attribute_drops=study.attribute_drops,
        means=_means(study) if len(manifest) and study.has_originals else {},
        outcomes={model: table.outcomes for model, table in study.predictions.items()},
        unseen=study.unseen,
        letters=_letters(study),
        contrasts=study.contrasts,
        failures=find_failure_modes(study, details) if study.has_originals else FailureModes(),
        confidences=measure_confidences(details),
        places=position_maps(details),
        runs=study.runs if len(study.runs) > 1 else (),
        accuracies=study.accuracies,
        papers=papers(study) if len(manifest) else (),
    )


def write_study(folder: Path, content: ReportInput) -> Path:
    """Write report.html, drops.csv, summary.json and skipped.csv; gives back the page."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "drops.csv", drops_csv(content.drops))
    if content.accuracies:
        write_atomically(folder / "accuracies.csv", accuracies_csv(content.accuracies, find_surrogates(content.run)))
    write_atomically(folder / "skipped.csv", skipped_csv(content.skipped))
    write_atomically(folder / "summary.json", json.dumps(summary(content), indent=1, allow_nan=False))
    return write_report(folder, content)


def _title(study: Study) -> str:
    if study.run.collection and (not study.drops or study.run.surrogates):
        return f"How often {'are these classifiers' if len(study.files) > 1 else 'is this classifier'} right?"
    return f"Which attributes break {'these classifiers' if len(study.files) > 1 else 'this classifier'}?"


def _names(study: Study) -> dict[str, str]:
    """What people call the labels that occur."""
    labels = sorted({label for table in study.predictions.values() for label in table.labels})
    space = match_label_space(labels)
    return {label: space.name_of(label) for label in labels}


def _means(study: Study) -> dict[str, Estimate]:
    """The mean of each model's drops; its interval is resampled with a fixed seed: the same answers, the same page."""
    return {row.model: row.drop for row in mean_drops(study.answers, np.random.default_rng(0)) if row.conditions}


def _letters(study: Study) -> dict[tuple[str, str], str]:
    """Models that an attribute's drops cannot tell apart share a letter."""
    if len(study.files) < 2:
        return {}
    attributes = dict.fromkeys(row.attribute for row in study.attribute_drops)
    return {
        (attribute, ranked.name): ranked.letters
        for attribute in attributes
        for ranked in rank_models(study.answers, attribute)
    }
