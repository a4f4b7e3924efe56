"""Help that tells what each command does in full."""

from __future__ import annotations

import click

_WHOLE = 1000  # characters: more than any summary has


class Commands(click.Group):
    """Commands whose summaries are wrapped; click cuts what is longer than a line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names, in the order in which they were added, with their summaries."""
        rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
