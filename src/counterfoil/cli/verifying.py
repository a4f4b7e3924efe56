"""People's say: `verify` and its commands.

The page and its database come with an extra, so the pipeline's part is imported when a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.analyse.annotators import Exclusion
from counterfoil.analyse.deciding import RULES, DecisionRule
from counterfoil.cli.summaries import Commands
from counterfoil.cli.verify_words import address_words, decided_lines, status_lines
from counterfoil.errors import UserError
from counterfoil.pipeline.verified import changed_by_verification
from counterfoil.store import Workspace
from counterfoil.verify.extras import check_installed

FORMS = ("csv", "json", "label-studio", "label-studio-setup")


class _Days(click.FloatRange):
    """A span of time; `nan` is below no bound and above none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, where it is one."""
        found = super().convert(value, param, ctx)
        return found if found == found else self.fail(f"{value} is not in the range {self.min}<x<={self.max}.", param)


_folder = click.argument("workspace", type=click.Path(path_type=Path))
_database = click.option(
    "--database", envvar="COUNTERFOIL_DATABASE", help="postgresql://... [default: a SQLite file in the workspace]."
)
_url = click.option("--url", help="The address that annotators use, such as https://verify.example.org.")


class _Command(click.Command):
    """A command that needs the extra `web`; its help does not."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, where everything that it needs is installed."""
        check_installed()
        return super().invoke(ctx)


class _Verifying(Commands):
    command_class = _Command


@click.group(cls=_Verifying)
def verify() -> None:
    """Let people confirm the pictures of a workspace."""


@verify.command()
@_folder
@click.option("--questions", type=click.Path(path_type=Path),
              help="YAML or JSON [default: two questions, three annotators per picture].")  # fmt: skip
@_database
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True,
              help="Port to listen on; 0 takes a free one.")  # fmt: skip
@_url
def serve(workspace: Path, questions: Path | None, database: str | None, host: str, port: int, url: str | None) -> None:
    """Start the web page for annotators."""
    from counterfoil.pipeline.verifying import administrator_link, begin_verification, serve_verification
    from counterfoil.verify.address import address_at
    from counterfoil.verify.serving import listening

    address_at(host, port, url)  # a fault in it is told before anything begins
    verification = begin_verification(workspace, database, questions)
    with listening(host, port) as bound:
        address = address_at(host, bound.getsockname()[1], url)
        for line in address_words(address, administrator_link(verification.desk(address)), verification.counts):
            click.echo(line)
        serve_verification(verification, address, bound)


@verify.command()
@_folder
@click.argument("names", nargs=-1, required=True)
@click.option("--role", type=click.Choice(["annotator", "admin"]), default="annotator", show_default=True,
              help="What the link lets its holder do.")  # fmt: skip
@click.option("--days", type=_Days(0, 366, min_open=True), default=30, show_default=True,
              help="How long the link works.")  # fmt: skip
@click.option("--port", type=click.IntRange(1, 65535), default=8642, show_default=True,
              help="The port that the page is served on.")  # fmt: skip
@_url
@_database
def invite(workspace: Path, names: tuple[str, ...], database: str | None, **options: Any) -> None:
    """Make a link for each name; a name that is known gets a new one in place of the old."""
    from counterfoil.pipeline.verifying import open_verification
    from counterfoil.verify.address import address_at

    address = address_at("127.0.0.1", options["port"], options["url"])
    desk = open_verification(workspace, database).desk(address)
    for name in names:
        click.echo(f"{name}: {desk.invite(name, options['role'], options['days'])}")


@verify.command()
@_folder
@_database
def status(workspace: Path, database: str | None) -> None:
    """Say how far verification is, how far people agree, and how each does on the controls."""
    from counterfoil.pipeline.verifying import open_verification, summary_of

    for line in status_lines(summary_of(open_verification(workspace, database))):
        click.echo(line)


