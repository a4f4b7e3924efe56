"""Groups of commands: whole summaries in the help, and commands that are imported when one is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from counterfoil.cli.command_output import ALIASES, add_output_options

_MASKS = "masks"  # `masks review`, as it was called before `photos review`
_WHOLE = 1000  # characters: more than any summary has


class Commands(click.Group):
    """Commands whose summaries are wrapped; click cuts what is longer than a line."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, with the options that every command has."""
        command = super().get_command(ctx, cmd_name)
        return None if command is None else add_output_options(command)

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


class PlacedGroup(NamedTuple):
    """Commands that share a first word."""

    summary: str
    places: Mapping[str, Place]


STAGES = {
    "Test a model": ("demo", "run", "report", "show", "compare", "gate", "plan", "analyse", "repair"),
    "Make a benchmark": ("build", "paint", "pictures", "mine", "verify", "freeze", "check", "benchmark"),
    "Finished pictures and answers": ("evaluate", "import"),
    "Photos, models and machines": ("photos", "models", "list", "shards"),
}


class LazyCommands(Commands):
    """Commands of other modules, each imported when it is called, and groups of such commands.

    A command of a group can also be called without the group's word, as before there were groups (`ALIASES`).
    """

    def __init__(
        self, *arguments: Any, places: Mapping[str, Place], groups: Mapping[str, PlacedGroup] | None = None, **rest: Any
    ) -> None:
        super().__init__(*arguments, **rest)
        self.places, self.groups = places, groups or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the tables, then the commands of this module."""
        own = [name for name, command in self.commands.items() if not command.hidden]
        return [*self.places, *self.groups, *own]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        if cmd_name in self.groups:
            group = self.groups[cmd_name]
            return LazyCommands(name=cmd_name, places=group.places, help=group.summary)
        if cmd_name in self.places:
            return _import_command(self.places[cmd_name])
        words = ALIASES.get(cmd_name, "").split()
        if words and words[0] in self.groups:
            return _import_command(self.groups[words[0]].places[words[1]])
        if cmd_name == _MASKS and self.groups:
            return Commands(name=_MASKS, commands={"review": _import_command(self.groups["photos"].places["review"])})
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by stage; those of no stage come last."""
        left = dict(self.summaries())
        stages = {stage: [name for name in names if name in left] for stage, names in STAGES.items()}
        placed = {name for names in stages.values() for name in names}
        stages["Commands"] = [name for name in left if name not in placed]
        for stage, names in stages.items():
            if names:
                with formatter.section(stage):
                    formatter.write_dl([(name, left[name]) for name in names])

    def summaries(self) -> list[tuple[str, str]]:
        """Each command's name and what it does, from the tables."""
        own = [(name, text) for name, text in super().summaries() if not self.commands[name].hidden]
        placed = [(name, place.summary) for name, place in self.places.items()]
        placed += [(name, group.summary) for name, group in self.groups.items()]
        return [*placed, *own]


def _import_command(place: Place) -> click.Command:
    command: click.Command = vars(import_module(f"counterfoil.cli.{place.module}"))[place.function]
    return add_output_options(command)
