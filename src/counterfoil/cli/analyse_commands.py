"""The commands `analyse RUN` and `analyse prompts`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from counterfoil.analysis.analyser import analyse_runs, render_analysis_json
from counterfoil.analysis.analysis_page import write_analysis, write_analysis_json
from counterfoil.analysis.evidence import AnalysisOptions
from counterfoil.cli.command_group import Commands
from counterfoil.cli.command_output import emit, json_file_option, wants_json
from counterfoil.cli.path_option import PATH
from counterfoil.cli.shared_options import FOLDER
from counterfoil.mining.prompt_study import compare_prompts, describe_outdated, render_prompt_json, render_prompt_table
from counterfoil.progress import show_stage
from counterfoil.statistics.variance_score import ScoreDefinition
from counterfoil.store.files import write_atomically

_folder = PATH
_DEFAULT = "run"


class _QuestionCommands(Commands):
    """Commands of which one needs no name: `analyse RUN` is `analyse run RUN`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the default command before a folder or an option of its own."""
        known = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if not args or args[0] in known else [_DEFAULT, *args])


@click.group(cls=_QuestionCommands)
def analyse() -> None:
    """Answer the papers' questions about a finished run: `analyse RUN`; or compare prompt templates."""


@analyse.command(name=_DEFAULT)
@click.argument("runs", nargs=-1, required=True, type=FOLDER)
@click.option("--out", type=FOLDER, help="Folder for analysis.html and analysis.json [default: RUN/analysis].")
@json_file_option("Print the answers as JSON, or write them into this file; no page without --out.")
@click.option("--as", "names", multiple=True, help="Name of a run, once per run: tells equal models apart.")
@click.option("--reference", type=_folder, help="CSV of reference models (model, clean, shifted, in percent).")
@click.option("--workspace", type=_folder, help="Workspace whose pictures people verified.")
@click.option("--score-spread", type=click.Choice(["variance", "deviation"]), default="variance", show_default=True,
              help="Spread of the score S.")  # fmt: skip
@click.option("--score-divisor", type=click.Choice(["population", "sample"]), default="population", show_default=True,
              help="Divisor of the spread of S.")  # fmt: skip
@click.option("--score-classes", type=click.Choice(["within", "overall"]), default="within", show_default=True,
              help="Spread over classes in each scenario, or of the classes' means.")  # fmt: skip
def run_questions(runs: tuple[Path, ...], out: Path | None, json_file: Path | None, **options: Any) -> None:
    """Answer every question that a finished run, or several over the same pictures, can answer."""
    definition = ScoreDefinition(options["score_spread"], options["score_divisor"], options["score_classes"])
    chosen = AnalysisOptions(definition=definition, reference=options["reference"], workspace=options["workspace"])
    with show_stage("answering the questions"):
        analysis = analyse_runs(runs, chosen, options["names"])
    for row in analysis.answers:
        click.echo(f"{row.question.words}\n  {row.reply.answer}")
    emit(render_analysis_json(analysis))
    if json_file is not None:
        click.echo(f"answers: {write_analysis_json(json_file, analysis)}")
    if (json_file is None and not wants_json()) or out is not None:
        click.echo(f"page: {write_analysis(out or runs[0] / 'analysis', analysis)}")


@analyse.command()
@click.argument("workspaces", nargs=-1, required=True, type=_folder)
@click.option("--compared", type=int, default=500, show_default=True,
              help="Pictures of each template whose distances are taken; 0 leaves the diversity out.")  # fmt: skip
@click.option("--out", type=PATH, help="Also write the JSON into this file.")
def prompts(workspaces: tuple[Path, ...], compared: int, out: Path | None) -> None:
    """Compare prompt templates by shared failures, verified pictures and diversity, with 95 % intervals."""
    rows = compare_prompts(workspaces, compared)
    document = render_prompt_json(rows)
    if out is not None:
        write_atomically(out, json.dumps(document, indent=1, allow_nan=False))
    for line in describe_outdated(workspaces):
        click.echo(line, err=True)
    click.echo(render_prompt_table(rows))
    emit({"templates": document})
