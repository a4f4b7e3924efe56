"""Alembic's revisions of the verification database."""
