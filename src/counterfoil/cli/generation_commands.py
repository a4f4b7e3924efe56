"""The commands `paint` and `quality`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from counterfoil.builder import build_pictures, build_shard
from counterfoil.cli.command_output import emit
from counterfoil.cli.completion import complete_recipe
from counterfoil.cli.config_file import config_option
from counterfoil.cli.path_option import PATH
from counterfoil.cli.shared_options import FOLDER, PLACE, chosen_execution, engine_options
from counterfoil.cli.terminal_output import (
    command_line,
    describe_skipped,
    print_conservation,
    print_empty_classes,
    print_shard,
)
from counterfoil.errors import UserError
from counterfoil.generation.embedding import Embedding
from counterfoil.generation.generator import GenerationConfig, GenerationResult, generate_pictures
from counterfoil.generation.prompt_plan import Selection
from counterfoil.generation.quality_control import QualityBounds, control_quality
from counterfoil.generation.quality_page import ReferenceComparison, find_neighbours, read_reference, write_quality_page
from counterfoil.painters.painter_protocol import PaintOptions
from counterfoil.recipes.edit_recipe import load_recipe
from counterfoil.recipes.prompt_recipe import is_prompt_recipe
from counterfoil.run_config import RunConfig
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.folder_mirror import describe_place
from counterfoil.store.workspace import Workspace

_OPTIONS = ("device", "precision", "batch_size", "steps", "guidance", "scheduler", "size", "strength")
_OF_EDITS = ("recipe", "out", "images", "masks", "limit", "seed", "engine", "shard")
_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)  # by option, by --config
_folder = PATH


@click.command()
@click.option(
    "--recipe",
    required=True,
    shell_complete=complete_recipe,
    help="imagenet-d, ximagenet-12-ai, imagenet-d-photo, or a YAML file.",
)
@click.option("--painter", help="Painter address, such as diffusers:org/name@revision or diffusers:FOLDER.")
@click.option("--out", required=True, type=FOLDER, help="Workspace for pictures and manifest.")
@click.option("--images", type=PLACE, help="Photos, where the recipe paints around objects or edits photos.")
@click.option("--masks", type=PLACE, help="Parallel folder of masks (PNG, same stem).")
@click.option("--categories", default="", help="Only these classes, commas between.")
@click.option("--attributes", default="", help="Only these of background, texture, material.")
@click.option("--values", default="", help="Only these values, such as 'beach,wheat field'.")
@click.option("--per-pair", type=int, default=1, show_default=True, help="Pictures of each class and value.")
@click.option("--limit", type=int,
              help="At most this many pictures, counterparts not counted; or photos, if it edits them.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed paints other pictures.")
@click.option("--negative", help="What pictures shall not show, in place of the recipe's.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:NUMBER.")
@click.option("--precision", type=click.Choice(["auto", "f32", "bf16", "fp16"]), default="auto", show_default=True,
              help="auto is bf16 on a GPU, f32 elsewhere.")  # fmt: skip
@click.option(
    "--batch-size", type=int, default=8, show_default=True, help="Pictures at once; halved where they do not fit."
)
@click.option("--steps", type=int, help="Denoising steps [default: the model's].")
@click.option("--guidance", type=float, help="Weight of the prompt [default: the model's]; 0 for turbo models.")
@click.option("--scheduler", help="A scheduler of diffusers by its class name [default: the model's].")
@click.option("--size", type=int, help="Side of the pictures in pixels [default: the model's].")
@click.option("--strength", type=float, help="How much of a background is painted anew, up to 1.")
@engine_options
@config_option
def paint(
    recipe: str, painter: str | None, out: Path, images: str | Path | None, masks: str | Path | None, **options: Any
) -> None:
    """Paint pictures from words, or backgrounds around objects, into a workspace."""
    execution = chosen_execution(options)
    if not is_prompt_recipe(recipe):
        options["execution"] = execution
        _build(recipe, out, images, masks, options)
        return
    if painter is None:
        raise UserError("expected --painter, such as diffusers:org/name@revision; see docs/diffusion.md")
    chosen = PaintOptions(**{name: options[name] for name in _OPTIONS})
    job = GenerationConfig(
        recipe=recipe,
        painter=painter,
        selection=_selection(options),
        options=chosen,
        negative=options["negative"],
        seed=options["seed"],
        images=images,
        masks=masks,
        command=command_line(),
        execution=execution,
    )
    result = generate_pictures(job, out)
    if execution.shard is not None:
        click.echo(f"shard {execution.shard} is done; when all are, run the same command without --shard")
        emit({"folder": out.absolute(), "shard": str(execution.shard), "pictures": None, "skipped": None})
        return
    place = describe_place(out / "pictures")
    click.echo(f"pictures: {result.pictures} in {place}; {describe_planned(result)}")
    click.echo(f"manifest: {describe_place(out / 'variants.parquet')}")
    click.echo(describe_skipped(len(result.skipped), out))
    emit({"folder": out.absolute(), "shard": None, "pictures": result.pictures, "skipped": len(result.skipped)})


def _build(
    recipe: str, out: Path, images: str | Path | None, masks: str | Path | None, options: dict[str, Any]
) -> None:
    """A recipe of edits needs photos and no painter."""
    load_recipe(recipe)  # a name that is no recipe is said first
    if images is None:
        raise UserError(f"expected --images: {recipe} edits photos")
    context = click.get_current_context()
    for name in (name for name in context.params if name not in _OF_EDITS):
        if context.get_parameter_source(name) in _GIVEN:
            raise UserError(f"expected no --{name.replace('_', '-')}: {recipe} edits photos and asks no painter")
    job = RunConfig(
        source=open_source(images, masks),
        models=(),
        recipe=recipe,
        limit=options["limit"],
        seed=options["seed"],
        command=command_line(),
        execution=options["execution"],
    )
    if job.execution.shard is not None:
        build_shard(job, out)
        print_shard(job.execution.shard, out)
        return
    skipped = build_pictures(job, out, print_empty_classes)
    pictures = Workspace(out).pictures
    photos = len({stored.variant.sample_id for stored in pictures})
    click.echo(f"pictures: {len(pictures)} of {photos} photos in {describe_place(out / 'pictures')}")
    click.echo(describe_skipped(skipped, out))
    print_conservation(out)
    emit({"folder": out.absolute(), "shard": None, "pictures": len(pictures), "skipped": skipped})


def describe_planned(result: GenerationResult) -> str:
    """What became of the pictures that were planned, and what the source of photos left out."""
    left_out = sum(row.stage == "source" for row in result.skipped)
    refused = len(result.skipped) - left_out
    more = f"; {left_out:,} more left out by the source" if left_out else ""
    return f"{result.planned:,} planned = {result.pictures:,} painted + {refused:,} skipped{more}"


def _selection(options: dict[str, Any]) -> Selection:
    lists = {name: _words(options[name]) for name in ("categories", "attributes", "values")}
    return Selection(**lists, per_pair=options["per_pair"], limit=options["limit"])


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


@click.command()
@click.argument("workspace", type=_folder)
@click.option("--distance", type=int, default=4, show_default=True,
              help="Near-duplicates are pictures whose hashes differ in at most this many of 64 bits.")  # fmt: skip
@click.option("--keep-all", is_flag=True, help="Remove nothing, and bring back what was removed before.")
@click.option("--reference", type=_folder, help="Folder of pictures; the nearest ones are shown beside.")
def quality(workspace: Path, distance: int, keep_all: bool, reference: Path | None) -> None:
    """Take blank, broken and repeated pictures out of a workspace's manifest, each with its reason."""
    bounds, store = QualityBounds(distance, keep_all), Workspace(workspace)
    known = None if reference is None else read_reference(reference, Embedding())  # before the manifest changes
    looked = control_quality(store.folder, bounds)
    near = [] if known is None else find_neighbours(workspace, known, looked.unreadable)
    page = write_quality_page(workspace, looked, bounds, ReferenceComparison(reference, near))
    verb = "found" if keep_all else "removed"
    told = ", ".join(f"{count} {kind}" for kind, count in looked.counts.items()) or "nothing"
    click.echo(f"{len(looked.pictures)} pictures checked; {verb}: {told}")
    if near:
        click.echo(f"nearest pair, cosine {near[0].cosine:.3f}: {workspace / near[0].file} and {near[0].path}")
    click.echo(f"page: {page}")
    emit({"page": page.absolute(), "checked": len(looked.pictures), "removed": not keep_all, "counts": looked.counts,
          "pictures": looked.removals})  # fmt: skip
