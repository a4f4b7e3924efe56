"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from counterfoil.cli.completion import complete_recipe
from counterfoil.cli.path_option import PathType
from counterfoil.execution import Execution, parse_shard
from counterfoil.models.model_options import DEFAULT_TEMPLATES, ModelOptions, Runtime, read_templates
from counterfoil.segmentation import DEFAULT_SEGMENTER, SEGMENTERS
from counterfoil.store.folder_mirror import close_folder, open_folder
from counterfoil.store.object_storage import is_address

Command = TypeVar("Command", bound=Callable[..., Any])


class FolderType(PathType):
    """A folder: a path, or an address of object storage, of which the command gets a local mirror.

    What the command changed there is put to the address when it ends, also where it ends with an error.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The folder to work in."""
        path: Path = super().convert(value, param, ctx)
        if not is_address(value):
            return path
        folder = open_folder(value)
        if ctx is not None:
            ctx.call_on_close(lambda: close_folder(folder))
        return folder


class PlaceType(PathType):
    """Photos or masks: a path, FORMAT:PATH, or an address of object storage, which stays a text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | Path:
        """The path or the address."""
        path: Path = super().convert(value, param, ctx)
        return str(value) if is_address(value) else path


FOLDER, PLACE = FolderType(path_type=Path), PlaceType(path_type=Path)

MODEL = "Model address, or NAME=ADDRESS to name it in tables and reports; may be repeated."
IMAGES = "Folder of class folders with photos, FORMAT:PATH (`counterfoil list sources`), or s3://BUCKET/FOLDER."
limit_option = click.option("--limit", type=int, help="Use at most this many photos, taken from the classes in turn.")
recipe_option = click.option("--recipe", default="attributes", show_default=True, shell_complete=complete_recipe,
                             help="Recipe by name, or a YAML file.")  # fmt: skip
workers_option = click.option(
    "--workers", type=int, help="Threads or processes that work on photos [default: one per core]."
)

_ENGINE_OPTIONS = (
    click.option("--engine", default="local", show_default=True,
                 help="Who does the work: local (threads; from 4 workers on processes), threads, processes, ray, or"
                      " ray:ADDRESS of a cluster."),
    click.option("--shard", help="Do only this part of the work, I/N, or auto from a batch scheduler; then `merge`."),
)  # fmt: skip


def engine_options(command: Command) -> Command:
    """Who works on the pieces of a run."""
    for option in reversed(_ENGINE_OPTIONS):
        command = option(command)
    return command


def chosen_execution(options: dict[str, Any]) -> Execution:
    """What the command line chose about engine and shard; both are taken out of the options."""
    engine, shard = options.pop("engine"), options.pop("shard")
    return Execution(engine, None if shard is None else parse_shard(shard))


_MASK_OPTIONS = (
    click.option("--segmenter", type=click.Choice(list(SEGMENTERS)), default=DEFAULT_SEGMENTER, show_default=True,
                 help="What finds objects where there are no masks: two networks, or one of them."),
    click.option("--doubtful-masks", type=click.Choice(["leave-out", "keep"]), default="leave-out", show_default=True,
                 help="Whether edits use a found mask that a test doubts."),
)  # fmt: skip


def mask_options(command: Command) -> Command:
    """Everything about finding masks that a user may choose."""
    for option in reversed(_MASK_OPTIONS):
        command = option(command)
    return command


_MODEL_OPTIONS = (
    click.option("--describe", help="Labels and preprocessing of a model file that does not say them: JSON or a file."),
    click.option("--classes", help="The photos' classes: imagenet-d, imagenet-9, ximagenet-12, or a classes.json."),
    click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:NUMBER."),
    click.option("--precision", type=click.Choice(["f32", "bf16", "fp16"]), default="f32", show_default=True,
                 help="With a lower one the run says how many answers it changed."),
    click.option("--runtime", type=click.Choice(["own", "onnx", "openvino"]), default="own", show_default=True,
                 help="onnx exports a torch model once and checks it."),
    click.option("--export", is_flag=True, hidden=True, help="Deprecated: say --runtime onnx."),
    click.option("--template", help="Prompt of a zero-shot model, such as 'a sketch of a {c}', or a file of prompts."),
)  # fmt: skip


def model_options(command: Command) -> Command:
    """Everything about loading a model that a user may choose."""
    for option in reversed(_MODEL_OPTIONS):
        command = option(command)
    return command


def chosen_options(options: dict[str, Any]) -> ModelOptions:
    """What the command line chose about loading models."""
    template = options["template"]
    templates = read_templates(template) if template else DEFAULT_TEMPLATES
    chosen = {name: options[name] for name in ("describe", "device", "precision")}
    runtime: Runtime = options["runtime"]
    if options["export"]:
        click.echo("counterfoil: --export is deprecated and goes with the next release; say --runtime onnx", err=True)
        runtime = "onnx"
    return ModelOptions(templates=templates, runtime=runtime, **chosen)
