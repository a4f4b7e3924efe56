"""What commands print: the models before the work, the findings and counts after it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from counterfoil.cli.config_file import typed_arguments
from counterfoil.errors import UserError
from counterfoil.models.vlm import read_usage
from counterfoil.run_result import ExecutionPlan, Result
from counterfoil.study.judgements import NOT_JUDGED, Judgement, judge_record
from counterfoil.types import Preprocessing


def command_line() -> str:
    """The command as it was typed, with the options of its --config file written out."""
    return shlex.join(["counterfoil", *typed_arguments()])


def print_result(result: Result) -> None:
    """Write the report beside the tables and print what was found."""
    report = result.report(result.folder)
    for line in result.headline:
        click.echo(line)
    _print_counts(result)
    click.echo(f"report: {report}")
    if not len(result.answers.samples):
        raise UserError(f"expected at least one photo that can be used, got none; see {result.folder / 'skipped.csv'}")


def end_unjudged(judgements: Mapping[str, Judgement], printed: Iterable[str] = ()) -> None:
    """Say of each model that is not judged why and what to do, and end with a status of its own.

    The reason is left out where a line that was `printed` before has it.
    """
    lines = list(printed)
    for model, judgement in judgements.items():
        if not judgement.is_judged:
            said = any(judgement.reason in line for line in lines)
            click.echo(f"not judged: {model}" + ("" if said else f". {judgement.sentence}"))
    if not all(judgement.is_judged for judgement in judgements.values()):
        sys.exit(NOT_JUDGED)


def print_models(plan: ExecutionPlan) -> None:
    """Print how each model is fed and scored, before the work begins."""
    print_empty_classes(plan)
    for model in plan.models:
        scoring = "" if model.scoring in model.name else f"; {model.scoring}"
        click.echo(f"{model.name}: {_describe_preprocessing(model.preprocessing)}{scoring}")
    if checked := plan.run.tool_checks:
        click.echo(f"tool checks: pictures of {checked} photos are also made with another fill and another mask")
    for name, record in plan.run.sanity.items():
        judgement = judge_record(record)
        if judgement.reason:
            click.echo(f"warning: {name}. {judgement.sentence}", err=True)


def print_empty_classes(plan: ExecutionPlan) -> None:
    """Print the classes all of whose photos were skipped, before the work begins."""
    if plan.empty_classes:
        click.echo(f"no usable photo of {', '.join(plan.empty_classes)}: skipped.csv gives the reasons")


def _print_counts(result: Result) -> None:
    """Print the notes of the models, what endpoints were asked, and how many pictures were skipped."""
    for model in result.plan.models:
        if model.note:
            click.echo(f"{model.name}: {model.note}")
    for usage in read_usage(result.folder).values():
        click.echo(usage.sentence)
    if result.skipped:
        click.echo(describe_skipped(len(result.skipped), result.folder))


def describe_skipped(skipped: int, folder: Path) -> str:
    """How many pictures could not be used, and where the reasons stand."""
    if not skipped:
        return "skipped: none"
    count = "1 picture, with its reason" if skipped == 1 else f"{skipped} pictures, each with its reason"
    return f"skipped: {count} in {folder / 'skipped.csv'}"


def _describe_preprocessing(preprocessing: Preprocessing | None) -> str:
    if preprocessing is None:
        return "does its own preprocessing"
    p = preprocessing
    geometry = f"squeeze to {p.size}" if p.resize is None else f"resize {p.resize}, centre crop {p.size}"
    return f"{geometry}, {p.interpolation}, mean {p.mean}, std {p.std}, {p.colour_order}"
