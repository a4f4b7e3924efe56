"""Options of a command read from a YAML file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import yaml
from click.core import ParameterSource

from counterfoil.cli.path_option import PATH
from counterfoil.errors import UserError, did_you_mean
from counterfoil.store.files import write_atomically

_OPTION = "--config"
_NULL = "tag:yaml.org,2002:null"


def _use_file(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """Take what the file says as the command's defaults, so that options on the command line win."""
    if path is not None:
        context.default_map = {**(context.default_map or {}), **read_config(path, context)}


config_option = click.option(
    _OPTION, type=PATH, callback=_use_file, is_eager=True, expose_value=False,
    help="YAML file with options by their names; those on the command line win.",
)  # fmt: skip


def read_config(path: Path, context: click.Context) -> dict[str, str | list[str]]:
    """The texts that a file gives for the parameters of a command, by the parameters' names.

    Raises:
        UserError: where the file cannot be read, names an option that the command has not, or gives one a bad value.
    """
    known = _parameters(context.command)
    values: dict[str, str | list[str]] = {}
    for key, node in _entries(path):
        parameter = known.get(key.replace("_", "-"))
        if parameter is None:
            near = did_you_mean(key.replace("_", "-"), known) or f"; known are {', '.join(known)}"
            raise UserError(f"{path}: expected options of `counterfoil {context.info_name}` as keys, got '{key}'{near}")
        name = str(parameter.name)
        if name in values:
            raise UserError(f"{path}: expected each option once, got '{key}' a second time")
        if node.tag != _NULL:
            values[name] = _checked(f"{path}: {key}", node, parameter, context)
    return values


RUN_FILE = "run.yaml"  # in a run's folder: the options of the command, to repeat it
_PLACES = ("images", "masks")  # options that are paths where they name a file that is there


def write_run_file(path: Path) -> Path:
    """Write the options of the current command that are not defaults as a file for `--config`."""
    context = click.get_current_context()
    options: dict[str, object] = {}
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        source = context.get_parameter_source(str(parameter.name))
        if value in (None, ()) or source is ParameterSource.DEFAULT or parameter.name == "out":
            continue
        key = parameter.opts[0].lstrip("-")
        options[key] = list(value) if isinstance(value, tuple) else _portable(str(parameter.name), value)
    return write_atomically(path, yaml.safe_dump(options, sort_keys=False, allow_unicode=True))


def _portable(name: str, value: object) -> object:
    """Paths of photos and masks in full, so that the file works from any folder."""
    if name in _PLACES and Path(str(value)).exists():
        return str(Path(str(value)).absolute())
    return value if isinstance(value, bool | int | float) else str(value)


def typed_arguments() -> list[str]:
    """The arguments of this process, a file of options replaced by what was taken from it."""
    context = click.get_current_context()
    typed = iter(sys.argv[1:])
    kept = []
    for argument in typed:
        if argument == _OPTION:
            next(typed)
        elif not argument.startswith(f"{_OPTION}="):
            kept.append(argument)
    return [*kept, *_taken_arguments(context)]


def _taken_arguments(context: click.Context) -> Iterator[str]:
    for parameter in context.command.params:
        if context.get_parameter_source(str(parameter.name)) is ParameterSource.DEFAULT_MAP:
            values = (context.default_map or {})[str(parameter.name)]
            for value in [values] if isinstance(values, str) else values:
                yield from (parameter.opts[0], value) if isinstance(parameter, click.Option) else (value,)


def _parameters(command: click.Command) -> Mapping[str, click.Parameter]:
    """By the keys that a file may use: `model` or `models`, `batch-size`."""
    chosen = [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Argument)
        or (isinstance(parameter, click.Option) and not parameter.hidden and parameter.opts[0] != _OPTION)
    ]
    by_option = {parameter.opts[0].lstrip("-").replace("_", "-"): parameter for parameter in chosen}
    return by_option | {str(parameter.name).replace("_", "-"): parameter for parameter in chosen}


def _entries(path: Path) -> list[tuple[str, yaml.Node]]:
    """Keys and values as they are written: `no` and 007 are words here, as on the command line."""
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"expected options in YAML, got {path}, which cannot be read: {error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UserError(f"expected options in YAML, got {path}: {' '.join(str(error).split())}") from error
    if not isinstance(root, yaml.MappingNode):
        raise UserError(f"expected lines such as 'recipe: attributes', got {path}, which holds no keys")
    return [(str(key.value), value) for key, value in root.value]


def _checked(where: str, node: yaml.Node, parameter: click.Parameter, context: click.Context) -> str | list[str]:
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not all(isinstance(member, yaml.ScalarNode) for member in nodes):
        raise UserError(f"{where}: expected a text or a number, got keys or lists within it; put JSON in quotes")
    texts = [str(member.value) for member in nodes]
    if not parameter.multiple and isinstance(node, yaml.SequenceNode):
        raise UserError(f"{where}: expected one value, got a list of {len(texts)}")
    values = texts if parameter.multiple else texts[0]
    try:
        parameter.type_cast_value(context, values)
    except click.BadParameter as error:
        raise UserError(f"{where}: {error.message.rstrip('.')}") from error
    return values
