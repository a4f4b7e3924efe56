"""Alembic environment."""

from __future__ import annotations

from alembic import context

from counterfoil.verification.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
