"""A user's own classes, read from a JSON file such as classes.json."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError

from counterfoil.errors import UserError
from counterfoil.labels.label_space import LabelSpace, imagenet1k

_EXAMPLE = '{"cat": ["n02123045", "n02123159"], "dog": {"ids": ["n02085620"], "name": "small dog"}}'


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    ids: tuple[str, ...] = ()
    name: str | None = None


class _Classes(RootModel[dict[str, _Entry | tuple[str, ...] | str] | tuple[str, ...]]):
    """Classes with the ids that count as each, or a plain list of classes."""


def read_class_file(path: Path) -> LabelSpace:
    """The label space that a JSON file describes."""
    try:
        classes = _Classes.model_validate(json.loads(path.read_text(encoding="utf-8"))).root
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError, ValidationError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise UserError(f"expected classes such as {_EXAMPLE} in {path}, got: {reason}") from error
    entries = {label: _entry(value) for label, value in classes.items()} if isinstance(classes, dict) else {}
    labels = tuple(classes)
    if len(set(labels)) < 2 or len(set(labels)) < len(labels):
        raise UserError(f"expected at least two classes, each once, in {path}, got {len(labels)}")
    names = tuple((entries[label].name if label in entries else None) or label for label in labels)
    return LabelSpace(path.name, labels, names, tuple(_accepted(entries.get(label, _Entry())) for label in labels))


def _entry(value: _Entry | tuple[str, ...] | str) -> _Entry:
    if isinstance(value, _Entry):
        return value
    return _Entry(ids=(value,) if isinstance(value, str) else value)


def _accepted(entry: _Entry) -> tuple[str, ...]:
    """The ids as the models' columns are named; an ImageNet class may be given by its English name."""
    known = imagenet1k()
    return tuple(known.resolve(text) if known.calls(text) else text for text in entry.ids)
