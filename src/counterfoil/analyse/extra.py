"""What the `stats` extra brings: scipy and statsmodels, imported only where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from counterfoil.errors import UserError, how_to_install


def from_stats(module: str, what: str) -> Any:
    """A module of the extra, or the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(f"expected {error.name} for {what}, got none; run: {how_to_install('stats')}") from error
