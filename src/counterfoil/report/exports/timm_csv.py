"""Results in timm's columns: one file for the unedited photos, one per edit and level, ranked by accuracy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from counterfoil.analyse.accuracies import ALL
from counterfoil.report.content import ReportInput
from counterfoil.report.tables import csv_text
from counterfoil.types import Drop, Preprocessing

_COLUMNS = ("model", "top1", "top1_err", "top5", "top5_err", "param_count", "img_size", "crop_pct", "interpolation")
_DIFFERENCES = ("top1_diff", "top5_diff", "rank_diff")


class _Score(NamedTuple):
    model: str
    top1: float
    top5: float
    top1_before: float
    top5_before: float


def timm_files(content: ReportInput) -> dict[str, str]:
    """timm/results-original.csv and timm/results-<edit>-<level>.csv; what is not known, such as sizes, is empty.

    Where pictures have no originals beside them, timm/results-<collection>.csv stands in the place of the first.
    """
    if content.accuracies and not content.has_drops:
        return _lone_files(content)
    originals = _ranked(_originals(content))
    base = [score.model for score in originals]
    files = {"timm/results-original.csv": csv_text(_COLUMNS, (_row(score, content) for score in originals))}
    for (edit, level), rows in _conditions(content.drops).items():
        scores = _ranked(_scores(rows, content.top5_drops))
        lines = ([*_row(score, content), *_differences(score, place, base)] for place, score in enumerate(scores))
        files[f"timm/results-{_file_name(edit, level)}.csv"] = csv_text((*_COLUMNS, *_DIFFERENCES), lines)
    return files


def _lone_files(content: ReportInput) -> dict[str, str]:
    groups: dict[str, list[_Score]] = {}
    for row in content.accuracies:
        if row.overall or ALL not in (row.edit, row.level):
            name = content.run.collection if row.overall else f"{row.edit}-{row.level}"
            score = _Score(row.model, row.top1.value, row.top5.value, math.nan, math.nan)
            groups.setdefault(_file_name(name, ""), []).append(score)
    return {
        f"timm/results-{name}.csv": csv_text(_COLUMNS, (_row(score, content) for score in _ranked(scores)))
        for name, scores in groups.items()
    }


def _conditions(drops: Sequence[Drop]) -> dict[tuple[str, str], list[Drop]]:
    found: dict[tuple[str, str], list[Drop]] = {}
    for row in drops:
        if row.n:
            found.setdefault((row.edit, row.level), []).append(row)
    return found


def _scores(rows: Sequence[Drop], top5: Sequence[Drop]) -> list[_Score]:
    five = {(row.model, row.edit, row.level): row for row in top5}
    found = []
    for row in rows:
        best = five.get((row.model, row.edit, row.level))
        after, before = (best.accuracy, best.accuracy_original) if best else (math.nan, math.nan)
        found.append(_Score(row.model, row.accuracy, after, row.accuracy_original, before))
    return found


def _originals(content: ReportInput) -> list[_Score]:
    """Of each model the row that rests on most photos speaks for the unedited ones."""
    widest: dict[str, Drop] = {}
    for row in content.drops:
        if row.n and (row.model not in widest or row.n > widest[row.model].n):
            widest[row.model] = row
    scores = _scores(list(widest.values()), content.top5_drops)
    return [score._replace(top1=score.top1_before, top5=score.top5_before) for score in scores]


def _ranked(scores: Iterable[_Score]) -> list[_Score]:
    return sorted(scores, key=lambda score: (-score.top1, -score.top5 if score.top5 == score.top5 else 0, score.model))


def _row(score: _Score, content: ReportInput) -> list[str]:
    values = [score.top1, 100 - score.top1, score.top5, 100 - score.top5]
    applied = content.run.preprocessing.get(score.model)
    return [score.model, *(_number(value) for value in values), "", *_geometry(applied)]


def _geometry(applied: Preprocessing | None) -> list[str]:
    if applied is None:
        return ["", "", ""]
    side = min(applied.size)
    return [str(side), f"{side / applied.resize if applied.resize else 1:.3f}", applied.interpolation]


def _differences(score: _Score, place: int, base: Sequence[str]) -> list[str]:
    rank = base.index(score.model) - place
    gaps = (score.top1 - score.top1_before, score.top5 - score.top5_before)
    return [*(f"{gap + 0.0:+.3f}" if gap == gap else "" for gap in gaps), f"{rank:+d}" if rank else "0"]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def _file_name(edit: str, level: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{edit}-{level}").strip("-.")
