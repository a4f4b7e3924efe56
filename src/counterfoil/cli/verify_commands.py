"""The command `verify` and its subcommands.

The web framework and the database come with the extra `web`, so their modules are imported when a command runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from counterfoil.cli.command_group import Commands
from counterfoil.cli.command_output import emit
from counterfoil.cli.path_option import PATH
from counterfoil.errors import UserError
from counterfoil.plugins import check_web_extra
from counterfoil.report.words import ABSENT as _ABSENT
from counterfoil.report.words import format_number, pluralize
from counterfoil.statistics.annotators import RULES, UNDECIDED, DecisionRule, ExclusionRule
from counterfoil.store.workspace import Workspace
from counterfoil.types import VerificationResult
from counterfoil.verification.accuracy_change import measure_effect

if TYPE_CHECKING:
    from counterfoil.verification.server_address import Address


_MEASURES = {
    "percent_agreement": "percent", "cohen_kappa": "Cohen's kappa", "fleiss_kappa": "Fleiss' kappa",
    "krippendorff_alpha": "Krippendorff's alpha",
}  # fmt: skip


def describe_server(address: Address, link: str, counts: Mapping[str, int]) -> Iterator[str]:
    """What the person who starts the server has to know."""
    yield f"pictures: {counts['work']}; hidden controls: {counts['good']} known good, {counts['bad']} known bad"
    if not counts["good"] or not counts["bad"]:
        yield (
            "  known good controls are originals, known bad ones pictures under a class that they clearly do not show;"
            " the workspace has no pictures for a kind with 0"
        )
    yield f"administrator (whoever has this link is let in): {link}"
    yield "  open it and invite annotators there, or by `counterfoil verify invite WORKSPACE NAME...`"
    proxy = f", for the TLS proxy of {address.url}" if address.is_encrypted else ""
    yield f"listening on {address.host}:{address.port}{proxy}"
    if address.is_public and not address.is_encrypted:
        yield f"WARNING: {address.url} is not encrypted: links and answers can be read in transit"
    if not address.is_encrypted:
        yield (
            "for annotators on other machines: put a TLS proxy (Caddy, nginx) before this port and give its address,"
            " such as --url https://verify.example.org; docs/verify.md shows how"
        )
    yield "Ctrl-C stops the server; the same command starts it again"


def describe_status(summary: Mapping[str, Any]) -> Iterator[str]:
    """Progress, agreement, people."""
    progress, decisions = summary["progress"], summary["decisions"]
    yield f"answers: {progress['done']} of {progress['total']}"
    yield f"pictures with all their answers: {progress['finished']} of {progress['pictures']}"
    yield (
        f"by majority: kept {decisions['kept']} of {progress['pictures']} pictures; dropped {decisions['dropped']},"
        f" undecided {decisions['undecided']}, too few answers {decisions['too_few']}"
    )
    yield from _describe_agreement(summary["agreement"])
    for person in summary["annotators"]:
        controls = f"controls right {_format_share(person['control_accuracy'])} of {person['controls']}"
        repeats = f"repeats answered the same {_format_share(person['repeat_consistency'])} of {person['repeats']}"
        median = _format_seconds(person["median_seconds"])
        out = f"; left out: {person['reason']}" if person["excluded"] else ""
        yield f"{person['name']}: {person['done']} answered, median {median}, {controls}, {repeats}{out}"
    yield f"disagreements: {summary['disagreement_count']}"


def describe_decisions(
    verified: VerificationResult, pictures: int, excluded: Mapping[str, str], adjudicated: int
) -> Iterator[str]:
    """What was decided, by which rule and whose answers."""
    kept = sum(decision.kept for decision in verified.decisions)
    undecided = sum(UNDECIDED in decision.decided.values() for decision in verified.decisions)
    yield f"rule: {verified.rule}; {pluralize(verified.annotators, 'annotator')}"
    decided = len(verified.decisions)
    few = pictures - decided
    yield (
        f"kept {kept} of {pictures} pictures; dropped {decided - kept - undecided}, undecided {undecided},"
        f" too few answers {few}{' (wait for more, or decide on fewer by --fewest N)' if few else ''}"
    )
    if adjudicated:
        yield f"decided by an administrator: {pluralize(adjudicated, 'question')}"
    for name, reason in excluded.items():
        yield f"left out: {name}, {reason}"
    yield from _describe_agreement(verified.agreement)
    for doubt in verified.doubts:
        yield f"WARNING: {doubt}"


def _describe_agreement(agreement: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for question, values in agreement.items():
        measures = [f"{words} {_format_measure(values, name)}" for name, words in _MEASURES.items()]
        yield f"agreement on '{question}' over {values['pictures']:g} pictures: {', '.join(measures)}"
        if any(line.endswith(_ABSENT) for line in measures):
            yield f"  {_ABSENT}: cannot be computed, since all answers are the same or too few pictures have two"
        if any(line.endswith("(no interval)") for line in measures):
            yield "  no interval: too few pictures, or one of them decides the measure"


def _format_measure(values: Mapping[str, Any], name: str) -> str:
    """A measure with its interval."""
    ends = (values[name + end] for end in ("", "_low", "_high"))
    value, low, high = (_ABSENT if end is None else format_number(end, 2) for end in ends)
    if value == _ABSENT:
        return value
    return f"{value} (no interval)" if _ABSENT in (low, high) else f"{value} [{low}, {high}]"


def _format_seconds(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.1f} s" if value >= 1 else f"{value:.2f} s"


def _format_share(value: float | None) -> str:
    return _ABSENT if value is None or value != value else f"{100 * value:.0f} %"


_FORMS = ("csv", "json", "label-studio", "label-studio-setup")


class _Days(click.FloatRange):
    """A number of days; unlike `FloatRange`, refuses `nan`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, if it is one."""
        days = super().convert(value, param, ctx)
        return days if days == days else self.fail(f"{value} is not in the range {self.min}<x<={self.max}.", param)


_folder = click.argument("workspace", type=PATH)
_database = click.option(
    "--database", envvar="COUNTERFOIL_DATABASE", help="postgresql://... [default: a SQLite file in the workspace]."
)
_url = click.option("--url", help="The address that annotators use, such as https://verify.example.org.")


class _Command(click.Command):
    """A command that needs the extra `web`, though its help does not."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it if everything that it needs is installed."""
        check_web_extra()
        return super().invoke(ctx)


