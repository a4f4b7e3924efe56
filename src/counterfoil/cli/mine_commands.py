"""The command `mine`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.cli.command_output import emit
from counterfoil.cli.completion import complete_model
from counterfoil.cli.config_file import config_option
from counterfoil.cli.shared_options import (
    FOLDER,
    chosen_execution,
    chosen_options,
    engine_options,
    model_options,
    workers_option,
)
from counterfoil.cli.terminal_output import command_line, print_models
from counterfoil.errors import UserError
from counterfoil.mining.miner import run_mining
from counterfoil.mining.mining_config import MiningConfig
from counterfoil.mining.rules import Rule, RuleKind
from counterfoil.mining.surrogate_answers import ask_shard
from counterfoil.report.words import pluralize
from counterfoil.store.folder_mirror import describe_place

_WITH: dict[RuleKind, str] = {
    "all": "no number",
    "at-least": "--at-least K alone",
    "mean-probability": "--below T alone",
}
_UNUSED: dict[str, Any] = {"at_least": 1, "below": 1.0}  # what a rule that does not look at a number is given


@click.command()
@click.argument("workspace", type=FOLDER)
@click.option(
    "--surrogate",
    "surrogates",
    multiple=True,
    required=True,
    shell_complete=complete_model,
    help="Model that chooses pictures; may be repeated.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    shell_complete=complete_model,
    help="Held-out model that takes no part in the choice; may be repeated.",
)
@click.option("--at-least", type=int, help="Keep pictures that at least this many surrogates get wrong [default: all].")
@click.option("--below", type=float, help="Keep pictures whose true class has a mean probability below this.")
@click.option("--rule", type=click.Choice(["all", "at-least", "mean-probability"]),
              help="What makes a picture hard [default: what --at-least or --below say, else all].")  # fmt: skip
@click.option("--original", type=click.Choice(["failing", "all", "none"]), default="failing", show_default=True,
              help="Who must be right on the original: each surrogate that is wrong, all, or nobody.")  # fmt: skip
@click.option("--balance", type=click.Choice(["class", "attribute", "both"]), help="Keep equally many of each.")
@click.option(
    "--most-per-group", type=int, help="Most pictures of a group with --balance [default: the smallest group's number]."
)
@click.option("--family", "families", multiple=True, help="NAME=ADDRESS where the address does not tell the family.")
@workers_option
@click.option("--batch-size", type=int, default=16, show_default=True, help="Pictures per call of a model.")
@engine_options
@model_options
@config_option
def mine(workspace: Path, surrogates: tuple[str, ...], targets: tuple[str, ...], **options: Any) -> None:
    """Keep the pictures that several surrogates get wrong, and see whether held-out models fail on them too."""
    execution = chosen_execution(options)
    job = MiningConfig(
        execution=execution,
        workspace=workspace,
        surrogates=surrogates,
        targets=targets,
        rule=_rule(options),
        families=_families(options["families"]),
        options=chosen_options(options),
        command=command_line(),
        **{name: options[name] for name in ("balance", "most_per_group", "classes", "workers", "batch_size")},
    )
    if execution.shard is not None:
        ask_shard(job)
        click.echo(f"shard {execution.shard} is done; when all are, run the same command without --shard")
        emit({"folder": workspace.absolute(), "shard": str(execution.shard)})
        return
    mining = run_mining(job, print_models)
    for line in mining.lines:
        click.echo(line)
    click.echo(f"kept: {pluralize(len(mining.mined.kept), 'picture')}, in {describe_place(workspace / 'mined.json')}")
    click.echo(mining.conservation)
    click.echo(f"report: {describe_place(mining.page)}")
    emit({"folder": workspace.absolute(), "shard": None, "kept": mining.mined.kept, "rule": mining.mined.rule,
          "findings": mining.lines, "report": mining.page.absolute()})  # fmt: skip


def _rule(options: dict[str, Any]) -> Rule:
    """The rule that the options name; what contradicts it or is missing is refused."""
    needs: dict[RuleKind, str | None] = {"all": None, "at-least": "at_least", "mean-probability": "below"}
    given = [kind for kind, name in needs.items() if name and options[name] is not None]
    kind: RuleKind = options["rule"] or (given[0] if given else "all")
    if given != [kind] * (needs[kind] is not None):
        told = [f"--{str(needs[other]).replace('_', '-')}" for other in given] or ["no number"]
        raise UserError(f"expected --rule {kind} with {_WITH[kind]}, got {' and '.join(told)}")
    least, below = (default if options[name] is None else options[name] for name, default in _UNUSED.items())
    return Rule(kind, least, below, options["original"])


def _families(texts: tuple[str, ...]) -> dict[str, str]:
    """By address, what --family said."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, address in pairs:
        if not (name and equals and address):
            raise UserError(f"expected --family NAME=ADDRESS, got '{name}{equals}{address}'")
    return {address: name for name, _, address in pairs}
