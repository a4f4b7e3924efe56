"""The page on mining: one file in the look of a run's report, that asks nothing of any network."""

from __future__ import annotations

from collections import Counter

from counterfoil.report import wording
from counterfoil.report.content import ReportInput
from counterfoil.report.failure_modes import told_lender
from counterfoil.report.gallery import Shelf, shelves
from counterfoil.report.html import page_environment, page_script
from counterfoil.report.looks import styles
from counterfoil.report.mining import words
from counterfoil.report.mining.charts import size_charts, transfer_marks
from counterfoil.report.mining.content import ALL, MiningContent, Yield
from counterfoil.types import Run

_MOST_CLASSES = 100  # in the table; all of them are in mining.json


def render_mining(content: MiningContent) -> str:
    """The page as text; what comes from files, labels or models is escaped, and no script but ours may run."""
    looks = styles([model.name for model in content.models])
    filters = (wording.count, wording.number, wording.p_value, wording.sentence_start, wording.unbroken)
    return (
        page_environment(*filters, wording.interval, told_lender)
        .get_template("mining.html")
        .render(
            content=content,
            looks=looks,
            words=words,
            bars=_bars(content),
            transfer_marks=transfer_marks(content.transfers, looks),
            size_charts=size_charts(content.curves, looks),
            shelves=_shelves(content),
            classes=content.classes[:_MOST_CLASSES],
            **page_script("report.js"),
        )
    )


def _bars(content: MiningContent) -> list[Yield]:
    """Attributes, and their edits where an attribute has several."""
    edits = Counter(row.attribute for row in content.yields if row.edit != ALL and row.level == ALL)
    return [row for row in content.yields if row.level == ALL and (row.edit == ALL or edits[row.attribute] > 1)]


def _shelves(content: MiningContent) -> list[Shelf]:
    """The kept pictures by attribute, chosen and fitted as a run's gallery is."""
    models = tuple(model.name for model in content.models)
    run = Run("", "", None, "", "", 0, content.photos, models, {}, {})
    return shelves(
        ReportInput("", run, [], content.photos, content.candidates, examples=content.examples, names=content.names)
    )
