"""What commands print: the models before the work, the findings and counts after it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from counterfoil.cli.command_output import emit
from counterfoil.cli.config_file import typed_arguments
from counterfoil.errors import UserError
from counterfoil.execution import WorkShard
from counterfoil.models.vlm import read_usage
from counterfoil.report.headline import write_headline
from counterfoil.run_result import ExecutionPlan, Result
from counterfoil.run_status import describe_status, read_status
from counterfoil.store.folder_mirror import describe_place
from counterfoil.store.run_counts import count_run
from counterfoil.study.judgements import Judgement, judge_record, status_of
from counterfoil.study.runs import Study
from counterfoil.types import Preprocessing


def command_line() -> str:
    """The command as it was typed, with the options of its --config file written out."""
    return shlex.join(["counterfoil", *typed_arguments()])


def print_result(result: Result) -> dict[str, Any]:
    """Write the report beside the tables, print what was found, and return it as the document of the command."""
    report = result.report(result.folder)
    for line in result.headline:
        click.echo(line)
    _print_counts(result)
    print_conservation(result.folder)
    click.echo(f"report: {describe_place(report)}")
    if not len(result.answers.samples):
        reasons = describe_place(result.folder / "skipped.csv")
        raise UserError(f"expected at least one photo that can be used, got none; see {reasons}")
    return describe_study(result.study, result.folder, report)


def describe_study(study: Study, folder: Path, report: Path) -> dict[str, Any]:
    """What a command with a report prints as JSON."""
    judged = {model: {**asdict(row), "sentence": row.sentence} for model, row in study.judgements.items()}
    return {
        "folder": describe_place(folder.absolute()),
        "report": describe_place(report.absolute()),
        "models": list(study.predictions),
        "photos": len(study.answers.samples),
        "skipped": len(study.skipped),
        "headline": [finding.text for finding in write_headline(study)],
        "judgements": judged,
        "drops": study.drops,
        "exit_status": status_of(study.judgements.values()),
    }


def print_shard(shard: WorkShard, folder: Path) -> None:
    """Print how far the run is after one of its shards."""
    click.echo(f"shard {shard} is done; {describe_status(read_status(folder))[0]}")
    click.echo(f"when all shards are done: counterfoil shards merge {describe_place(folder)}")
    emit({"folder": describe_place(folder.absolute()), "shard": str(shard), "status": read_status(folder)})


def print_conservation(folder: Path) -> None:
    """Print what was taken, made and answered; raises where something is unaccounted for, which can only be a bug."""
    counts = count_run(folder)
    if counts.faults:
        raise RuntimeError(f"{folder}: {'; '.join(counts.faults)}")
    for line in counts.sentences:
        click.echo(line)


def end_unjudged(judgements: Mapping[str, Judgement], printed: Iterable[str] = ()) -> None:
    """Say of each model that is not judged, or may be guessing, why and what to do, and end with a status of its own.

    The reason is left out where a line that was `printed` before has it.
    """
    lines = list(printed)
    for model, judgement in judgements.items():
        if judgement.verdict != "judged":
            said = any(judgement.reason in line for line in lines)
            click.echo(f"{judgement.verdict}: {model}" + ("" if said else f". {judgement.sentence}"))
    if status := status_of(judgements.values()):
        sys.exit(status)


def print_models(plan: ExecutionPlan) -> None:
    """Print how each model is fed and scored, before the work begins."""
    print_empty_classes(plan)
    for model in plan.models:
        scoring = "" if model.scoring in model.name else f"; {model.scoring}"
        click.echo(f"{model.name}: {_describe_preprocessing(model.preprocessing)}{scoring}")
    if checked := plan.run.tool_checks:
        click.echo(f"tool checks: pictures of {checked} photos are also made with another fill and another mask")
    if (results := plan.results.folder) is not None and results.is_dir():
        click.echo(f"what earlier runs stored of the same photos (fills, masks, answers) is taken from {results}")
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
    return f"skipped: {count} in {describe_place(folder / 'skipped.csv')}"


def _describe_preprocessing(preprocessing: Preprocessing | None) -> str:
    if preprocessing is None:
        return "does its own preprocessing"
    p = preprocessing
    geometry = f"squeeze to {p.size}" if p.resize is None else f"resize {p.resize}, centre crop {p.size}"
    return f"{geometry}, {p.interpolation}, mean {p.mean}, std {p.std}, {p.colour_order}"
