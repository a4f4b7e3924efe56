"""The commands `build`, `rebuild` and `convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.builder import build_pictures, encode_png, rebuild
from counterfoil.cli.config_file import config_option
from counterfoil.cli.shared_options import IMAGES, mask_options
from counterfoil.cli.terminal_output import describe_skipped, print_empty_classes
from counterfoil.run_config import RunConfig
from counterfoil.sources.conversion import WRITERS, convert
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.files import write_atomically


@click.command()
@click.option("--images", required=True, type=click.Path(path_type=Path), help=IMAGES)
@click.option("--masks", type=click.Path(path_type=Path), help="Parallel folder of masks (PNG, same stem).")
@click.option("--recipe", default="attributes", show_default=True, help="Recipe by name, or a YAML file.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Workspace for pictures and manifest.")
@click.option("--limit", type=int, help="Use at most this many photos, taken from the classes in turn.")
@click.option("--workers", type=int, help="Threads that work on photos [default: one per core].")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other random edits.")
@mask_options
@click.option("--model", "label_models", multiple=True,
              help="Model that will see the pictures: it must know the photos' labels; may be repeated.")  # fmt: skip
@click.option("--classes", help="The photos' classes: imagenet-d, imagenet-9, ximagenet-12, or a classes.json.")
@config_option
def build(images: Path, masks: Path | None, out: Path, **options: Any) -> None:
    """Write the pictures that a recipe makes of your photos, with their manifest."""
    skipped = build_pictures(
        RunConfig(source=open_source(images, masks), models=(), **options), out, print_empty_classes
    )
    click.echo(f"pictures: {out / 'pictures'}")
    click.echo(f"manifest: {out / 'variants.parquet'}")
    click.echo(describe_skipped(skipped, out))


@click.command(name="rebuild")
@click.argument("workspace", type=click.Path(path_type=Path))
@click.argument("variant_id")
@click.option("--out", type=click.Path(path_type=Path), help="PNG to write [default: VARIANT_ID.png].")
def rebuild_command(workspace: Path, variant_id: str, out: Path | None) -> None:
    """Make one picture of a run or workspace again, to the bit."""
    picture = rebuild(workspace, variant_id)
    click.echo(write_atomically(out or Path(f"{variant_id}.png"), encode_png(picture)))


@click.command(name="convert")
@click.option("--images", required=True, help="Folder of class folders, or FORMAT:PATH such as coco:FILE.json.")
@click.option("--masks", type=click.Path(path_type=Path), help="Parallel folder of masks (PNG, same stem).")
@click.option("--to", "form", required=True, type=click.Choice(list(WRITERS)), help="The format to write.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="New folder for the photos and masks.")
def convert_command(images: str, masks: Path | None, form: str, out: Path) -> None:
    """Write photos and masks in another format."""
    written, skipped = convert(open_source(images, masks), out, form)
    click.echo(f"{written} photos: {out}")
    for row in skipped:
        click.echo(f"left out: {row.sample_id}: {row.reason}")
