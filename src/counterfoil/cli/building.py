"""Variants as files: `build` and `rebuild`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.cli.config import config_option
from counterfoil.cli.running import IMAGES, print_lost, skipped_line
from counterfoil.pipeline import Job, build_job, png, rebuild, source_at
from counterfoil.store import write_atomically


@click.command()
@click.option("--images", required=True, type=click.Path(path_type=Path), help=IMAGES)
@click.option("--masks", type=click.Path(path_type=Path), help="Parallel folder of masks (PNG, same stem).")
@click.option("--recipe", default="attributes", show_default=True, help="Recipe by name, or a YAML file.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Workspace for pictures and manifest.")
@click.option("--limit", type=int, help="Use only so many photos, the classes in turn.")
@click.option("--workers", type=int, help="Threads that work on photos [default: one per core].")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other random edits.")
@config_option
def build(images: Path, masks: Path | None, out: Path, **options: Any) -> None:
    """Write the pictures that a recipe makes of your photos, with their manifest."""
    skipped = build_job(Job(source_at(images, masks), (), **options), out, print_lost)
    click.echo(f"pictures: {out / 'pictures'}")
    click.echo(f"manifest: {out / 'variants.parquet'}")
    click.echo(skipped_line(skipped, out))


@click.command(name="rebuild")
@click.argument("workspace", type=click.Path(path_type=Path))
@click.argument("variant_id")
@click.option("--out", type=click.Path(path_type=Path), help="PNG to write [default: VARIANT_ID.png].")
def rebuild_command(workspace: Path, variant_id: str, out: Path | None) -> None:
    """Make one picture of a run or workspace again, to the bit."""
    picture = rebuild(workspace, variant_id)
    click.echo(write_atomically(out or Path(f"{variant_id}.png"), png(picture)))
