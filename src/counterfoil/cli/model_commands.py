"""The commands `list` and `models check`."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import cache_folder, fetch_asset
from counterfoil.assets.embedded_networks import NETWORKS, build_onnx_file, check_known_answers
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.cli.command_group import Commands
from counterfoil.cli.command_output import emit
from counterfoil.cli.completion import complete_model
from counterfoil.cli.shared_options import chosen_options, model_options
from counterfoil.contract_checks import ContractError, check_model
from counterfoil.edits.registry import EDITS
from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import load_label_space
from counterfoil.labels.label_space import match_label_space
from counterfoil.models.model_loaders import list_model_schemes, load_model
from counterfoil.models.model_names import split_name
from counterfoil.painters.painter_loaders import painter_schemes
from counterfoil.recipes.edit_recipe import list_recipes, load_recipe
from counterfoil.recipes.prompt_recipe import list_prompt_recipes, load_prompt_recipe
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.sources.source_loaders import list_source_schemes
from counterfoil.types import Model, Preprocessing
from counterfoil.worker_pool import cores

_LISTS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "edits": lambda: [(name, (edit.__doc__ or "").split("\n")[0]) for name, edit in EDITS.items()],
    "recipes": lambda: [
        *((name, load_recipe(name).about) for name in list_recipes()),
        *((name, f"[paint] {load_prompt_recipe(name).about}") for name in list_prompt_recipes()),
    ],
    "models": lambda: [(f"{scheme}:", about) for scheme, about in list_model_schemes().items()],
    "painters": lambda: [(f"{scheme}:", about) for scheme, about in painter_schemes().items()],
    "sources": lambda: list(list_source_schemes().items()),
}


@click.command(name="list")
@click.argument("what", type=click.Choice(list(_LISTS)))
def list_(what: str) -> None:
    """List the edits, recipes, models, painters or sources there are."""
    rows = _LISTS[what]()
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        click.echo(f"{name:<{width}}  {about}")
    emit({"kind": what, "rows": [{"name": name, "about": about} for name, about in rows]})


PHOTOS = 3
_SECONDS_TO_MEASURE = 2.0
_PER_CALL = 8


@click.group(cls=Commands)
def models() -> None:
    """Describe a model, and check that it meets the contract of models."""


@models.command()
@click.argument("address", shell_complete=complete_model)
@model_options
def check(address: str, classes: str | None, **options: Any) -> None:
    """Load a model, print what it is, ask it about three demo photos and check the contract."""
    space = load_label_space(classes) if classes else None
    model = load_model(address, options=replace(chosen_options(options), classes=space))
    for line in described(model):
        click.echo(line)
    document: dict[str, Any] = {
        "model": model.name, "digest": model.digest, "parameters": model.parameters or None,
        "labels": len(model.labels), "label_space": match_label_space(model.labels).name,
        "preprocessing": model.preprocessing, "note": model.note,
    }  # fmt: skip
    if not model.gives_scores:
        click.echo("contract: not run, since this model answers variants and not pictures")
        emit({**document, "contract": "not run", "answers": [], "known_answers": None, "pictures_a_second": None})
        return
    photos = demo_photos()
    lines = answered(model, photos)
    for line in lines:
        click.echo(line)
    if answers := known_answers(address):
        click.echo(answers)
    keep_promises(model, [photo for _, photo in photos])
    click.echo("contract: kept (width, finite, probabilities, independent of batch and order)")
    speed = pictures_a_second(model, [photo for _, photo in photos])
    click.echo(f"speed: {speed:.0f} pictures a second")
    if model.note:
        click.echo(f"note: {model.note}")
    emit({**document, "contract": "kept", "answers": lines, "known_answers": answers or None,
          "pictures_a_second": speed})  # fmt: skip


def described(model: Model) -> list[str]:
    """What the model is."""
    return [
        f"model: {model.name}",
        f"weights: sha256 {model.digest}",
        *([f"parameters: {model.parameters:,}"] if model.parameters else []),
        f"labels: {len(model.labels)} of {match_label_space(model.labels).name},"
        f" {model.labels[0]} ... {model.labels[-1]}",
        f"preprocessing: {describe_input(model.preprocessing)}",
        *([f"prepared by: {model.prepared_by}"] if model.prepared_by else []),
    ]


def describe_input(preprocessing: Preprocessing | None) -> str:
    """Preprocessing in one line."""
    if preprocessing is None:
        return "done by the model itself"
    p = preprocessing
    geometry = f"squeeze to {p.size}" if p.resize is None else f"resize {p.resize}, centre crop {p.size}"
    mean, std = (", ".join(f"{value:.6g}" for value in values) for values in (p.mean, p.std))
    return f"{geometry}, {p.interpolation}, antialiased, mean ({mean}), std ({std}) in levels 0..255, {p.colour_order}"


def demo_photos() -> list[tuple[str, NDArray[np.uint8]]]:
    """Three demo photos of different classes, with their labels."""
    source = DemoSource()
    samples = {sample.label: sample for sample in source.samples()[0]}
    chosen = list(samples.values())[:: max(1, len(samples) // PHOTOS)][:PHOTOS]
    return [(sample.label, source.read(sample)[0]) for sample in chosen]


def answered(model: Model, photos: list[tuple[str, NDArray[np.uint8]]]) -> list[str]:
    """The best answer to each photo."""
    space, demo = match_label_space(model.labels), load_label_space("imagenet1k")
    scores = model([photo for _, photo in photos])
    best = scores.argmax(axis=1)
    return [
        f"photo of {demo.name_of(label)}: {space.name_of(model.labels[column])} ({100 * row[column]:.1f} %)"
        for (label, _), column, row in zip(photos, best, scores, strict=True)
    ]


def known_answers(address: str) -> str:
    """For an embedded network: how far its answers are from the original framework's; empty for others."""
    name = split_name(address, list_model_schemes())[1].removeprefix("embedded:")
    if name not in NETWORKS:
        return ""
    session = open_onnx_session(build_onnx_file(name, fetch_asset, cache_folder()))
    difference = check_known_answers(NETWORKS[name], session)
    return f"known answers: kept on 4 fixed pictures, within {difference:.1g} of the logarithm of a probability"


def keep_promises(model: Model, photos: list[NDArray[np.uint8]]) -> None:
    """The contract, as a user's error where it is broken."""
    try:
        check_model(model, photos)
    except ContractError as error:
        raise UserError(f"{model.name} breaks the contract of models: {error}") from error


def pictures_a_second(model: Model, photos: list[NDArray[np.uint8]]) -> float:
    """The rate with one thread per core, as the pipeline asks."""
    batch = (photos * _PER_CALL)[:_PER_CALL]
    end = time.monotonic() + _SECONDS_TO_MEASURE

    def ask(_: int) -> int:
        calls = 0
        while time.monotonic() < end or calls == 0:
            model(batch)
            calls += 1
        return calls

    start = time.monotonic()
    with ThreadPoolExecutor(cores()) as pool:
        calls = sum(pool.map(ask, range(cores())))
    return calls * len(batch) / (time.monotonic() - start)
