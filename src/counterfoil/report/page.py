"""The report's self-contained HTML page, and the files of a report beside it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from counterfoil.assets.cache import cache_folder
from counterfoil.machine import return_memory
from counterfoil.report import words
from counterfoil.report.attribute_chart import Styles, build_kinds_chart, build_losses_chart, order_attributes
from counterfoil.report.attribute_sections import MOST_OPEN, build_sections
from counterfoil.report.chart_parts import assign_styles
from counterfoil.report.cluster_table import build_cluster_table
from counterfoil.report.content import MANY_MODELS, ReportContent
from counterfoil.report.csv_tables import accuracies_to_csv, drops_to_csv, natural_ground_to_csv, skipped_to_csv
from counterfoil.report.drop_findings import differ_significantly, excludes_zero
from counterfoil.report.gallery import EmbeddedPictures, GallerySource, build_gallery, choose_failures, title_card
from counterfoil.report.headline import write_headline
from counterfoil.report.markdown_tables import PAPER_HEADINGS, format_cell
from counterfoil.report.place_maps import build_place_grids
from counterfoil.report.ranking import build_ranking
from counterfoil.report.reliability import SIDE, build_reliability_panels, list_confidence_rows
from counterfoil.report.summary_json import summarize
from counterfoil.report.title import write_title
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.statistics.intervals import INTERVAL_NAME
from counterfoil.store.files import write_atomically
from counterfoil.store.result_cache import Stored, name_result, open_result_cache
from counterfoil.store.run_checksums import renew_checksums
from counterfoil.study.runs import MOST_PHOTOS_FOR_POWER, find_surrogates
from counterfoil.types import Skipped

TEMPLATES = Path(__file__).parent / "templates"
_FILTERS = (
    words.format_count, words.format_number, words.format_p_value, words.pluralize, words.capitalize_first,
    words.join_without_breaks, words.complete_sentence, words.describe_threshold, words.describe_donor_confusion,
    title_card,
)  # fmt: skip
_MOST_CONTRASTS = 400  # rows of differences between models; all are in summary.json
_MOST_WARNINGS = 3
_MOST_NAMES = 200  # of skipped pictures per reason; the rest is in skipped.csv
_MOST_SENTENCES = 6  # models with a sentence of their own
_NUMBERS = re.compile(r"\d+\.\d\u00a0(?:%|points)|not judged")  # of a model's sentence


def write_report(folder: Path, content: ReportContent) -> Path:
    """Write report.html, its tables as CSV and summary.json; returns the page's path."""
    return_memory()  # of the columns that the content was computed from
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "drops.csv", drops_to_csv(content.drops))
    if content.natural_ground:
        write_atomically(folder / "natural_ground.csv", natural_ground_to_csv(content.natural_ground))
    if content.accuracies:
        accuracies = accuracies_to_csv(content.accuracies, find_surrogates(content.run))
        write_atomically(folder / "accuracies.csv", accuracies)
    write_atomically(folder / "skipped.csv", skipped_to_csv(content.skipped))
    write_atomically(folder / "summary.json", json.dumps(summarize(content), indent=1, allow_nan=False))
    renew_checksums(folder)
    return write_page(folder, content)


def write_page(folder: Path, content: ReportContent) -> Path:
    """Write report.html atomically."""
    return write_atomically(folder / "report.html", render_page(content))


def render_page(content: ReportContent) -> str:
    """Render the page; text from files, labels or models is escaped, and only our own script may run."""
    contrasts = sorted(content.contrasts, key=lambda row: row.p_value if row.p_value == row.p_value else 2.0)
    styles = assign_styles([*content.run.models, *(row.model for row in content.drops)])
    environment = create_environment(*_FILTERS, mark_code, mark_numbers)
    environment.globals |= _globals(content, styles)
    return environment.get_template("report.html").render(
        content=content,
        words=words,
        title=write_title(content),
        warnings=_list_warnings(content),
        doubtful=content.doubtful_masks,
        findings=write_headline(content),
        contrasts=contrasts[:_MOST_CONTRASTS],
        skipped_groups=_group_by_reason(content),
        most_names=_MOST_NAMES,
        most_sentences=_MOST_SENTENCES,
        paper_headings=PAPER_HEADINGS,
        format_cell=format_cell,
        interval_name=INTERVAL_NAME,
        most_photos_for_power=MOST_PHOTOS_FOR_POWER,
        **_evidence(content, styles),
        **_details(content, styles),
        **embed_script("tables.js", "report.js"),
    )


def _globals(content: ReportContent, styles: Styles) -> dict[str, object]:
    """Globals for macros, which do not see the variables given to the page."""
    return {
        "styles": styles,
        "fewest_photos": FEWEST_PHOTOS,
        "is_significant": is_significant,
        "differ_significantly": differ_significantly,
        "excludes_zero": excludes_zero,
        "surrogates": find_surrogates(content.run),
        "surrogate_meaning": words.SURROGATE_MEANING,
        "surrogate_mark": Markup('<span class="badge" title="{}">{}</span>').format(
            words.SURROGATE_MEANING, words.SURROGATE_MARK
        ),
    }


