"""The commands `gate` and `plan`: bounds that a run is held to, and how many photos they need."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from counterfoil.cli.command_output import emit, json_file_option
from counterfoil.cli.completion import complete_edit
from counterfoil.cli.path_option import PATH
from counterfoil.cli.shared_options import FOLDER
from counterfoil.errors import UserError
from counterfoil.report.gate import Bound
from counterfoil.run_verdicts import GateResult
from counterfoil.run_verdicts import gate as judge_run
from counterfoil.statistics.families import DIVISORS, MAIN_FAMILY
from counterfoil.statistics.growth import photos_to_fail, photos_to_hold, spread_of_changes
from counterfoil.statistics.power import Discordance, discordance_from_accuracy, discordance_from_total, photos_needed
from counterfoil.store.files import write_atomically

_ALPHA = 0.05
_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
_PERCENT = click.FloatRange(0, 100, min_open=True)
_FILE = PATH


@click.command()
@click.argument("run", type=FOLDER)
@click.option("--against", type=FOLDER, help="Run of a baseline on the same photos: no attribute may cost more now.")
@click.option("--margin", "margins", multiple=True, shell_complete=complete_edit,
              help="Points by which a loss may grow: 2 [default], or background=2, or accuracy=1.")  # fmt: skip
@click.option(
    "--max-drop",
    "drops",
    multiple=True,
    shell_complete=complete_edit,
    help="background=5, size:0.05=20, background-swap=10, any=15.",
)
@click.option("--min-accuracy", type=float, help="Least accuracy on the unedited photos, in percent.")
@click.option("--bound", type=click.Choice(["upper", "lower", "point"]), default="upper", show_default=True,
              help="upper: prove that it holds; lower: prove that it is violated; point: no proof.")  # fmt: skip
@click.option("--model", help="Judge only this model.")
@click.option("--against-model", help="Model of the baseline, where it holds several and the names differ.")
@click.option("--junit", type=_FILE, help="Also write the checks as JUnit XML.")
@click.option("--markdown", type=_FILE, help="Also write them as Markdown, for a comment on a pull request.")
@json_file_option("Print them as JSON, or also write them into this file.")
def gate(run: Path, bound: Bound, **options: Any) -> None:
    """Hold a run to bounds or to a baseline: exit 0 holds, 1 violated, 3 cannot tell, 4 not judged."""
    judged = judge_run(
        run, options["against"], margin=options["margins"], max_drop=options["drops"], bound=bound,
        min_accuracy=options["min_accuracy"], model=options["model"], against_model=options["against_model"],
    )  # fmt: skip
    _write_files(judged, options)
    for line in judged.lines:
        click.echo(line)
    emit(judged.to_json())
    sys.exit(judged.exit_status)


def _write_files(judged: GateResult, options: dict[str, Any]) -> None:
    texts = {
        "junit": judged.to_junit(),
        "markdown": judged.to_markdown(),
        "json_file": json.dumps(judged.to_json(), indent=1, allow_nan=False) + "\n",
    }
    for name, text in texts.items():
        if options[name]:
            write_atomically(options[name], text)


@click.command()
@click.option("--drop", type=_PERCENT, help="The drop to see, in points.")
@click.option("--gate", "gating", is_flag=True, help="Photos for `gate --against` instead; needs --margin.")
@click.option("--margin", type=_PERCENT, help="With --gate: points by which a loss may grow.")
@click.option("--growth", type=click.FloatRange(0, 100), default=0.0, show_default=True,
              help="With --gate: points by which it truly grows.")  # fmt: skip
@click.option("--spread", type=_PERCENT,
              help="With --gate: deviation over photos, in points: `spread` in the JSON of a trial.")  # fmt: skip
@click.option("--pictures", type=click.IntRange(1), default=4, show_default=True,
              help="With --gate: edited pictures of an attribute per photo.")  # fmt: skip
@click.option(
    "--power", type=_SHARE, default=0.8, show_default=True, help="Probability with which the drop is to be seen."
)
@click.option("--accuracy", type=click.FloatRange(0, 100), default=80.0, show_default=True,
              help="Accuracy on the originals, percent.")  # fmt: skip
@click.option("--correlation", type=click.FloatRange(0, 1), default=0.5, show_default=True,
              help="Correlation of right answers before and after; with --gate, of changes in a photo.")  # fmt: skip
@click.option("--discordance", type=_PERCENT,
              help="Percent of answers that change, from a trial run; with --gate, between versions [10].")  # fmt: skip
@click.option("--comparisons", type=click.IntRange(1), default=DIVISORS[MAIN_FAMILY], show_default=True,
              help="Tests that it is corrected for; times its edits and levels, 1: none.")  # fmt: skip
def plan(drop: float | None, gating: bool, power: float, **options: Any) -> None:
    """Say how many photos are needed to see a drop, or to decide a gate."""
    if gating:
        needed, sentence = _plan_gate(power, options)
        click.echo(sentence)
        emit({"photos": needed, "sentence": sentence})
        return
    if drop is None:
        raise UserError("expected the drop to see, got none; give --drop 5, in points, or --gate --margin 2")
    if options["discordance"] is None:
        change = discordance_from_accuracy(drop / 100, options["accuracy"] / 100, options["correlation"])
    else:
        change = discordance_from_total(drop / 100, options["discordance"] / 100)
    comparisons = options["comparisons"]
    needed = photos_needed(change, power=power, alpha=_ALPHA / comparisons)
    sentence = _sentence(needed, change, power, comparisons)
    click.echo(sentence)
    emit({"photos": needed, "sentence": sentence})


def _plan_gate(power: float, options: dict[str, Any]) -> tuple[int, str]:
    margin, growth = options["margin"], options["growth"]
    if margin is None:
        raise UserError("expected a margin for --gate, got none; give --margin 2, in points")
    if growth == margin:
        raise UserError(f"expected a growth below or above the margin, got {growth:g} for both: nothing decides that")
    spread = options["spread"]
    if spread is None:
        changed = (options["discordance"] or 10.0) / 100
        spread = 100 * spread_of_changes(changed, options["pictures"], options["correlation"])
    fails = growth > margin
    count = photos_to_fail if fails else photos_to_hold
    needed = count(spread, margin, growth=growth, power=power)
    truth = f"a loss that grew by {growth:g} points" if growth else "a loss that did not change"
    return needed, (
        f"{needed:,} photos: {truth} is then shown to {'exceed' if fails else 'stay within'} a margin of {margin:g}"
        f" points with probability {power:g} (spread over photos {spread:.1f} points)."
    )


def _sentence(needed: int, change: Discordance, power: float, comparisons: int) -> str:
    lost, gained = 100 * change.lost, 100 * change.gained
    among = f", among {comparisons} comparisons" if comparisons > 1 else ""
    return (
        f"{needed:,} photos: a drop of {lost - gained:g} points ({lost:.1f} % of photos lost, {gained:.1f} % gained) "
        f"then has p < {_ALPHA:g} by McNemar's exact test{among} with probability {power:g}."
    )