@verify.command()
@_folder
@click.option("--rule", type=click.Choice(RULES), default="majority", show_default=True, help="How answers decide.")
@click.option("--fewest", type=int, help="Answers that a picture needs [default: the annotators per picture].")
@click.option("--certainty", type=float, help="What dawid-skene has to believe [default: 0.5].")
@click.option("--least-control-accuracy", "control_accuracy", type=float, help="Leave out annotators below this share.")
@click.option("--least-consistency", "repeat_consistency", type=float, help="The same for repeated pictures.")
@click.option("--least-seconds", "seconds", type=click.FloatRange(0), help="The same for the median time per answer.")
@_database
def decide(
    workspace: Path, database: str | None, rule: Any, fewest: int | None, certainty: float | None, **least: Any
) -> None:
    """Decide which pictures people confirm, and keep that in the workspace."""
    from counterfoil.pipeline.verifying import decide, open_verification

    if certainty is not None and rule != "dawid-skene":
        raise UserError(f"expected --certainty with --rule dawid-skene, got it with {rule}, which looks at none")
    verification = open_verification(workspace, database)
    enough = _enough(fewest, verification.questionnaire.annotators)
    chosen = DecisionRule(rule, enough, 0.5 if certainty is None else certainty)
    decided = decide(verification, chosen, Exclusion(**least))
    for line in decided_lines(decided.verified, decided.asked, decided.excluded, decided.adjudicated):
        click.echo(line)


def _enough(fewest: int | None, annotators: int) -> int:
    """The answers that a picture needs; more than it can get would decide nothing."""
    if fewest is not None and fewest > annotators:
        raise UserError(f"expected --fewest of at most {annotators}, the annotators per picture, got {fewest}")
    return annotators if fewest is None else fewest


@verify.command()
@_folder
@click.option("--run", "runs", multiple=True, type=click.Path(path_type=Path), help="A run over the workspace.")
def changed(workspace: Path, runs: tuple[Path, ...]) -> None:
    """Say what verification changed: accuracies and drops with and without it."""
    for line in changed_by_verification(Workspace(workspace), runs).lines:
        click.echo(line)


@verify.command()
@_folder
@click.option("--format", "form", type=click.Choice(FORMS), default="csv", show_default=True, help="How to write them.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The file to write.")
@_database
def export(workspace: Path, form: str, out: Path, database: str | None) -> None:
    """Write every answer to a file."""
    from counterfoil.pipeline.verifying import export_verdicts, open_verification, recorded_verification

    # Label Studio's tasks name pictures; bare answers come out whatever became of those
    opened = open_verification if form == "label-studio" else recorded_verification
    click.echo(export_verdicts(opened(workspace, database), form, out))


@verify.command(name="import")
@_folder
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@_database
def import_(workspace: Path, files: tuple[Path, ...], database: str | None) -> None:
    """Take in answers from CSV, JSON, Label Studio's JSON, or what an offline package saved."""
    from counterfoil.pipeline.verifying import import_file, open_verification

    verification = open_verification(workspace, database)
    for path in files:
        found = import_file(verification, path)
        click.echo(f"{path}: {found.taken} answers taken in")
        for reason, count in found.left_out.items():
            click.echo(f"  {count} left out: they {reason}")


@verify.command()
@_folder
@click.argument("name")
@click.option("--count", type=click.IntRange(1), default=200, show_default=True, help="Most pictures in the package.")
@click.option("--days", type=_Days(0, 366, min_open=True), default=30, show_default=True,
              help="How long the pictures wait for this person.")  # fmt: skip
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The zip to write.")
@_database
def package(workspace: Path, name: str, out: Path, database: str | None, **options: Any) -> None:
    """Write a zip for an annotator without access to the page."""
    from counterfoil.pipeline.verifying import open_verification, package

    count = package(open_verification(workspace, database), name, options["count"], options["days"], out)
    click.echo(f"{out}: {count} pictures for {name}; take the answers in with `counterfoil verify import`")
