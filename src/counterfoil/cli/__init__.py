"""One command per stage: parse, call, print. A file of this room holds one stage's commands."""

from __future__ import annotations

import os
import sys
import threading

import click

from counterfoil import __version__
from counterfoil.cli.building import build, rebuild_command
from counterfoil.cli.converting import convert_command
from counterfoil.cli.evaluating import evaluate
from counterfoil.cli.freezing import check, diff, freeze
from counterfoil.cli.leaderboard import leaderboard_command
from counterfoil.cli.listing import list_, version
from counterfoil.cli.mining import mine
from counterfoil.cli.models import models
from counterfoil.cli.painting import analyse, paint, quality
from counterfoil.cli.planning import plan
from counterfoil.cli.reporting import compare, gate, report
from counterfoil.cli.running import demo, run
from counterfoil.cli.summaries import Commands
from counterfoil.cli.verifying import verify
from counterfoil.errors import UserError

_STOPPED = 130  # what shells give for Ctrl-C


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def commands() -> None:
    """Find out which attributes of an object break an image classifier, and prove it."""


for command in (
    demo,
    run,
    evaluate,
    build,
    rebuild_command,
    convert_command,
    paint,
    quality,
    mine,
    analyse,
    freeze,
    check,
    diff,
    plan,
    verify,
    report,
    compare,
    gate,
    leaderboard_command,
    list_,
    models,
    version,
):
    commands.add_command(command)


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
