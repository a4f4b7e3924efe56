"""What every command has: `--json`, `-q` and `-v`; where its lines, its document, its log and its progress go."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from counterfoil.cli.path_option import PATH
from counterfoil.errors import UserError
from counterfoil.store.folder_mirror import describe_place, name_addresses

Command = TypeVar("Command", bound=Callable[..., Any])
OUTPUT_FORMAT = 1  # of the documents; raised when a key changes its meaning or is removed
_META = "counterfoil.output"
_STDOUT = "-"
ALIASES = {  # commands as they were called before they had a group
    "convert": "photos convert", "diff": "benchmark diff", "leaderboard": "benchmark leaderboard",
    "masks review": "photos review", "merge": "shards merge", "quality": "pictures quality",
    "rebuild": "pictures rebuild", "status": "shards status",
}  # fmt: skip
# Commands whose lines are all that they are for: -q leaves them.
_ANSWERS = frozenset(
    {
        "analyse prompts", "analyse run", "benchmark diff", "benchmark leaderboard", "compare", "list", "models check",
        "photos review", "plan", "shards status", "verify changed", "verify invite", "verify serve", "verify status",
        "version",
    }
)  # fmt: skip


@dataclasses.dataclass
class CommandOutput:
    """How one call of a command tells what it did."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    stdout: TextIO | None = None  # where the document goes, while a command writes JSON

    @contextmanager
    def opened(self, name: str) -> Iterator[None]:
        """Send lines, log and progress where the options say, while the command works."""
        with ExitStack() as stack:
            stack.enter_context(_log_to_stderr(self))
            if self.quiet:
                from counterfoil.progress import hide_progress  # the help must not wait for it

                stack.enter_context(hide_progress())
            if self.as_json:
                self.stdout = sys.stdout
                silent = self.quiet or name in _ANSWERS  # the document says the same
                stack.enter_context(redirect_stdout(_Nowhere() if silent else sys.stderr))
            elif self.quiet and name not in _ANSWERS:
                stack.enter_context(redirect_stdout(_Nowhere()))
            yield


class _Nowhere:
    """A stream that drops everything."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Drop a text."""
        return len(text)

    def flush(self) -> None:
        """Nothing is kept."""

    def isatty(self) -> bool:
        """Nobody looks."""
        return False


@contextmanager
def _log_to_stderr(output: CommandOutput) -> Iterator[None]:
    """Show what the package logs: notes, with -v every stage with its time, with -q only warnings."""
    logger, handler = logging.getLogger("counterfoil"), logging.StreamHandler(sys.stderr)
    level, before = logging.DEBUG if output.verbose else logging.INFO, logger.level
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s" if output.verbose else "%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if output.quiet else level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def current_output() -> CommandOutput:
    """The output of the command that is being called."""
    output: CommandOutput = click.get_current_context().meta.setdefault(_META, CommandOutput())
    return output


def wants_json() -> bool:
    """Whether the command prints a document instead of lines."""
    return current_output().as_json


def emit(document: Mapping[str, Any]) -> None:
    """Print the document of the current command where `--json` asks for it; keys as in output.schema.json."""
    output = current_output()
    if output.as_json:
        whole = {"format": OUTPUT_FORMAT, "command": _command_name(click.get_current_context()), **document}
        click.echo(json.dumps(to_plain(whole), indent=1, ensure_ascii=False, allow_nan=False), file=output.stdout)


def to_plain(value: Any) -> Any:
    """A record as JSON values: paths as text, null where there is no number."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return to_plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): to_plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(member) for member in value]
    if isinstance(value, Path):
        return describe_place(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def add_output_options(command: click.Command) -> click.Command:
    """Give a command --json, -q and -v, once; a group passes them on to its own commands."""
    if isinstance(command, click.Group) or any(parameter.name == "quiet" for parameter in command.params):
        return command
    known = {name for parameter in command.params for name in parameter.opts}
    options = (
        click.Option(["--json", "as_json"], is_flag=True, expose_value=False, callback=_set,
                     help="Print one JSON document; lines go to standard error."),
        click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, callback=_set,
                     help="No progress, and no lines but warnings and errors."),
        click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, callback=_set,
                     help="Log every stage with its time to standard error."),
    )  # fmt: skip
    command.params.extend(option for option in options if option.opts[0] not in known)
    callback = command.callback
    assert callback is not None  # only groups have none

    @wraps(callback)
    def call(*arguments: Any, **values: Any) -> Any:
        output = current_output()
        with output.opened(_command_name(click.get_current_context())):
            try:
                return callback(*arguments, **values)
            except UserError as error:
                error.args = (name_addresses(str(error)),)
                emit({"error": str(error)})
                raise

    command.callback = call
    return command


def json_file_option(help_text: str) -> Callable[[Command], Command]:
    """`--json` prints the document, `--json FILE` writes it."""
    return click.option(
        "--json", "json_file", is_flag=False, flag_value=_STDOUT, type=PATH,
        callback=_take_file, help=help_text, metavar="[FILE]",
    )  # fmt: skip


def _set(context: click.Context, option: click.Parameter, value: bool) -> None:
    output = context.meta.setdefault(_META, CommandOutput())
    setattr(output, str(option.name), bool(value))


def _take_file(context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    if value is None or str(value) != _STDOUT:
        return value
    context.meta.setdefault(_META, CommandOutput()).as_json = True
    return None


def _command_name(context: click.Context) -> str:
    """The words after `counterfoil`, those of today where an old name was typed."""
    name = " ".join(context.command_path.split()[-_depth(context) :])
    return ALIASES.get(name, name)


def _depth(context: click.Context) -> int:
    return 0 if context.parent is None else 1 + _depth(context.parent)
