"""The database schema: every table and column, as the newest Alembic revision leaves them."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

project = sa.Table(
    "project", metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("workspace_digest", sa.String(64), nullable=False),
    sa.Column("questionnaire", sa.Text, nullable=False),  # JSON
    sa.Column("began_at", sa.Float, nullable=False),
)  # fmt: skip

pictures = sa.Table(
    "pictures", metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("variant_id", sa.String(200), nullable=False),
    sa.Column("original_id", sa.String(200)),  # the original shown beside it, where the questionnaire asks for it
    sa.Column("label", sa.Text, nullable=False),  # the class it is shown under: a wrong one for a bad control
    sa.Column("role", sa.String(10), nullable=False),  # work, good, bad
    sa.Column("shuffle", sa.BigInteger, nullable=False),  # determines each annotator's order
    sa.Column("wanted", sa.Integer, nullable=False),  # annotators
    sa.Column("taken", sa.Integer, nullable=False),  # open or done assignments of it
    sa.UniqueConstraint("variant_id"),
    sa.CheckConstraint("taken >= 0 AND taken <= wanted", name="never_beyond_n"),
    sa.Index("pictures_open", "role", "taken"),
)  # fmt: skip

people = sa.Table(
    "people", metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("role", sa.String(10), nullable=False),  # annotator, admin
    sa.Column("nonce", sa.String(64), nullable=False),  # a new one invalidates older links
    sa.Column("invited_at", sa.Float, nullable=False),
    sa.Column("link_expires_at", sa.Float, nullable=False),
    sa.Column("seen_at", sa.Float),
    sa.Column("revoked_at", sa.Float),
    sa.Column("excluded", sa.Integer, nullable=False),  # 1 where the answers do not count
    sa.Column("reason", sa.Text, nullable=False),
)  # fmt: skip

sessions = sa.Table(
    "sessions", metadata,
    sa.Column("token_hash", sa.String(64), primary_key=True),
    sa.Column("person_id", sa.ForeignKey("people.id"), nullable=False),
    sa.Column("began_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
)  # fmt: skip

assignments = sa.Table(
    "assignments", metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("person_id", sa.ForeignKey("people.id"), nullable=False),
    sa.Column("picture_id", sa.ForeignKey("pictures.id"), nullable=False),
    sa.Column("kind", sa.String(10), nullable=False),  # work, good, bad, repeat
    sa.Column("task", sa.String(64), nullable=False, unique=True),  # its handle in the annotator's browser
    sa.Column("picture_handle", sa.String(64), nullable=False, unique=True),
    sa.Column("original_handle", sa.String(64), nullable=False, unique=True),
    sa.Column("state", sa.String(10), nullable=False),  # open, done, expired, withdrawn
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.UniqueConstraint("person_id", "picture_id", "kind"),
    sa.Index("assignments_expiring", "state", "expires_at"),
    sa.Index("assignments_of_picture", "picture_id"),
)  # fmt: skip

submissions = sa.Table(  # append-only
    "submissions", metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("assignment_id", sa.ForeignKey("assignments.id"), nullable=False),
    sa.Column("person_id", sa.ForeignKey("people.id"), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("key", sa.String(100), nullable=False),  # chosen by the browser, so that a repeated request counts once
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("given_at", sa.Float, nullable=False),
    sa.UniqueConstraint("assignment_id", "version"),
    sa.UniqueConstraint("person_id", "key"),
)  # fmt: skip

answers = sa.Table(  # append-only
    "answers", metadata,
    sa.Column("submission_id", sa.ForeignKey("submissions.id"), primary_key=True),
    sa.Column("question", sa.String(40), primary_key=True),
    sa.Column("answer", sa.String(60), nullable=False),
)  # fmt: skip

adjudications = sa.Table(  # append-only: the last one counts
    "adjudications", metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("picture_id", sa.ForeignKey("pictures.id"), nullable=False),
    sa.Column("person_id", sa.ForeignKey("people.id"), nullable=False),
    sa.Column("question", sa.String(40), nullable=False),
    sa.Column("answer", sa.String(60), nullable=False),
    sa.Column("given_at", sa.Float, nullable=False),
    sa.Index("adjudications_of_picture", "picture_id"),
)  # fmt: skip
