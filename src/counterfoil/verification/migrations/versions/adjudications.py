"""Second revision: the administrators' answers to disagreements."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    """Create the table of adjudications."""
    op.create_table(
        "adjudications",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("picture_id", sa.Integer, sa.ForeignKey("pictures.id"), nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("question", sa.String(40), nullable=False),
        sa.Column("answer", sa.String(60), nullable=False),
        sa.Column("given_at", sa.Float, nullable=False),
    )
    op.create_index("adjudications_of_picture", "adjudications", ["picture_id"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("adjudications")