def _evidence(content: ReportContent, styles: Styles) -> dict[str, object]:
    """The charts and pictures of the first screen, and the sections."""
    pictures = EmbeddedPictures()
    judged = [row for row in content.examples if row.model in ("", *content.judged_models)]
    gallery = build_gallery(GallerySource(judged, content.names, styles, content.folder), pictures)
    losses, kinds = build_losses_chart(content, styles), build_kinds_chart(content, styles)
    chart = (kinds or losses) if content.is_mined else (losses or kinds)
    sections = build_sections(content, gallery, styles) if content.has_drops else []
    shown = {section.attribute for section in sections}
    order = order_attributes(content)
    many = len(content.judged_models) >= MANY_MODELS and bool(content.edited_accuracies)
    return {
        "chart": chart,
        "ranking": build_ranking(content) if many and losses else None,
        "clusters": build_cluster_table(content) if many and losses else None,
        "failures": choose_failures(gallery, order),
        "open_sections": sections[:MOST_OPEN],
        "folded_sections": sections[MOST_OPEN:],
        "other_pictures": [section for section in gallery if section.attribute not in shown],
        "masks": [(pictures.add(mask.picture), mask) for mask in content.masks],
        "cards": [card for section in gallery for card in section.cards],
        "pictures": list(pictures.addresses.values()),
    }


class _Warning(NamedTuple):
    """A warning above the verdicts."""

    text: str
    model: str = ""
    unjudged: bool = False
    command: str = ""


def _list_warnings(content: ReportContent) -> list[_Warning]:
    """At most three warnings, worst first: models that are not judged, notes of the collection, doubts."""
    told = [(model, own) for model, own in content.judgements.items() if own.reason]
    unjudged = [_Warning(own.sentence, model, True, content.run.command) for model, own in told if not own.is_judged]
    notes = [_Warning(words.complete_sentence(note)) for note in content.run.notes]
    doubts = [_Warning(own.sentence, model) for model, own in told if own.verdict == "judged"]
    return [*unjudged, *notes, *doubts][:_MOST_WARNINGS]


def _details(content: ReportContent, styles: Styles) -> dict[str, object]:
    edited = "edited" if content.has_drops else "all pictures"
    return {
        "reliability_panels": build_reliability_panels(content.confidences, styles, edited),
        "reliability_side": SIDE,
        "confidence_rows": list_confidence_rows(content.confidences),
        "unedited_places": build_place_grids(content.places, "unedited", styles),
    }


def _group_by_reason(content: ReportContent) -> list[tuple[Skipped, list[str]]]:
    """One example of each stage, edit and reason with the ids of all, the most frequent first."""
    groups: dict[tuple[str, str, str], list[Skipped]] = {}
    for row in content.skipped:
        groups.setdefault((row.stage, row.edit, row.reason), []).append(row)
    ordered = sorted(groups.values(), key=lambda rows: -len(rows))
    return [(rows[0], [row.sample_id for row in rows]) for rows in ordered]


def create_environment(*filters: Callable[..., str], templates: Path = TEMPLATES) -> Environment:
    """Return an environment that escapes everything and raises on undefined names; `templates` are searched first."""
    environment = Environment(
        loader=FileSystemLoader([templates, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_StoredTemplates(),
    )
    environment.filters |= {function.__name__: function for function in filters}
    return environment


_COMPILED: dict[tuple[str, str], bytes] = {}  # templates of this process, by name and text


class _StoredTemplates(BytecodeCache):
    """Compiled templates, of this process or of the cache of results: compiling takes most of a small report's time."""

    def __init__(self) -> None:
        self._cache = open_result_cache(cache_folder())

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill in what was stored for this text of the template."""
        compiled = _COMPILED.get((bucket.key, bucket.checksum))
        if compiled is None and (stored := self._cache.recall(_name_template(bucket))) is not None:
            compiled = stored.planes[0].tobytes()
        if compiled is not None:
            bucket.bytecode_from_string(compiled)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store a template that was compiled."""
        compiled = _COMPILED[bucket.key, bucket.checksum] = bucket.bytecode_to_string()
        self._cache.keep(_name_template(bucket), Stored(None, (np.frombuffer(compiled, np.uint8),)))


def _name_template(bucket: Bucket) -> str:
    return name_result("template", bucket.key, bucket.checksum, sys.version, version("jinja2"))


def embed_script(*names: str, templates: Path = TEMPLATES) -> dict[str, object]:
    """Return the one script of a page, and its hash for the Content-Security-Policy."""
    script = "\n".join((templates / name).read_text(encoding="utf-8") for name in names)
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": Markup(script), "script_hash": script_hash}


def mark_code(text: str) -> Markup:
    """Return plain text for the page, with text between two backticks marked as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def mark_numbers(sentence: str) -> Markup:
    """Return a model's sentence for the page, its accuracy and its points in bold, without line breaks in them."""
    return Markup(_NUMBERS.sub(r"<b>\g<0></b>", str(escape(words.join_without_breaks(sentence)))))
