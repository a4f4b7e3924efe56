"""The page of a repair: the verdict, the five columns, what each attribute costs before and after, pictures."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

from counterfoil.remedies.before_after import find_changed_pictures, write_sheet
from counterfoil.remedies.effects import Change, Effect
from counterfoil.remedies.remedy_advice import advise_what_is_left
from counterfoil.remedies.repair_result import RepairResult
from counterfoil.report.page import create_environment, mark_code
from counterfoil.report.words import ABSENT, describe_change, format_bounds, format_count, format_number, pluralize
from counterfoil.store.files import write_atomically
from counterfoil.study.thumbnails import small_jpeg

_SIDE, _QUALITY = 320, 82


def write_repair_page(result: RepairResult) -> Path:
    """Write report.html and before_after.png into the folder of the repair."""
    pictures = find_changed_pictures(result)
    write_sheet(pictures, result.folder / "before_after.png")
    environment = create_environment(
        format_count, pluralize, mark_code, format_change, format_accuracy, describe_effect, format_number,
        templates=Path(__file__).parent / "templates",
    )  # fmt: skip
    page = environment.get_template("repair.html").render(
        result=result,
        plan=result.plan,
        rows=list_rows(result),
        pictures=[(picture, _address(picture.image)) for picture in pictures],
        advice=advise_what_is_left(result),
    )
    return write_atomically(result.folder / "report.html", page)


def _address(image: object) -> str:
    jpeg = small_jpeg(image, _SIDE, _QUALITY)  # type: ignore[arg-type]
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}"


def format_change(row: Change | None) -> str:
    """A change in points with its interval; a dash where there is none."""
    if row is None or not row.change.n:
        return ABSENT
    sign = "+" if row.change.value > 0 else ""
    return f"{sign}{format_number(row.change.value)} {format_bounds(row.change.ci_low, row.change.ci_high)}"


def format_accuracy(row: Change | None) -> str:
    """Before and after."""
    return ABSENT if row is None else f"{format_number(row.before)} → {format_number(row.after)}"


def list_rows(result: RepairResult) -> list[tuple[Effect, str]]:
    """The rows of the table, each with the name of the attribute that begins there; one edit alone has one row."""
    rows: list[tuple[Effect, str]] = []
    for whole in result.attributes:
        parts = [row for row in result.effects if row.edit and row.attribute == whole.attribute]
        if len(parts) == 1:  # the same figures, and what was tested is the attribute
            rows.append((replace(parts[0], p_adjusted=whole.p_adjusted), whole.attribute))
        else:
            rows += [(whole, whole.attribute), *((row, "") for row in parts)]
    return rows


def describe_effect(row: Effect) -> str:
    """The edit of a row in words; of a whole attribute its name."""
    return describe_change(row.edit, row.level) if row.edit else row.attribute
