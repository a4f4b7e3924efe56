"""Every edit by its registered name, ours and those of other packages."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import TypeAdapter, ValidationError

from counterfoil.edit.background import BackgroundBlur, BackgroundPlain, BackgroundSwap
from counterfoil.edit.control import Control
from counterfoil.edit.direction import Direction
from counterfoil.edit.position import Position
from counterfoil.edit.presence import ObjectRemoved
from counterfoil.edit.size import Size
from counterfoil.errors import UserError
from counterfoil.types import AnyEdit

ENTRY_POINTS = "counterfoil.edits"  # the group in which another package names its edits

OURS: Mapping[str, type] = {
    "control": Control,
    "background-swap": BackgroundSwap,
    "background-plain": BackgroundPlain,
    "background-blur": BackgroundBlur,
    "object-removed": ObjectRemoved,
    "size": Size,
    "position": Position,
    "direction": Direction,
}


class _Catalogue(Mapping[str, type]):
    """The edits by name; other packages are imported when the first name is looked up, not before."""

    @cached_property
    def _classes(self) -> dict[str, type]:
        classes = dict(OURS)
        for entry in entry_points(group=ENTRY_POINTS):
            if entry.name in classes:
                raise UserError(
                    f"two edits are named {entry.name!r}, one of them {entry.value}: uninstall or rename one"
                )
            classes[entry.name] = _loaded(entry)
        return classes

    def __getitem__(self, name: str) -> type:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


def _loaded(entry: EntryPoint) -> type:
    kind = entry.load()
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise UserError(f"entry point {entry.name} = {entry.value}: expected a dataclass, got {kind!r}")
    return kind


EDITS: Mapping[str, type] = _Catalogue()


def edit_named(name: str, settings: Mapping[str, object]) -> AnyEdit:
    """The edit registered under `name`, with these settings."""
    if name not in EDITS:
        near = difflib.get_close_matches(name, EDITS, n=3, cutoff=0.4) or sorted(EDITS)
        raise UserError(f"no edit is named {name!r}; did you mean {' or '.join(near)}?")
    known = [field.name for field in dataclasses.fields(EDITS[name])]
    for key in settings:
        if key not in known:
            raise UserError(f"edit {name}: unknown setting {key!r}; expected {', '.join(known) or 'none'}")
    try:
        # By way of JSON, since there a list may be a tuple and 1 a float, but the text "1" is no number.
        return TypeAdapter[Any](EDITS[name]).validate_json(json.dumps(dict(settings)), strict=True)  # type: ignore[no-any-return]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][:1])
        raise UserError(f"edit {name}: setting {where}: {first['msg']}, got {settings.get(where)!r}") from None


def name_of(edit: AnyEdit) -> str:
    """The name under which the edit's class is registered."""
    for name, kind in EDITS.items():
        if type(edit) is kind:
            return name
    raise UserError(f"{type(edit).__name__} is not a registered edit; register it as an entry point of {ENTRY_POINTS}")


def settings_of(edit: AnyEdit) -> dict[str, object]:
    """The edit's settings, ready for JSON."""
    settings: dict[str, object] = json.loads(json.dumps(dataclasses.asdict(edit)))  # type: ignore[call-overload]
    return settings
