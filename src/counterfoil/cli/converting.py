"""Photos and masks in another format: `convert`."""

from __future__ import annotations

from pathlib import Path

import click

from counterfoil.pipeline import source_at
from counterfoil.pipeline.converting import convert
from counterfoil.source.formats.writing import WRITERS


@click.command(name="convert")
@click.option("--images", required=True, help="Folder of class folders, or FORMAT:PATH such as coco:FILE.json.")
@click.option("--masks", type=click.Path(path_type=Path), help="Parallel folder of masks (PNG, same stem).")
@click.option("--to", "form", required=True, type=click.Choice(list(WRITERS)), help="The format to write.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="New folder for the photos and masks.")
def convert_command(images: str, masks: Path | None, form: str, out: Path) -> None:
    """Write photos and masks in another format."""
    written, skipped = convert(source_at(images, masks), out, form)
    click.echo(f"{written} photos: {out}")
    for row in skipped:
        click.echo(f"left out: {row.sample_id}: {row.reason}")
