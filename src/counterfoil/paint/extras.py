"""Packages of the diffusion extra, imported when a painter asks for them."""

from __future__ import annotations

import importlib
from typing import Any

from counterfoil.errors import UserError

_INSTALL = "pip install 'counterfoil[diffusion]'"


def required(module: str) -> Any:
    """The module, or one line that says what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(f"expected the package '{error.name}', which is not installed; run: {_INSTALL}") from error
    except (ImportError, OSError, RuntimeError) as error:
        line = " ".join(str(error).split())[:160]
        raise UserError(
            f"expected the package '{module}' to load, but it does not: {line}; run: {_INSTALL} --upgrade"
        ) from error
