"""Groups of commands: whole summaries in the help, and commands that are imported when one is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

_WHOLE = 1000  # characters: more than any summary has


class Commands(click.Group):
    """Commands whose summaries are wrapped; click cuts what is longer than a line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names, in the order in which they were added, with their summaries."""
        with formatter.section("Commands"):
            formatter.write_dl(self.summaries())

    def summaries(self) -> list[tuple[str, str]]:
        """Each command's name and what it does."""
        return [(name, command.get_short_help_str(_WHOLE)) for name, command in self.commands.items()]


class Place(NamedTuple):
    """Where a command is defined, and its summary, so that the help imports nothing."""

    module: str  # of counterfoil.cli
    function: str
    summary: str


class LazyCommands(Commands):
    """Commands of other modules, each imported when it is called."""

    def __init__(self, *arguments: Any, places: Mapping[str, Place], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table, then the commands of this module."""
        return [*self.places, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        if cmd_name not in self.places:
            return super().get_command(ctx, cmd_name)
        place = self.places[cmd_name]
        command: click.Command = vars(import_module(f"counterfoil.cli.{place.module}"))[place.function]
        return command

    def summaries(self) -> list[tuple[str, str]]:
        """Each command's name and what it does, from the table."""
        return [*((name, place.summary) for name, place in self.places.items()), *super().summaries()]
