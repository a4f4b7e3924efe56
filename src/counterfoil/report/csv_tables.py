"""CSV tables: drops, accuracies, skipped pictures, and results in timm's columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from counterfoil.report.content import ReportContent
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.answers import ALL
from counterfoil.statistics.natural_ground import NaturalGround
from counterfoil.store.files import format_csv
from counterfoil.types import Drop, Preprocessing, Skipped

_PROBABILITIES = {"p_value", "p_adjusted"}
_DECIMALS = 4
_DIGITS = 6  # significant digits, so that small p values are kept

_ACCURACY_COLUMNS = (
    "model", "attribute", "edit", "level", "n", "photos", "top1", "top1_low", "top1_high", "top5", "top5_low",
    "top5_high", "tied_group", "surrogate",
)  # fmt: skip
_TIMM_COLUMNS = (
    "model", "top1", "top1_err", "top5", "top5_err", "param_count", "img_size", "crop_pct", "interpolation",
)  # fmt: skip
_TIMM_DIFFERENCES = ("top1_diff", "top5_diff", "rank_diff")


def to_csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV."""
    return format_csv([names, *rows])


def drops_to_csv(drops: Sequence[Drop]) -> str:
    """Return the table of drops; accuracies and shares in percent, drops in points, `nan` where there is no number."""
    lines = ([_cell(name, value) for name, value in asdict(row).items()] for row in drops)
    return to_csv([field.name for field in fields(Drop)], lines)


def natural_ground_to_csv(rows: Sequence[NaturalGround]) -> str:
    """Return what edits cost on another photo's background, beside what they cost on the photo's own; in points."""
    records = [natural_ground_values(row) for row in rows]
    return to_csv(list(records[0]), ([_cell(name, value) for name, value in own.items()] for own in records))


def natural_ground_values(row: NaturalGround) -> dict[str, object]:
    """Return the columns of one row of natural_ground.csv."""
    values: dict[str, object] = {"model": row.model, "edit": str(row.edit), "ground": str(row.ground), "n": row.drop.n}
    for name, bounds, own in (
        ("drop", "ci", row.drop),
        ("own_drop", "own", row.own_drop),
        ("difference", "difference", row.difference),
    ):
        values |= {name: own.value, f"{bounds}_low": own.ci_low, f"{bounds}_high": own.ci_high}
    return values


def manifest_to_csv(manifest: Mapping[str, Any]) -> str:
    """Return the manifest, one line per picture, with the columns of variants.parquet."""
    return to_csv(list(manifest), zip(*manifest.values(), strict=True))


def export_csv(content: ReportContent) -> dict[str, str]:
    """Return results in timm's columns, and the manifest."""
    manifest = {"variants.csv": manifest_to_csv(content.manifest)} if content.manifest else {}
    return {**export_timm(content), **manifest}


def skipped_to_csv(skipped: Sequence[Skipped]) -> str:
    """Return every skipped picture with its reason."""
    return to_csv([field.name for field in fields(Skipped)], (list(asdict(row).values()) for row in skipped))


def accuracies_to_csv(rows: Sequence[GroupAccuracy], surrogates: tuple[str, ...] = ()) -> str:
    """Return the table of accuracies in percent; "all" stands for several attributes, edits or levels together."""
    lines = ([_cell(name, value) for name, value in accuracy_values(row, surrogates).items()] for row in rows)
    return to_csv(_ACCURACY_COLUMNS, lines)


def accuracy_values(row: GroupAccuracy, surrogates: tuple[str, ...]) -> dict[str, object]:
    """Return one row of the table of accuracies by column, not rounded."""
    group = (row.model, row.attribute, row.edit, row.level, row.top1.n, row.photos)
    rates = [value for rate in (row.top1, row.top5) for value in (rate.value, rate.ci_low, rate.ci_high)]
    return dict(zip(_ACCURACY_COLUMNS, (*group, *rates, row.letters, row.model in surrogates), strict=True))


def round_value(name: str, value: float) -> float:
    """Round to the digits shown; adding 0.0 turns a negative zero into zero."""
    return float(f"{value:.{_DIGITS}g}") if name in _PROBABILITIES else round(value, _DECIMALS) + 0.0


