"""The LaTeX table: results.tex with drops, or with accuracies where there are no originals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from counterfoil.report.content import ReportContent
from counterfoil.report.words import MINUS, capitalize_first, format_number, mark_surrogate, name_attribute
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.answers import ALL
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Drop

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\n": " ", MINUS: "$-$", "→": r"$\rightarrow$", "×": r"$\times$",
}  # fmt: skip
_NEGATIVE = re.compile(r"(?<![\w)])-(?=\d)")  # a hyphen before a number is a minus sign
_TOO_WIDE = r"% Too wide for the page: \usepackage{graphicx}, then \resizebox{\textwidth}{!}{\input{results}}."
_LEVELS_WITHOUT_NAME = {"", "none", "removed"}  # levels that add nothing to the edit's name


def export_latex(content: ReportContent) -> dict[str, str]:
    r"""results.tex, to be read by \input; needs \usepackage{booktabs}."""
    if content.accuracies and not content.has_drops:
        return {"results.tex": _accuracy_table(content)}
    return {"results.tex": _drops_table(content)}


def _drops_table(content: ReportContent) -> str:
    """Edits as rows, models as columns, drops with their intervals."""
    models = list(dict.fromkeys(row.model for row in content.drops))
    by_cell = {(row.attribute, row.edit, row.level, row.model): row for row in content.drops}
    body, last = [_line(["\\multicolumn{2}{l}{accuracy, unedited (\\%)}", *_accuracies_before(content, models)])], ""
    for attribute, edit, level in dict.fromkeys(key[:3] for key in by_cell):
        name = ""
        if attribute != last:
            body.append("\\midrule")
            name = _escape(capitalize_first(name_attribute(attribute)))
        cells = [_drop_cell(by_cell.get((attribute, edit, level, model))) for model in models]
        body.append(_line([name, _edit_name(edit, level), *cells]))
        last = attribute
    comments = [
        f"% Drops in points of top-1 accuracy with 95 \\% intervals, paired by photo, {content.photos} photos.",
        "% Bold: significant against the edit's reference, corrected within the model's family of tests.",
    ]
    return _table(["attribute", "edit"], _headings(content, models), body, comments)


def _accuracy_table(content: ReportContent) -> str:
    """Groups of pictures as rows, models as columns, top-1 with its interval."""
    models = list(dict.fromkeys(row.model for row in content.accuracies))
    by_cell = {(row.attribute, row.edit, row.level, row.model): row for row in content.accuracies}
    body = [
        _line([_escape(_group_name(*key)), *(_accuracy_cell(by_cell.get((*key, model))) for model in models)])
        for key in dict.fromkeys(key[:3] for key in by_cell)
    ]
    comments = [
        f"% Top-1 accuracy in percent with 95 \\% intervals, {content.variants} pictures.",
        *(f"% {_escape(note)}" for note in content.run.notes),
    ]
    return _table(["pictures"], _headings(content, models), body, comments)


def _table(names: Sequence[str], models: Sequence[str], body: Sequence[str], comments: Sequence[str]) -> str:
    lines = [
        "% \\usepackage{booktabs}",
        "\\begin{tabular}{" + "l" * len(names) + "r" * len(models) + "}",
        "\\toprule",
        _line([*names, *models]),
        "\\midrule",
        *body,
        "\\bottomrule",
        "\\end{tabular}",
        *comments,
        _TOO_WIDE,
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _headings(content: ReportContent, models: list[str]) -> list[str]:
    """The models, with those that selected the pictures marked."""
    surrogates = find_surrogates(content.run)
    return [_escape(mark_surrogate(model, surrogates)) for model in models]


def _group_name(attribute: str, edit: str, level: str) -> str:
    names = [name for name in dict.fromkeys((name_attribute(attribute), edit, level)) if name not in (ALL, "")]
    return " ".join(names) or "all pictures"


def _edit_name(edit: str, level: str) -> str:
    name = edit if level in _LEVELS_WITHOUT_NAME or level == edit else f"{edit} {level}"
    return _NEGATIVE.sub("$-$", _escape(name))


def _accuracies_before(content: ReportContent, models: list[str]) -> list[str]:
    cells = []
    for model in models:
        rows = [row for row in content.drops if row.model == model and row.n]
        cells.append(f"{max(rows, key=lambda row: row.n).accuracy_original:.1f}" if rows else "--")
    return cells


def _drop_cell(row: Drop | None) -> str:
    if row is None or math.isnan(row.drop):
        return "--"
    if row.n < FEWEST_PHOTOS:
        return "too few"
    drop, low, high = (format_number(value).replace(MINUS, "-") for value in (row.drop, row.ci_low, row.ci_high))
    shown = f"\\mathbf{{{drop}}}" if is_significant(row) else drop
    return f"${shown}\\;[{low}, {high}]$"


def _accuracy_cell(row: GroupAccuracy | None) -> str:
    if row is None or not row.top1.n:
        return "--"
    if row.photos < FEWEST_PHOTOS:
        return "too few"
    return f"${row.top1.value:.1f}\\;[{row.top1.ci_low:.1f}, {row.top1.ci_high:.1f}]$"


def _escape(text: str) -> str:
    """Escape characters that are LaTeX commands; two hyphens are kept from becoming a dash."""
    return "".join(_ESCAPES.get(character, character) for character in text).replace("--", "-{}-")
