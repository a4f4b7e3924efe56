"""Debian's PostgreSQL on a temporary folder, as a user that is not root: it refuses to run as root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of a fresh server that listens on a socket file only; it is stopped at the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-postgres-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    data = folder / "data"
    try:
        _run("initdb", "--pgdata", data, "--username", "tester", "--auth", "trust", "--no-sync", "--encoding", "UTF8")
        # durable as it comes: an acknowledged answer has to survive
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=120"
        # long: by itself it waits a minute, which a machine with other work may need
        _run("pg_ctl", "--pgdata", data, "--log", folder / "log", "--timeout", 300, "--options", options, "start")
        yield f"postgresql://tester@/postgres?host={folder}"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):  # it may not have come up
            _run("pg_ctl", "--pgdata", data, "--mode", "immediate", "--wait", "stop")
        shutil.rmtree(folder)


def fresh_database(url: str, name: str) -> str:
    """An empty database of that server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return url.replace("/postgres?", f"/{name}?")


def _run(program: str, *arguments: object) -> None:
    binary = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))[-1]
    asked = [str(binary), *map(str, arguments)]
    subprocess.run([*_as_another(), *asked], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


def _as_another() -> Sequence[str]:
    return ("runuser", "-u", "postgres", "--") if os.getuid() == 0 else ()
