"""A booktabs table for a paper: edits and levels down, models across, drops with their intervals."""

from __future__ import annotations

import math
import re

from counterfoil.analyse import FEWEST_PHOTOS, significant
from counterfoil.analyse.accuracies import ALL, GroupAccuracy
from counterfoil.report.content import ReportInput
from counterfoil.report.surrogates import marked, surrogates_among
from counterfoil.report.wording import MINUS, attribute_name, number, sentence_start
from counterfoil.types import Drop

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
    surrogates = surrogates_among(content.run)
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
    shown = f"\\mathbf{{{drop}}}" if significant(row) else drop
    return f"${shown}\\;[{low}, {high}]$"


def _edit_name(edit: str, level: str) -> str:
    told = edit if level in _UNTOLD_LEVELS or level == edit else f"{edit} {level}"
    return _NEGATIVE.sub("$-$", _escaped(told))


def _escaped(text: str) -> str:
    """Letters that LaTeX takes for commands; two hyphens stay two, which it would draw as a dash."""
    return "".join(_ESCAPES.get(character, character) for character in text).replace("--", "-{}-")
