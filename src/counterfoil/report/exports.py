"""Exports by name; booktabs table; JSON with schema, Markdown; results in timm's columns."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import NamedTuple, TypeAlias

from counterfoil.errors import UserError
from counterfoil.report.figure_files import load_matplotlib
from counterfoil.report.figures import pdf_files, png_files, svg_files
from counterfoil.report.findings import findings_of
from counterfoil.report.integrations import hugging_face_files
from counterfoil.report.report_input import ReportInput
from counterfoil.report.result_tables import accuracies_markdown, csv_text, markdown, papers_markdown, summary
from counterfoil.report.words import MINUS, attribute_name, marked, number, sentence_start
from counterfoil.statistics.accuracy import ALL, GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Drop, Preprocessing

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\n": " ", MINUS: "$-$", "→": r"$\rightarrow$", "×": r"$\times$",
}  # fmt: skip
_NEGATIVE = re.compile(r"(?<![\w)])-(?=\d)")  # a hyphen before a number is a minus sign
_TOO_WIDE = r"% Too wide for the page: \usepackage{graphicx}, then \resizebox{\textwidth}{!}{\input{results}}."
_UNTOLD_LEVELS = {"", "none", "removed"}  # that say no more than the edit's name


def latex_files(content: ReportInput) -> dict[str, str]:
    r"""results.tex, to be read by \input; needs \usepackage{booktabs}."""
    if content.accuracies and not content.has_drops:
        return {"results.tex": _accuracy_table(content)}
    models = list(dict.fromkeys(row.model for row in content.drops))
    lines = [
        "% \\usepackage{booktabs}",
        "\\begin{tabular}{ll" + "r" * len(models) + "}",
        "\\toprule",
        " & ".join(["attribute", "edit", *_headings(content, models)]) + r" \\",
        "\\midrule",
        " & ".join(["\\multicolumn{2}{l}{accuracy, unedited (\\%)}", *_accuracies(content, models)]) + r" \\",
        *_body(content, models),
        "\\bottomrule",
        "\\end{tabular}",
        f"% Drops in points of top-1 accuracy with 95 \\% intervals, paired by photo, {content.photos} photos.",
        "% Bold: the interval leaves out zero and Holm's adjusted p is below 0.05.",
        _TOO_WIDE,
    ]
    return {"results.tex": "\n".join(lines) + "\n"}


def _accuracy_table(content: ReportInput) -> str:
    """Groups of pictures down, models across, top-1 with its interval."""
    models = list(dict.fromkeys(row.model for row in content.accuracies))
    found = {(row.attribute, row.edit, row.level, row.model): row for row in content.accuracies}
    body = [
        " & ".join([_escaped(_group(*group)), *(_rate(found.get((*group, model))) for model in models)]) + r" \\"
        for group in dict.fromkeys(key[:3] for key in found)
    ]
    lines = [
        "% \\usepackage{booktabs}",
        "\\begin{tabular}{l" + "r" * len(models) + "}",
        "\\toprule",
        " & ".join(["pictures", *_headings(content, models)]) + r" \\",
        "\\midrule",
        *body,
        "\\bottomrule",
        "\\end{tabular}",
        f"% Top-1 accuracy in percent with 95 \\% intervals, {content.variants} pictures.",
        *(f"% {_escaped(note)}" for note in content.run.notes),
        _TOO_WIDE,
    ]
    return "\n".join(lines) + "\n"


def _group(attribute: str, edit: str, level: str) -> str:
    named = [name for name in dict.fromkeys((attribute_name(attribute), edit, level)) if name not in (ALL, "")]
    return " ".join(named) or "all pictures"


def _rate(row: GroupAccuracy | None) -> str:
    if row is None or not row.top1.n:
        return "--"
    if row.photos < FEWEST_PHOTOS:
        return "too few"
    return f"${row.top1.value:.1f}\\;[{row.top1.ci_low:.1f}, {row.top1.ci_high:.1f}]$"


def _headings(content: ReportInput, models: list[str]) -> list[str]:
    """The models, those that chose the pictures marked."""
    surrogates = find_surrogates(content.run)
    return [_escaped(marked(model, surrogates)) for model in models]


def _body(content: ReportInput, models: list[str]) -> list[str]:
    found = {(row.attribute, row.edit, row.level, row.model): row for row in content.drops}
    lines, last = [], ""
    for attribute, edit, level in dict.fromkeys(key[:3] for key in found):
        if attribute != last:
            lines.append("\\midrule")
        name = _escaped(sentence_start(attribute_name(attribute))) if attribute != last else ""
        cells = [_cell(found.get((attribute, edit, level, model))) for model in models]
        lines.append(" & ".join([name, _edit_name(edit, level), *cells]) + r" \\")
        last = attribute
    return lines


def _accuracies(content: ReportInput, models: list[str]) -> list[str]:
    cells = []
    for model in models:
        rows = [row for row in content.drops if row.model == model and row.n]
        cells.append(f"{max(rows, key=lambda row: row.n).accuracy_original:.1f}" if rows else "--")
    return cells


def _cell(row: Drop | None) -> str:
    if row is None or math.isnan(row.drop):
        return "--"
    if row.n < FEWEST_PHOTOS:
        return "too few"
    drop, low, high = (number(value).replace(MINUS, "-") for value in (row.drop, row.ci_low, row.ci_high))
    shown = f"\\mathbf{{{drop}}}" if is_significant(row) else drop
    return f"${shown}\\;[{low}, {high}]$"


def _edit_name(edit: str, level: str) -> str:
    told = edit if level in _UNTOLD_LEVELS or level == edit else f"{edit} {level}"
    return _NEGATIVE.sub("$-$", _escaped(told))


def _escaped(text: str) -> str:
    """Letters that LaTeX takes for commands; two hyphens stay two, which it would draw as a dash."""
    return "".join(_ESCAPES.get(character, character) for character in text).replace("--", "-{}-")


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
    """The findings, the table of drops or of accuracies, and what a paper's own rule gives."""
    surrogates = find_surrogates(content.run)
    parts = [f"# {content.title}\n", "\n".join(f"- {finding.text}" for finding in findings_of(content)) + "\n"]
    parts += [f"> {note}\n" for note in content.run.notes]
    if content.drops or not content.accuracies:
        parts.append(markdown(content.drops, surrogates))
    if content.accuracies:
        parts.append(accuracies_markdown(content.accuracies, surrogates))
    return {"results.md": "\n".join([*parts, *papers_markdown(content.papers)])}


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


Files: TypeAlias = Mapping[str, "str | bytes"]  # by name, relative to the folder of exports

EXPORTS: dict[str, Callable[[ReportInput], Files]] = {
    "csv": timm_files,
    "json": json_files,
    "markdown": markdown_files,
    "latex": latex_files,
    "huggingface": hugging_face_files,
    "svg": svg_files,
    "pdf": pdf_files,
    "png": png_files,
}
_BY_MATPLOTLIB = {"pdf", "png"}


def export_names(text: str) -> list[str]:
    """The exports as they are typed: csv,latex or all."""
    names = list(EXPORTS) if text == "all" else [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in EXPORTS]
    if unknown or not names:
        got = f"'{unknown[0]}'" if unknown else "none"
        raise UserError(f"expected exports among {', '.join(EXPORTS)} or all, got {got}")
    if _BY_MATPLOTLIB.intersection(names):
        load_matplotlib()  # a missing package is an error before any file is written
    return names


def exported(content: ReportInput, names: Sequence[str]) -> dict[str, str | bytes]:
    """The files of the named exports."""
    return {path: data for name in names for path, data in EXPORTS[name](content).items()}
