"""How Alembic reaches the database: by the connection, and within the transaction, that it is given."""

from __future__ import annotations

from alembic import context

from counterfoil.verify.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