class _VerifyGroup(Commands):
    command_class = _Command


@click.group(cls=_VerifyGroup)
def verify() -> None:
    """Let people confirm the pictures of a workspace."""


@verify.command()
@_folder
@click.option("--questions", type=PATH,
              help="YAML or JSON [default: two questions, three annotators per picture].")  # fmt: skip
@_database
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True,
              help="Port to listen on; 0 takes a free one.")  # fmt: skip
@_url
def serve(workspace: Path, questions: Path | None, database: str | None, host: str, port: int, url: str | None) -> None:
    """Start the web page for annotators."""
    from counterfoil.verification.app import create_app, create_server
    from counterfoil.verification.project import begin_verification
    from counterfoil.verification.server_address import open_listener, resolve_address
    from counterfoil.verification.service import VerificationService

    resolve_address(host, port, url)  # refuse a bad one before anything begins
    verification = begin_verification(workspace, database, questions)
    with open_listener(host, port) as listener:
        service = VerificationService(verification, resolve_address(host, listener.getsockname()[1], url))
        for line in describe_server(service.address, service.administrator_link(), verification.count_roles()):
            click.echo(line)
        emit({"link": service.administrator_link(), "url": service.address.url, "host": service.address.host,
              "port": service.address.port, "pictures": verification.count_roles()})  # fmt: skip
        create_server(create_app(service), service.address).run([listener])


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
    from counterfoil.verification.project import open_verification
    from counterfoil.verification.server_address import resolve_address
    from counterfoil.verification.service import VerificationService

    address = resolve_address("127.0.0.1", options["port"], options["url"])
    service = VerificationService(open_verification(workspace, database), address)
    links = {name: service.invite(name, options["role"], options["days"]) for name in names}
    for name, link in links.items():
        click.echo(f"{name}: {link}")
    emit({"links": links})


@verify.command()
@_folder
@_database
def status(workspace: Path, database: str | None) -> None:
    """Say how far verification is, how far people agree, and how each does on the controls."""
    from counterfoil.verification.admin_summary import summarize
    from counterfoil.verification.project import open_verification

    summary = summarize(open_verification(workspace, database))
    for line in describe_status(summary):
        click.echo(line)
    emit(summary)


