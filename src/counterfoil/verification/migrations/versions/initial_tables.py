"""First revision: every table but the adjudications."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Create the tables."""
    _project()
    _people()
    _assignments()
    _answers()


def downgrade() -> None:
    """Drop the tables."""
    for table in ("answers", "submissions", "assignments", "sessions", "people", "pictures", "project"):
        op.drop_table(table)


def _project() -> None:
    op.create_table(
        "project",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("workspace_digest", sa.String(64), nullable=False),
        sa.Column("questionnaire", sa.Text, nullable=False),
        sa.Column("began_at", sa.Float, nullable=False),
    )
    op.create_table(
        "pictures",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("variant_id", sa.String(200), nullable=False),
        sa.Column("original_id", sa.String(200)),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("shuffle", sa.BigInteger, nullable=False),
        sa.Column("wanted", sa.Integer, nullable=False),
        sa.Column("taken", sa.Integer, nullable=False),
        sa.UniqueConstraint("variant_id"),
        sa.CheckConstraint("taken >= 0 AND taken <= wanted", name="never_beyond_n"),
    )
    op.create_index("pictures_open", "pictures", ["role", "taken"])


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("nonce", sa.String(64), nullable=False),
        sa.Column("invited_at", sa.Float, nullable=False),
        sa.Column("link_expires_at", sa.Float, nullable=False),
        sa.Column("seen_at", sa.Float),
        sa.Column("revoked_at", sa.Float),
        sa.Column("excluded", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("began_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
    )


def _assignments() -> None:
    op.create_table(
        "assignments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("picture_id", sa.Integer, sa.ForeignKey("pictures.id"), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("task", sa.String(64), nullable=False, unique=True),
        sa.Column("picture_handle", sa.String(64), nullable=False, unique=True),
        sa.Column("original_handle", sa.String(64), nullable=False, unique=True),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.UniqueConstraint("person_id", "picture_id", "kind"),
    )
    op.create_index("assignments_expiring", "assignments", ["state", "expires_at"])
    op.create_index("assignments_of_picture", "assignments", ["picture_id"])


def _answers() -> None:
    op.create_table(
        "submissions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("assignment_id", sa.Integer, sa.ForeignKey("assignments.id"), nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("key", sa.String(100), nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("given_at", sa.Float, nullable=False),
        sa.UniqueConstraint("assignment_id", "version"),
        sa.UniqueConstraint("person_id", "key"),
    )
    op.create_table(
        "answers",
        sa.Column("submission_id", sa.Integer, sa.ForeignKey("submissions.id"), primary_key=True),
        sa.Column("question", sa.String(40), primary_key=True),
        sa.Column("answer", sa.String(60), nullable=False),
    )
