"""Published numbers and one's own: `leaderboard`."""

from __future__ import annotations

from pathlib import Path

import click

from counterfoil.pipeline.leaderboard import leaderboard
from counterfoil.report.leaderboard import as_html, as_json, as_markdown, as_text
from counterfoil.store import write_atomically

_FORMS = {"text": as_text, "markdown": as_markdown, "json": as_json, "html": as_html}


@click.command(name="leaderboard")
@click.argument("benchmark")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(list(_FORMS)), default="text", show_default=True,
              help="html is one page that sorts and filters.")  # fmt: skip
@click.option("--numbers", "files", multiple=True, type=click.Path(path_type=Path),
              help="JSON file with rows of your own; may be given several times.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="File to write [default: the terminal].")
def leaderboard_command(
    benchmark: str, runs: tuple[Path, ...], form: str, files: tuple[Path, ...], out: Path | None
) -> None:
    """Show what was published of a benchmark, your own runs first."""
    told = _FORMS[form](leaderboard(benchmark, runs, files))
    click.echo(told if out is None else write_atomically(out, told), nl=out is not None)