@verify.command()
@_folder
@click.option(
    "--rule", type=click.Choice(RULES), default="majority", show_default=True, help="How answers decide on a picture."
)
@click.option("--fewest", type=int, help="Answers that a picture needs [default: the annotators per picture].")
@click.option("--certainty", type=float, help="Probability that dawid-skene must give to an answer [default: 0.5].")
@click.option("--least-control-accuracy", "control_accuracy", type=float, help="Leave out annotators below this share.")
@click.option("--least-consistency", "repeat_consistency", type=float, help="The same for repeated pictures.")
@click.option("--least-seconds", "seconds", type=click.FloatRange(0), help="The same for the median time per answer.")
@_database
def decide(
    workspace: Path, database: str | None, rule: Any, fewest: int | None, certainty: float | None, **least: Any
) -> None:
    """Decide which pictures people confirm, and write that to the workspace."""
    from counterfoil.verification.decision import decide
    from counterfoil.verification.project import open_verification

    if certainty is not None and rule != "dawid-skene":
        raise UserError(f"expected --certainty with --rule dawid-skene, got it with {rule}, which does not use it")
    verification = open_verification(workspace, database)
    annotators = verification.questionnaire.annotators
    if fewest is not None and fewest > annotators:
        raise UserError(f"expected --fewest of at most {annotators}, the annotators per picture, got {fewest}")
    chosen = DecisionRule(rule, annotators if fewest is None else fewest, 0.5 if certainty is None else certainty)
    verified, pictures, excluded, adjudicated = decide(verification, chosen, ExclusionRule(**least))
    for line in describe_decisions(verified, pictures, excluded, adjudicated):
        click.echo(line)
    emit({"pictures": pictures, "kept": sum(row.kept for row in verified.decisions), "adjudicated": adjudicated,
          "excluded": excluded, "verified": verified})  # fmt: skip


@verify.command()
@_folder
@click.option("--run", "runs", multiple=True, type=PATH, help="A run over the workspace.")
def changed(workspace: Path, runs: tuple[Path, ...]) -> None:
    """Say what verification changed: accuracies and drops with and without it."""
    effect = measure_effect(Workspace(workspace), runs)
    for line in effect.lines:
        click.echo(line)
    emit({"kept": effect.kept, "changes": effect.changes, "waiting": effect.waiting})


@verify.command()
@_folder
@click.option(
    "--format", "form", type=click.Choice(_FORMS), default="csv", show_default=True, help="How to write them."
)
@click.option("--out", required=True, type=PATH, help="The file to write.")
@_database
def export(workspace: Path, form: str, out: Path, database: str | None) -> None:
    """Write every answer to a file."""
    from counterfoil.verification.project import open_verification, open_verification_unchecked
    from counterfoil.verification.verdict_export import export_verdicts

    # Label Studio's tasks name pictures; bare answers can be exported even where the pictures have changed
    open_any = open_verification if form == "label-studio" else open_verification_unchecked
    click.echo(export_verdicts(open_any(workspace, database), form, out))
    emit({"file": out.absolute(), "form": form})


@verify.command(name="import")
@_folder
@click.argument("files", nargs=-1, required=True, type=PATH)
@_database
def import_(workspace: Path, files: tuple[Path, ...], database: str | None) -> None:
    """Import answers from CSV, JSON, Label Studio's JSON, or what an offline package saved."""
    from counterfoil.verification.project import open_verification
    from counterfoil.verification.verdict_import import import_file

    verification = open_verification(workspace, database)
    imported = []
    for path in files:
        result = import_file(verification, path)
        imported.append({"file": path.absolute(), "imported": result.imported, "left_out": result.left_out})
        click.echo(f"{path}: {result.imported} answers imported")
        for reason, count in result.left_out.items():
            click.echo(f"  {count} left out: they {reason}")
    emit({"files": imported})


@verify.command()
@_folder
@click.argument("name")
@click.option("--count", type=click.IntRange(1), default=200, show_default=True, help="Most pictures in the package.")
@click.option("--days", type=_Days(0, 366, min_open=True), default=30, show_default=True,
              help="How long the pictures wait for this person.")  # fmt: skip
@click.option("--out", required=True, type=PATH, help="The zip to write.")
@_database
def package(workspace: Path, name: str, out: Path, database: str | None, **options: Any) -> None:
    """Write a zip for an annotator without access to the page."""
    from counterfoil.verification.offline_package import write_package
    from counterfoil.verification.project import open_verification

    count = write_package(open_verification(workspace, database), name, options["count"], options["days"], out)
    click.echo(f"{out}: {count} pictures for {name}; import the answers with `counterfoil verify import`")
    emit({"file": out.absolute(), "name": name, "pictures": count})