def _cell(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float):
        return str(value)
    rounded = round_value(name, value)
    return f"{rounded:.{_DIGITS}g}" if name in _PROBABILITIES else f"{rounded:.{_DECIMALS}f}"


class _Score(NamedTuple):
    """The values of one model on one set of pictures in timm's results."""

    model: str
    top1: float
    top5: float
    top1_before: float
    top5_before: float


def export_timm(content: ReportContent) -> dict[str, str]:
    """Return timm/results-original.csv and timm/results-<edit>-<level>.csv; unknown values, such as sizes, are empty.

    For pictures without originals timm/results-<collection>.csv replaces the first.
    """
    if content.accuracies and not content.has_drops:
        return _export_accuracies(content)
    originals = _ranked(_original_scores(content))
    ranks = [score.model for score in originals]
    files = {"timm/results-original.csv": to_csv(_TIMM_COLUMNS, (_timm_row(score, content) for score in originals))}
    conditions: dict[tuple[str, str], list[Drop]] = {}
    for row in content.drops:
        if row.n:
            conditions.setdefault((row.edit, row.level), []).append(row)
    for (edit, level), rows in conditions.items():
        lines = [
            [*_timm_row(score, content), *_timm_differences(score, place, ranks)]
            for place, score in enumerate(_ranked(_scores(rows, content.top5_drops)))
        ]
        files[f"timm/results-{_file_name(edit, level)}.csv"] = to_csv((*_TIMM_COLUMNS, *_TIMM_DIFFERENCES), lines)
    return files


def _export_accuracies(content: ReportContent) -> dict[str, str]:
    groups: dict[str, list[_Score]] = {}
    for row in content.accuracies:
        if row.overall or ALL not in (row.edit, row.level):
            name = _file_name(content.run.collection, "") if row.overall else _file_name(row.edit, row.level)
            score = _Score(row.model, row.top1.value, row.top5.value, math.nan, math.nan)
            groups.setdefault(name, []).append(score)
    return {
        f"timm/results-{name}.csv": to_csv(_TIMM_COLUMNS, (_timm_row(score, content) for score in _ranked(scores)))
        for name, scores in groups.items()
    }


def _original_scores(content: ReportContent) -> list[_Score]:
    """Accuracies on the unedited photos, each model's from its row with the most photos."""
    widest: dict[str, Drop] = {}
    for row in content.drops:
        if row.n and (row.model not in widest or row.n > widest[row.model].n):
            widest[row.model] = row
    scores = _scores(list(widest.values()), content.top5_drops)
    return [score._replace(top1=score.top1_before, top5=score.top5_before) for score in scores]


def _scores(rows: Sequence[Drop], top5_drops: Sequence[Drop]) -> list[_Score]:
    top5 = {(row.model, row.edit, row.level): (row.accuracy, row.accuracy_original) for row in top5_drops}
    scores = []
    for row in rows:
        after, before = top5.get((row.model, row.edit, row.level), (math.nan, math.nan))
        scores.append(_Score(row.model, row.accuracy, after, row.accuracy_original, before))
    return scores


def _ranked(scores: Iterable[_Score]) -> list[_Score]:
    return sorted(scores, key=lambda score: (-score.top1, -score.top5 if score.top5 == score.top5 else 0, score.model))


def _timm_row(score: _Score, content: ReportContent) -> list[str]:
    rates = [score.top1, 100 - score.top1, score.top5, 100 - score.top5]
    cells = ["" if math.isnan(rate) else f"{rate:.3f}" for rate in rates]
    return [score.model, *cells, "", *_input_size(content.run.preprocessing.get(score.model))]


def _input_size(applied: Preprocessing | None) -> list[str]:
    if applied is None:
        return ["", "", ""]
    side = min(applied.size)
    return [str(side), f"{side / applied.resize if applied.resize else 1:.3f}", applied.interpolation]


def _timm_differences(score: _Score, place: int, ranks: Sequence[str]) -> list[str]:
    rank = ranks.index(score.model) - place
    gaps = (score.top1 - score.top1_before, score.top5 - score.top5_before)
    return [*(f"{gap + 0.0:+.3f}" if gap == gap else "" for gap in gaps), f"{rank:+d}" if rank else "0"]


def _file_name(edit: str, level: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{edit}-{level}").strip("-.")
