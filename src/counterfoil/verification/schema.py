"""The database schema: every table and column, as the newest Alembic revision leaves them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

project = Table(
    "project", metadata,
    Column("id", Integer, primary_key=True),
    Column("workspace_digest", String(64), nullable=False),
    Column("questionnaire", Text, nullable=False),  # JSON
    Column("began_at", Float, nullable=False),
)  # fmt: skip

pictures = Table(
    "pictures", metadata,
    Column("id", Integer, primary_key=True),
    Column("variant_id", String(200), nullable=False),
    Column("original_id", String(200)),  # the original shown beside it, where the questionnaire asks for it
    Column("label", Text, nullable=False),  # the class it is shown under: a wrong one for a bad control
    Column("role", String(10), nullable=False),  # work, good, bad
    Column("shuffle", BigInteger, nullable=False),  # each annotator's order follows from it
    Column("wanted", Integer, nullable=False),  # annotators
    Column("taken", Integer, nullable=False),  # assignments of it that are open or done
    UniqueConstraint("variant_id"),
    CheckConstraint("taken >= 0 AND taken <= wanted", name="never_beyond_n"),
    Index("pictures_open", "role", "taken"),
)  # fmt: skip

people = Table(
    "people", metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("role", String(10), nullable=False),  # annotator, admin
    Column("nonce", String(64), nullable=False),  # a new one makes older links invalid
    Column("invited_at", Float, nullable=False),
    Column("link_expires_at", Float, nullable=False),
    Column("seen_at", Float),
    Column("revoked_at", Float),
    Column("excluded", Integer, nullable=False),  # 1 where the answers do not count
    Column("reason", Text, nullable=False),
)  # fmt: skip

sessions = Table(
    "sessions", metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("began_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("ended_at", Float),
)  # fmt: skip

assignments = Table(
    "assignments", metadata,
    Column("id", Integer, primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("picture_id", ForeignKey("pictures.id"), nullable=False),
    Column("kind", String(10), nullable=False),  # work, good, bad, repeat
    Column("task", String(64), nullable=False, unique=True),  # its name in the annotator's browser
    Column("picture_handle", String(64), nullable=False, unique=True),
    Column("original_handle", String(64), nullable=False, unique=True),
    Column("state", String(10), nullable=False),  # open, done, expired, withdrawn
    Column("expires_at", Float, nullable=False),
    UniqueConstraint("person_id", "picture_id", "kind"),
    Index("assignments_expiring", "state", "expires_at"),
    Index("assignments_of_picture", "picture_id"),
)  # fmt: skip

submissions = Table(  # appended to, never changed
    "submissions", metadata,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", ForeignKey("assignments.id"), nullable=False),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("key", String(100), nullable=False),  # chosen by the browser, so that sending twice counts once
    Column("seconds", Float, nullable=False),
    Column("given_at", Float, nullable=False),
    UniqueConstraint("assignment_id", "version"),
    UniqueConstraint("person_id", "key"),
)  # fmt: skip

answers = Table(  # appended to, never changed
    "answers", metadata,
    Column("submission_id", ForeignKey("submissions.id"), primary_key=True),
    Column("question", String(40), primary_key=True),
    Column("answer", String(60), nullable=False),
)  # fmt: skip

adjudications = Table(  # appended to, never changed: the last one counts
    "adjudications", metadata,
    Column("id", Integer, primary_key=True),
    Column("picture_id", ForeignKey("pictures.id"), nullable=False),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("question", String(40), nullable=False),
    Column("answer", String(60), nullable=False),
    Column("given_at", Float, nullable=False),
    Index("adjudications_of_picture", "picture_id"),
)  # fmt: skip
