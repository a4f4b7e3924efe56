"""The command `import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.cli.command_output import emit
from counterfoil.cli.path_option import PATH
from counterfoil.cli.terminal_output import command_line, describe_skipped, describe_study, end_unjudged
from counterfoil.imported_answers import ImportConfig, import_answers
from counterfoil.progress import show_stage
from counterfoil.report.headline import write_headline
from counterfoil.store.answer_table import AnswerColumns

_ROLES = {
    "model": "the model",
    "sample": "the photo; pictures of one photo share it",
    "condition": "what was done to the picture",
    "correct": "right (1) or wrong (0)",
    "prediction": "the answered class",
    "label": "the true class",
    "confidence": "the probability of the answer, where there is one",
    "attribute": "the attribute that a condition changes",
    "edit": "the edit of a condition",
    "level": "the level of a condition",
}
_file = PATH


def _column_options(command: Any) -> Any:
    """An option per column; its default is the column's usual name."""
    for role, meaning in reversed(_ROLES.items()):
        command = click.option(
            f"--{role}-column", default=AnswerColumns().names()[role], show_default=True, help=f"Column of {meaning}."
        )(command)
    return command


@click.command(name="import")
@click.argument("answers", nargs=-1, required=True, type=_file)
@click.option("--out", required=True, type=_file, help="Folder of the run that is written.")
@click.option("--original", default="original", show_default=True, help="The condition of the unedited pictures.")
@click.option("--model", "models", multiple=True, help="The model of each file, where the files have no such column.")
@click.option("--attribute", default="", help="One attribute for all conditions, which are then its levels.")
@click.option("--sample-pattern", default="", help="Regular expression for the part of a sample that names the photo.")
@click.option("--no-answer", default="", help="The prediction that stands for no answer, such as na; not scored.")
@click.option("--annotations", type=_file, help="Factors of the photos: CSV, Parquet or JSON lines with 0 and 1.")
@_column_options
def import_command(answers: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Make a run of a table of answers made elsewhere (CSV or Parquet): drops, statistics and report."""
    columns = AnswerColumns(**{role: options[f"{role}_column"] for role in _ROLES})
    chosen = {name: options[name] for name in ("original", "models", "attribute", "sample_pattern", "no_answer")}
    config = ImportConfig(
        answers=answers, columns=columns, annotations=options["annotations"], command=command_line(), **chosen
    )
    with show_stage("reading the answers"):
        study = import_answers(config, out)
    rows, photos = len(study.answers.correct), len(study.answers.samples)
    click.echo(f"{rows:,} answers of {len(study.predictions)} models to {photos:,} photos")
    lines = [finding.text for finding in write_headline(study)]
    for line in lines:
        click.echo(line)
    if study.skipped:
        click.echo(describe_skipped(len(study.skipped), out))
    for note in study.run.notes[1:]:
        click.echo(note)
    click.echo(f"report: {out / 'report.html'}")
    emit(describe_study(study, out, out / "report.html"))
    end_unjudged(study.judgements, lines)
