"""The command line: parse, call, print. A file of this room holds one stage's commands, imported when one is called."""

from __future__ import annotations

import os
import sys
import threading

import click

from counterfoil import __version__
from counterfoil.cli.command_group import LazyCommands, Place
from counterfoil.errors import UserError

_STOPPED = 130  # what shells give for Ctrl-C
PLACES = {
    "demo": Place(
        "run_commands",
        "demo",
        "Run three networks over the demo photos, offline after the first time, and write a report.",
    ),
    "run": Place(
        "run_commands", "run", "Edit your photos, ask your models, and write a report on what each attribute costs."
    ),
    "evaluate": Place(
        "evaluate_commands",
        "evaluate",
        "Show finished pictures to your models: a frozen benchmark, a workspace, or NAME:PATH of a published archive.",
    ),
    "import": Place(
        "import_commands",
        "import_command",
        "Make a run of a table of answers made elsewhere (CSV or Parquet): drops, statistics and report.",
    ),
    "build": Place(
        "build_commands", "build", "Write the pictures that a recipe makes of your photos, with their manifest."
    ),
    "rebuild": Place("build_commands", "rebuild_command", "Make one picture of a run or workspace again, to the bit."),
    "masks": Place("mask_commands", "masks", "Look at the masks of photos, correct them, and leave photos out."),
    "convert": Place("build_commands", "convert_command", "Write photos and masks in another format."),
    "paint": Place(
        "generation_commands", "paint", "Paint pictures from words, or backgrounds around objects, into a workspace."
    ),
    "quality": Place(
        "generation_commands",
        "quality",
        "Take blank, broken and repeated pictures out of a workspace's manifest, each with its reason.",
    ),
    "mine": Place(
        "mine_commands",
        "mine",
        "Keep the pictures that several surrogates get wrong, and see whether held-out models fail on them too.",
    ),
    "analyse": Place(
        "analyse_commands",
        "analyse",
        "Answer the papers' questions about a finished run: `analyse RUN`; or compare prompt templates.",
    ),
    "freeze": Place("freeze_commands", "freeze", "Write a workspace as a benchmark that nobody can change unnoticed."),
    "check": Place(
        "freeze_commands",
        "check",
        "Verify every hash of a benchmark and name what differs; exit status 1 where something does.",
    ),
    "diff": Place(
        "freeze_commands",
        "diff",
        "Say what changed between two versions of a benchmark, and which step of the version is due.",
    ),
    "plan": Place("gate_commands", "plan", "Say how many photos are needed to see a drop, or to decide a gate."),
    "verify": Place("verify_commands", "verify", "Let people confirm the pictures of a workspace."),
    "report": Place(
        "report_commands",
        "report",
        "Make the report of a finished run again, or one comparison of several runs over the same pictures.",
    ),
    "show": Place(
        "show_commands",
        "show",
        "Write pictures before and after an edit, with every model's answers, as one sheet at full resolution.",
    ),
    "compare": Place(
        "report_commands",
        "compare",
        "Compare two models photo by photo: what they get right on edited photos, then what each attribute costs.",
    ),
    "gate": Place(
        "gate_commands",
        "gate",
        "Hold a run to bounds or to a baseline: exit 0 holds, 1 violated, 3 cannot tell, 4 not judged.",
    ),
    "leaderboard": Place(
        "evaluate_commands", "leaderboard_command", "Show what was published of a benchmark, your own runs first."
    ),
    "list": Place("model_commands", "list_", "List the edits, recipes, models, painters or sources there are."),
    "models": Place("model_commands", "models", "Describe a model, and check that it meets the contract of models."),
}


@click.group(cls=LazyCommands, places=PLACES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def commands() -> None:
    """Find out which attributes of an object break an image classifier, and prove it."""


@commands.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)


def main() -> None:
    """Entry point: a user's error is one line and exit status 2."""
    try:
        commands(standalone_mode=False)
    except UserError as error:
        sys.exit(_fail(str(error), 2))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(_fail(f"{error.filename} cannot be used: {error.strerror}; check the path and its permissions", 2))
    except (click.Abort, KeyboardInterrupt):
        _stop(_fail("stopped; what is finished is kept, run the same command to go on", _STOPPED))


def _stop(status: int) -> None:
    """End at once, whatever threads are at: files are written whole, and Python would wait for the threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        os._exit(status)
    sys.exit(status)


def _fail(line: str, status: int) -> int:
    click.echo(f"counterfoil: {line}", err=True)
    return status
