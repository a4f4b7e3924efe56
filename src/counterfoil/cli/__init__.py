"""The command line: parse, call, print. A file of this room holds one stage's commands, imported when one is called."""

from __future__ import annotations

import os
import sys
import threading

import click

from counterfoil import __version__
from counterfoil.cli.command_group import LazyCommands, Place, PlacedGroup
from counterfoil.cli.command_output import emit
from counterfoil.cli.process_end import (
    Terminated,
    close_output,
    describe_failure,
    describe_foreign_exit,
    guard_output,
    handle_signals,
)
from counterfoil.errors import UserError

_STOPPED = 130  # what shells give for Ctrl-C
PLACES = {
    "demo": Place(
        "demo_commands",
        "demo",
        "Run three networks over the demo photos, offline after the first time, write a report, and repair one.",
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
    "paint": Place(
        "generation_commands", "paint", "Paint pictures from words, or backgrounds around objects, into a workspace."
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
    "repair": Place(
        "repair_commands",
        "repair",
        "Make a model that edits break less, and judge it on photos it has not seen: exit 0 repaired, 1 not, 3, 4.",
    ),
    "freeze": Place("freeze_commands", "freeze", "Write a workspace as a benchmark that nobody can change unnoticed."),
    "check": Place(
        "freeze_commands",
        "check",
        "Verify every hash of a benchmark, run or workspace and name what differs; exit status 1 where something does.",
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
    "list": Place("model_commands", "list_", "List the edits, recipes, models, painters or sources there are."),
    "models": Place("model_commands", "models", "Describe a model, and check that it meets the contract of models."),
}
GROUPS = {  # commands that are typed with a word before them
    "shards": PlacedGroup(
        "Join the parts of a run that several machines made, and say how far they are.",
        {
            "merge": Place("part_commands", "merge", "Write the tables and the report of a run whose shards are done."),
            "status": Place(
                "part_commands",
                "status",
                "Say how far a run is: parts done, pace, time left, failed pieces with their reasons, machine time.",
            ),
        },
    ),
    "pictures": PlacedGroup(
        "Make one picture again, or take bad pictures out of a workspace.",
        {
            "rebuild": Place(
                "build_commands", "rebuild_command", "Make one picture of a run or workspace again, to the bit."
            ),
            "quality": Place(
                "generation_commands",
                "quality",
                "Take blank, broken and repeated pictures out of a workspace's manifest, each with its reason.",
            ),
        },
    ),
    "photos": PlacedGroup(
        "Write photos and masks in another format, or correct masks on a page.",
        {
            "convert": Place("build_commands", "convert_command", "Write photos and masks in another format."),
            "review": Place(
                "mask_commands",
                "review",
                "Open a page that shows each photo with its mask: accept, reject, paint, erase, grow or cut a region.",
            ),
        },
    ),
    "benchmark": PlacedGroup(
        "Compare two versions of a benchmark, or your runs with published numbers.",
        {
            "diff": Place(
                "freeze_commands",
                "diff",
                "Say what changed between two versions of a benchmark, and which step of the version is due.",
            ),
            "leaderboard": Place(
                "evaluate_commands",
                "leaderboard_command",
                "Show what was published of a benchmark, your own runs first.",
            ),
        },
    ),
}


@click.group(cls=LazyCommands, places=PLACES, groups=GROUPS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def commands() -> None:
    """Find out which attributes of an object break an image classifier, and prove it."""


@commands.command(hidden=True)  # --version says the same
def version() -> None:
    """Print the version."""
    click.echo(__version__)
    emit({"version": __version__})


def main() -> None:
    """Entry point: a user's error is one line and exit status 2."""
    os.environ.setdefault("OPENCV_LOG_LEVEL", "ERROR")  # its warnings about damaged pictures, which are rows
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # its own pool keeps what a long table took
    guard_output()
    handle_signals()
    try:
        status = _run_command()
    except (click.Abort, KeyboardInterrupt) as error:
        cause = error.__cause__ if isinstance(error, click.Abort) else error  # click makes the one of the other
        by, status = (f" by {cause.name}", cause.status) if isinstance(cause, Terminated) else ("", _STOPPED)
        _stop(_fail(f"stopped{by}; what is finished is kept, run the same command to go on", status))
    sys.exit(close_output(status))


def _run_command() -> int:
    try:
        commands(standalone_mode=False, auto_envvar_prefix="COUNTERFOIL")
    except UserError as error:
        return _fail(str(error), 2)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OSError as error:
        line = describe_failure(error)
        if line is None:
            raise
        return _fail(line, 2)
    except SystemExit as error:
        if foreign := describe_foreign_exit(error):
            return _fail(foreign, 2)
        return error.code if isinstance(error.code, int) else 0
    return 0


def _stop(status: int) -> None:
    """End at once, whatever threads are at: files are written whole, and Python would wait for the threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        os._exit(status)
    sys.exit(status)


def _fail(line: str, status: int) -> int:
    """Print one line; line breaks and other signs that a terminal acts on, as names may hold, are spelt out."""
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in line)
    click.echo(f"counterfoil: {shown}", err=True)
    return status
