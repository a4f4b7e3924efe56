"""The commands `build`, `rebuild` and `convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.builder import build_pictures, build_shard, encode_png, rebuild
from counterfoil.cli.command_output import emit
from counterfoil.cli.completion import complete_model, complete_source
from counterfoil.cli.config_file import config_option
from counterfoil.cli.path_option import PATH
from counterfoil.cli.shared_options import (
    FOLDER,
    IMAGES,
    PLACE,
    chosen_execution,
    engine_options,
    mask_options,
    recipe_option,
)
from counterfoil.cli.terminal_output import (
    command_line,
    describe_skipped,
    print_conservation,
    print_empty_classes,
    print_shard,
)
from counterfoil.run_config import RunConfig
from counterfoil.sources.conversion import WRITERS, convert
from counterfoil.sources.judged_split import leave_out_judged
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.files import write_atomically
from counterfoil.store.folder_mirror import describe_place
from counterfoil.store.workspace import Workspace


@click.command()
@click.option("--images", required=True, type=PLACE, shell_complete=complete_source, help=IMAGES)
@click.option("--masks", type=PLACE, help="Parallel folder of masks (PNG, same stem).")
@recipe_option
@click.option("--out", required=True, type=FOLDER, help="Workspace for pictures and manifest.")
@click.option("--limit", type=int, help="Use at most this many photos, taken from the classes in turn.")
@click.option("--workers", type=int, help="Threads that work on photos [default: one per core].")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other random edits.")
@click.option("--split", type=PATH,
              help="repair.json: leave out the photos that a fold of that repair judges.")  # fmt: skip
@click.option("--fold", type=int, default=1, show_default=True, help="The fold of --split whose photos are left out.")
@engine_options
@mask_options
@click.option("--model", "label_models", multiple=True, shell_complete=complete_model,
              help="Model that will see the pictures: it must know the photos' labels; may be repeated.")  # fmt: skip
@click.option("--classes", help="The photos' classes: imagenet-d, imagenet-9, ximagenet-12, or a classes.json.")
@config_option
def build(images: str | Path, masks: str | Path | None, out: Path, **options: Any) -> None:
    """Write the pictures that a recipe makes of your photos, with their manifest."""
    execution = chosen_execution(options)
    split, fold = options.pop("split"), options.pop("fold")
    source = open_source(images, masks)
    config = RunConfig(
        source=source if split is None else leave_out_judged(source, split, fold),
        models=(),
        execution=execution,
        command=command_line(),
        **options,
    )
    if execution.shard is not None:
        build_shard(config, out)
        print_shard(execution.shard, out)
        return
    skipped = build_pictures(config, out, print_empty_classes)
    click.echo(f"pictures: {describe_place(out / 'pictures')}")
    click.echo(f"manifest: {describe_place(out / 'variants.parquet')}")
    click.echo(describe_skipped(skipped, out))
    print_conservation(out)
    emit({"folder": out.absolute(), "pictures": len(Workspace(out).pictures), "skipped": skipped})


@click.command(name="rebuild")
@click.argument("workspace", type=FOLDER)
@click.argument("variant_id")
@click.option("--out", type=PATH, help="PNG to write [default: VARIANT_ID.png].")
def rebuild_command(workspace: Path, variant_id: str, out: Path | None) -> None:
    """Make one picture of a run or workspace again, to the bit."""
    picture = rebuild(workspace, variant_id)
    file = write_atomically(out or Path(f"{variant_id}.png"), encode_png(picture))
    click.echo(file)
    emit({"variant_id": variant_id, "file": file.absolute()})


@click.command(name="convert")
@click.option(
    "--images",
    required=True,
    shell_complete=complete_source,
    help="Folder of class folders, or FORMAT:PATH such as coco:FILE.json.",
)
@click.option("--masks", type=PATH, help="Parallel folder of masks (PNG, same stem).")
@click.option("--to", "form", required=True, type=click.Choice(list(WRITERS)), help="The format to write.")
@click.option("--out", required=True, type=PATH, help="New folder for the photos and masks.")
def convert_command(images: str, masks: Path | None, form: str, out: Path) -> None:
    """Write photos and masks in another format."""
    written, skipped = convert(open_source(images, masks), out, form)
    click.echo(f"{written} photos: {out}")
    for row in skipped:
        click.echo(f"left out: {row.sample_id}: {row.reason}")
    emit({"folder": out.absolute(), "photos": written, "left_out": skipped})
