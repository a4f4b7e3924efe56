"""Packages of the extra `web`, which the core install lacks."""

from __future__ import annotations

import importlib

from counterfoil.errors import UserError, how_to_install

_NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "itsdangerous")


def check_installed() -> None:
    """Every package of the page and its database is there, or one line says what to install."""
    for module in _NEEDED:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise UserError(
                f"expected the package '{error.name}', which is not installed; run: {how_to_install('web')}"
            ) from error
