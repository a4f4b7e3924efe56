"""Packages that the core install lacks, imported where they are first needed.

torch alone takes seconds to import and gigabytes to install, and most commands never need it.
"""

from __future__ import annotations

import importlib
from typing import Any

from counterfoil.errors import UserError, how_to_install


def required(module: str, extra: str) -> Any:
    """The module, or one line that says which extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"expected the package '{error.name}', which is not installed; run: {how_to_install(extra)}"
        ) from error
    except (ImportError, OSError, RuntimeError) as error:
        line = " ".join(str(error).split())[:160]
        raise UserError(
            f"expected the package '{module}' to load, but it does not: {line}; torch and what is built for it must be"
            f" of matching versions: {how_to_install(extra, '--upgrade ')}"
        ) from error
