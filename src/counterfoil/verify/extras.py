"""Packages of the extra `web`, which the core install lacks."""

from __future__ import annotations

from counterfoil.extras import required

_NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "itsdangerous")


def check_installed() -> None:
    """Every package of the page and its database is there, or one line says what to install."""
    for module in _NEEDED:
        required(module, "web")
