"""Packages of the diffusion extra, imported when a painter asks for them."""

from __future__ import annotations

import importlib
from typing import Any

from counterfoil.errors import UserError, how_to_install

_EXTRA = "diffusion"


def required(module: str) -> Any:
    """The module, or one line that says what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"expected the package '{error.name}', which is not installed; run: {how_to_install(_EXTRA)}"
        ) from error
    except (ImportError, OSError, RuntimeError) as error:
        line = " ".join(str(error).split())[:160]
        raise UserError(
            f"expected the package '{module}' to load, but it does not: {line};"
            f" run: {how_to_install(_EXTRA, '--upgrade ')}"
        ) from error
