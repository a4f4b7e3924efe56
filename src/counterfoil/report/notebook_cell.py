"""What a notebook shows of a result, a comparison, a benchmark or an edit: short HTML with its pictures inside."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from counterfoil.picture_strip import SIDE, render_box, render_list, render_row
from counterfoil.report.attribute_chart import order_attributes
from counterfoil.report.chart_parts import assign_styles
from counterfoil.report.content import ReportContent
from counterfoil.report.figures import export_svg
from counterfoil.report.gallery import (
    Card,
    EmbeddedPictures,
    GallerySource,
    build_gallery,
    choose_failures,
    title_card,
)
from counterfoil.report.headline import write_headline
from counterfoil.report.title import write_title
from counterfoil.report.words import capitalize_first

_SENTENCES = 4
_QUIET = "opacity:.7;font-size:12px"
_CHART = "losses"


def render_result(content: ReportContent) -> str:
    """The verdict as a title, the first findings, the chart of the attributes, and three failures."""
    findings = [finding.text for finding in write_headline(content)]
    rest = f'<p style="{_QUIET}">and {len(findings) - _SENTENCES} more: result.headline</p>'
    parts = [
        f"<h3>{escape(write_title(content))}</h3>",
        render_list(findings[:_SENTENCES]),
        rest if len(findings) > _SENTENCES else "",
        _chart(content),
        _failures(content),
    ]
    return render_box(parts)


def render_sentences(title: str, sentences: Sequence[str], rows: Sequence[Sequence[str]] = ()) -> str:
    """A title, sentences, and a table whose first row is its heading."""
    return render_box([f"<h3>{escape(title)}</h3>", render_list(sentences), _table(rows)])


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [
        "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
        for row, tag in zip(rows, ["th", *["td"] * len(rows)], strict=False)
    ]
    return f"<table>{''.join(lines)}</table>" if rows else ""


def _chart(content: ReportContent) -> str:
    """The chart of what attributes cost, as a picture, so that the notebook's style cannot change it."""
    charts = export_svg(content)
    chosen = next((svg for name, svg in charts.items() if _CHART in name), next(iter(charts.values()), ""))
    if not chosen:
        return ""
    data = base64.b64encode(chosen.encode()).decode("ascii")
    return f'<img style="max-width:100%;background:white" alt="chart" src="data:image/svg+xml;base64,{data}">'


def _failures(content: ReportContent) -> str:
    pictures = EmbeddedPictures()
    styles = assign_styles(content.run.models)
    gallery = build_gallery(GallerySource(content.examples, content.names, styles), pictures)
    addresses = {shot.name: address for shot, address in pictures.addresses.values()}
    cards = choose_failures(gallery, order_attributes(content))
    return render_row([_card(card, addresses) for card in cards])


def _card(card: Card, addresses: dict[str, str]) -> str:
    shots = [shot for shot in (card.before, card.edited) if shot is not None]
    images = "".join(f'<img height="{SIDE}" src="{addresses[shot.name]}" alt="">' for shot in shots)
    lead = card.lead
    said = "" if lead is None else f"{lead.before} → {lead.after}, by {lead.style.model}"
    caption = f"{capitalize_first(card.truth)}. {title_card(card)}. {said}"
    return f'<figure style="margin:0 1em 1em 0">{images}<figcaption>{escape(caption)}</figcaption></figure>'
