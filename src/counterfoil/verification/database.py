"""The database: opened, migrated to the newest schema, used in short transactions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from counterfoil.errors import UserError, how_to_install

_POOL_SIZE = 20  # connections kept open
_BUSY_SECONDS = 30  # that a SQLite writer waits for another writer
_PAGE_CACHE = 256  # KiB of each SQLite connection; the default of 2 MiB fills as answers come, 20 times over


class Database:
    """Short transactions: `reading` sees one state, `writing` is stored completely or not at all."""

    def __init__(self, url: str) -> None:
        self._engine = _create_engine(url)
        self._reader = self._engine.execution_options(reads_only=True)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only transaction."""
        with self._reader.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed at the end of the block, and rolled back where the block raises."""
        with self._engine.begin() as connection:
            yield connection

    def upgrade(self, revision: str = "head") -> None:
        """Upgrade the tables to this revision in one transaction, so an interrupted upgrade changes nothing."""
        try:
            with self.writing() as connection:
                command.upgrade(_alembic_config(connection), revision)
        except CommandError as error:
            raise UserError(
                f"expected a database of this version of Counterfoil, but {error}; install the version that made it"
            ) from error
        except DBAPIError as error:
            raise UserError(
                f"expected a database at {self}, which cannot be used: {_first_line(error)}; check the address,"
                " the permissions and the disk"
            ) from error

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def __str__(self) -> str:
        # without its options, which may hold a password too
        return self._engine.url.set(query={}).render_as_string(hide_password=True)


def open_database(url: str) -> Database:
    """Open the database at a URL, and upgrade its tables."""
    database = Database(url)
    database.upgrade()
    return database


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file."""
    return f"sqlite:///{path.resolve()}"


def _create_engine(text: str) -> Engine:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:  # ValueError where the port is not a number
        raise UserError(
            "expected a database URL such as postgresql://user:password@host/name or sqlite:////folder/file.sqlite"
        ) from error
    if url.get_backend_name() == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise UserError("expected a file in the database URL, such as sqlite:////folder/file.sqlite, got none")
        file = url.set(drivername="sqlite")
        return _configure_sqlite(create_engine(file, pool_size=_POOL_SIZE, max_overflow=_POOL_SIZE))
    if url.get_backend_name() != "postgresql":
        raise UserError(f"expected a database of sqlite or postgresql, got {url.get_backend_name()}")
    try:
        # tested before use: a server that restarted has closed the pooled connections
        return create_engine(
            url.set(drivername="postgresql+psycopg"), pool_size=_POOL_SIZE, max_overflow=_POOL_SIZE, pool_pre_ping=True
        )
    except ModuleNotFoundError as error:
        raise UserError(
            f"expected the package '{error.name}', which is not installed; run: {how_to_install('postgres')}"
        ) from error


def _configure_sqlite(engine: Engine) -> Engine:
    """Readers run beside one writer, writers wait for each other, and commits are on disk when they return."""

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        pragmas = (
            "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={_BUSY_SECONDS}000",
            f"cache_size=-{_PAGE_CACHE}",
        )  # fmt: skip
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # a writer locks at once: one that begins as a reader may be refused instead of waiting
        reads_only = connection.get_execution_options().get("reads_only")
        connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")

    return engine


def _alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _first_line(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())[:200]
