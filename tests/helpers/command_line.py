"""Runs the command line within this process, which saves the second that starting one takes."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from counterfoil.cli import commands, main


@dataclass(frozen=True)
class Ended:
    """Exit status and output, as of a process."""

    returncode: int
    stdout: str
    stderr: str


def counterfoil(*arguments: object, cwd: Path | None = None) -> Ended:
    out, error, status = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(error):
        patch.setattr(sys, "argv", ["counterfoil", *map(str, arguments)])
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
    if status:  # a test that fails shows why the command did
        print(f"counterfoil {' '.join(map(str, arguments))}: status {status}\n{error.getvalue()}", file=sys.stderr)
    return Ended(status, out.getvalue(), error.getvalue())


def subcommands(group: click.Group) -> dict[str, click.Command]:
    """The commands of a group by name, including those imported on first use."""
    context = click.Context(group)
    named = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in named.items() if command is not None}


def find_command(*names: str) -> click.Command:
    """A command by the words typed after `counterfoil`."""
    command: click.Command = commands
    for name in names:
        assert isinstance(command, click.Group)
        command = subcommands(command)[name]
    return command
