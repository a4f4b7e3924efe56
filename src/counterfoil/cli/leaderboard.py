"""Published numbers and one's own: `leaderboard`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from counterfoil.pipeline.leaderboard import leaderboard
from counterfoil.report.leaderboard import MANY, Leaderboard, as_html, as_json, as_markdown, as_text
from counterfoil.store import write_atomically

_FORMS = {"text": as_text, "markdown": as_markdown, "json": as_json, "html": as_html}


@click.command(name="leaderboard")
@click.argument("benchmark")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(list(_FORMS)), default="text", show_default=True,
              help="html is one page that sorts and filters.")  # fmt: skip
@click.option("--numbers", "files", multiple=True, type=click.Path(path_type=Path),
              help="JSON file with rows of your own; may be given several times.")  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Every published row in the terminal, however many.")
@click.option("--out", type=click.Path(path_type=Path), help="File to write [default: the terminal].")
def leaderboard_command(
    benchmark: str, runs: tuple[Path, ...], form: str, files: tuple[Path, ...], every: bool, out: Path | None
) -> None:
    """Show what was published of a benchmark, your own runs first."""
    board = leaderboard(benchmark, runs, files)
    told = _for_the_terminal(board, every) if form == "text" and out is None else _FORMS[form](board)
    click.echo(told if out is None else write_atomically(out, told), nl=out is not None)


def _for_the_terminal(board: Leaderboard, every: bool) -> str:
    """As wide as the terminal, and a part of a long board; whole rows, and all, where a program reads them."""
    if not sys.stdout.isatty():
        return as_text(board)
    return as_text(board, shutil.get_terminal_size().columns, None if every else MANY)
