"""Paths on the command line, checked before anything is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.errors import is_circular


class PathType(click.Path):
    """A path; an empty text, as an unset variable of a shell gives, names no place and not the current folder."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; a usage error where there is none."""
        if not str(value).strip() or "\0" in str(value):
            self.fail("expected a path, got an empty text or one with a null character", param, ctx)
        if is_circular(Path(value)):
            self.fail(f"the link '{value}' leads in a circle", param, ctx)
        return super().convert(value, param, ctx)


PATH = PathType(path_type=Path)
