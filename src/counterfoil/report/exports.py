"""The exports by name: which files `--export csv,latex` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from counterfoil.errors import UserError
from counterfoil.report.content import ReportContent
from counterfoil.report.csv_tables import export_csv
from counterfoil.report.drawing import load_matplotlib
from counterfoil.report.figures import export_pdf, export_png, export_svg
from counterfoil.report.integrations import export_hugging_face
from counterfoil.report.latex_table import export_latex
from counterfoil.report.markdown_tables import export_markdown
from counterfoil.report.summary_json import export_json

_Export: TypeAlias = Callable[[ReportContent], Mapping[str, "str | bytes"]]  # files by path in the folder of exports

EXPORTS: dict[str, _Export] = {
    "csv": export_csv,
    "json": export_json,
    "markdown": export_markdown,
    "latex": export_latex,
    "huggingface": export_hugging_face,
    "svg": export_svg,
    "pdf": export_pdf,
    "png": export_png,
}
_BY_MATPLOTLIB = {"pdf", "png"}


def parse_export_names(text: str) -> list[str]:
    """Parse the exports as typed: csv,latex or all."""
    names = list(EXPORTS) if text == "all" else [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in EXPORTS]
    if unknown or not names:
        got = f"'{unknown[0]}'" if unknown else "none"
        raise UserError(f"expected exports among {', '.join(EXPORTS)} or all, got {got}")
    if _BY_MATPLOTLIB.intersection(names):
        load_matplotlib()  # fail before any file is written where the package is missing
    return names


def export_files(content: ReportContent, names: Sequence[str]) -> dict[str, str | bytes]:
    """Return the files of the named exports."""
    return {path: file for name in names for path, file in EXPORTS[name](content).items()}
