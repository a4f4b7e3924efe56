"""The command `show`: pictures before and after an edit, for slides."""

from __future__ import annotations

from pathlib import Path

import click

from counterfoil.cli.command_output import emit
from counterfoil.cli.completion import complete_attribute
from counterfoil.cli.path_option import PATH
from counterfoil.cli.shared_options import FOLDER
from counterfoil.picture_sheet import MOST_PAIRS, check_sheet_name
from counterfoil.picture_sheet import show as lay_out


@click.command()
@click.argument("run", type=FOLDER)
@click.option("--attribute", shell_complete=complete_attribute, help="Only pictures of this attribute.")
@click.option("--model", help="Only pictures that this model fails on.")
@click.option("--photo", help="Every picture of this photo, failed or not, by its id.")
@click.option("--limit", type=click.IntRange(1, 60), default=MOST_PAIRS, show_default=True, help="Pairs on the sheet.")
@click.option("--out", required=True, type=PATH, help="File to write: .png, .svg or .pdf.")
def show(run: Path, attribute: str | None, model: str | None, photo: str | None, limit: int, out: Path) -> None:
    """Write pictures before and after an edit, with every model's answers, as one sheet at full resolution."""
    check_sheet_name(out)
    sheet = lay_out(run, attribute=attribute, model=model, photo=photo, limit=limit)
    if sheet.note:
        click.echo(sheet.note, err=True)
    click.echo(sheet.save(out))
    emit(
        {"file": out.absolute(), "pairs": len(sheet.sheet.pictures) // 2, "left_out": sheet.changed, "note": sheet.note}
    )
