"""The numbers in other people's forms: each export is a function from the report's content to files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from counterfoil.errors import UserError
from counterfoil.report.content import ReportInput
from counterfoil.report.exports.hugging_face import hugging_face_files
from counterfoil.report.exports.latex import latex_files
from counterfoil.report.exports.plain import json_files, markdown_files
from counterfoil.report.exports.timm_csv import timm_files
from counterfoil.report.figures import pdf_files, png_files, svg_files
from counterfoil.report.figures.canvas import load_matplotlib

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
