"""The command `photos review`: masks looked at and corrected on a page."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from counterfoil.cli.command_output import emit
from counterfoil.cli.path_option import PATH, PathType
from counterfoil.plugins import check_web_extra
from counterfoil.progress import show_stage
from counterfoil.report.words import pluralize


@click.command()
@click.argument("target", metavar="FOLDER|RUN", type=PATH)
@click.option("--masks", "out", type=PATH,
              help="Folder for the masks, as `run --masks` takes it [default: FOLDER-masks].")  # fmt: skip
@click.option("--start", type=PathType(path_type=Path, exists=True, file_okay=False),
              help="Masks to begin with [default: those of the run; else a network finds the objects].")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8643, show_default=True,
              help="Port to listen on; 0 takes a free one.")  # fmt: skip
@click.option("--url", help="The address that a phone uses, such as http://this-machine:8643 in a network you trust.")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser [default: yes].")
def review(
    target: Path, out: Path | None, start: Path | None, host: str, port: int, url: str | None, browser: bool
) -> None:  # fmt: skip
    """Open a page that shows each photo with its mask: accept, reject, paint, erase, grow or cut a region."""
    check_web_extra()
    from counterfoil.mask_review.review_app import ReviewSession, create_review_app
    from counterfoil.mask_review.review_folder import open_review
    from counterfoil.verification.app import create_server
    from counterfoil.verification.server_address import open_listener, resolve_address

    resolve_address(host, port, url)  # refuse a bad one before anything begins
    with show_stage("listing the photos"):
        opened = open_review(target, out, start)
    with open_listener(host, port) as listener:
        session = ReviewSession(opened, resolve_address(host, listener.getsockname()[1], url))
        click.echo(f"{pluralize(len(opened.photos), 'photo')}, {len(opened.verdicts())} decided before")
        if opened.doubts:
            click.echo(f"{pluralize(len(opened.doubts), 'doubtful mask')}, shown first")
        click.echo(f"masks: {opened.out}")
        click.echo(f"page (whoever has this link is let in): {session.link}")
        click.echo("Ctrl-C ends the review; the same command continues it")
        emit({"photos": len(opened.photos), "decided": len(opened.verdicts()), "doubtful": len(opened.doubts),
              "masks": opened.out, "link": session.link})  # fmt: skip
        if browser:
            webbrowser.open(session.link)
        create_server(create_review_app(session), session.address).run([listener])
