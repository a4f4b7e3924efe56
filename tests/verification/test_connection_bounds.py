"""Slow, half-open and too many connections: others are served, memory and log stay small."""

from __future__ import annotations

import contextlib
import logging
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from counterfoil.verification.app import create_server
from counterfoil.verification.connection_bounds import ConnectionBounds, LogLimit
from counterfoil.verification.middleware import SecurityMiddleware
from counterfoil.verification.server_address import open_listener, resolve_address
from mining_workspace import write_workspace

HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"


@contextlib.contextmanager
def server(bounds: ConnectionBounds, body_seconds: float = 20.0) -> Iterator[int]:
    """A page that says "served", on a thread of this process; gives its port."""

    async def app(scope: object, receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b"served"})  # type: ignore[operator]

    with open_listener("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        address = resolve_address("127.0.0.1", port, None)
        guarded = SecurityMiddleware(app, address, body_seconds=body_seconds)
        running = create_server(guarded, address, bounds)
        thread = threading.Thread(target=running.run, args=([bound],))
        thread.start()
        try:
            yield port
        finally:
            running.should_exit = True
            thread.join()


def connect(port: int, source: str = "127.0.0.2") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=300, source_address=(source, 0))


def ending(line: socket.socket) -> bytes:
    """All that the server sends until it closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := line.recv(4096):
            received += part
    return received


def test_headers_that_do_not_come_end_the_connection_and_others_are_served() -> None:
    with server(ConnectionBounds(header_seconds=2.0)) as port:
        silent, begun, second = connect(port), connect(port), connect(port)
        begun.sendall(HEAD % port)
        second.sendall(HEAD % port + b"\r\n")
        assert second.recv(4096).startswith(b"HTTP/1.1 200")
        second.sendall(HEAD % port)  # a second request on the same connection, whose headers never end
        assert ending(silent) == ending(begun) == b""
        assert b"HTTP" not in ending(second)
        assert httpx2.get(f"http://127.0.0.1:{port}/").text == "served"


def test_a_body_that_does_not_come_is_answered_with_408() -> None:
    with server(ConnectionBounds(), body_seconds=0.2) as port:
        line = connect(port)
        line.sendall((HEAD % port).replace(b"GET", b"POST") + b"Content-Length: 10\r\n\r\nabc")
        assert ending(line).startswith(b"HTTP/1.1 408")


def test_half_open_connections_make_room_for_new_ones_the_oldest_first() -> None:
    with server(ConnectionBounds(most=16)) as port:
        held = [connect(port, f"127.0.0.{2 + number % 3}") for number in range(40)]  # more than there is room for
        for line in held:
            with contextlib.suppress(OSError):
                line.sendall(HEAD % port)
        for source in ("127.0.0.2", "127.0.0.9"):  # also from an address that holds many
            line = connect(port, source)
            line.sendall(HEAD % port + b"Connection: close\r\n\r\n")
            assert b"served" in ending(line)
        assert ending(held[0]) == b""
        held[-1].sendall(b"Connection: close\r\n\r\n")  # the newest are still there
        assert b"served" in ending(held[-1])


class Answered:
    """A connection whose request is being answered."""

    def is_unfinished(self) -> bool:
        return False

    def drop(self) -> None:
        raise AssertionError("its answer would be lost")


def test_a_request_that_is_being_answered_is_not_dropped_and_a_proxy_is_bounded_only_by_the_whole() -> None:
    bounds = ConnectionBounds(most=16, trusted=frozenset({"127.0.0.1"}))
    held = [Answered() for _ in range(16)]
    assert all(bounds.admit(one, "127.0.0.1") for one in held)
    assert not bounds.admit(Answered(), "127.0.0.1")
    bounds.release(held[0])
    bounds.release(held[0])  # over once, however often it is said
    assert [bounds.admit(Answered(), "127.0.0.1") for _ in range(2)] == [True, False]
    one = ConnectionBounds(most=16)
    assert [one.admit(Answered(), "127.0.0.1") for _ in range(10)] == [True] * 8 + [False] * 2


def test_half_open_connections_beyond_the_limit_of_files_neither_freeze_the_server_nor_fill_its_log(
    tmp_path: Path,
) -> None:
    workspace = write_workspace(tmp_path / "workspace", 2).folder
    command = [sys.executable, "-u", "-m", "counterfoil", "verify", "serve", str(workspace), "--port", "0"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)),
        )
        assert process.stdout is not None
        said = iter(process.stdout)
        port = next(int(line.rsplit(":", 1)[1]) for line in said if line.startswith("listening on"))
        lines = [connect(port) for _ in range(200)]
        for line in lines:
            with contextlib.suppress(OSError):
                line.sendall(b"GET / HT")
        reply = httpx2.get(f"http://127.0.0.1:{port}/", timeout=300)
        process.terminate()
        process.wait()
        process.stdout.close()
    assert reply.status_code == 401
    assert (
        tmp_path / "log"
    ).stat().st_size < 30_000  # Python 3.10 writes two lines for each connection that it cannot accept yet


def test_the_log_is_bounded_and_says_what_it_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    logger = logging.getLogger("bounded")
    logger.addFilter(LogLimit(lambda: now[0], most=3))
    for number in range(10):
        try:
            raise OSError(24, "Too many open files")
        except OSError:
            logger.exception("accept %d", number)
    now[0] = 61.0
    logger.warning("later")
    assert [record.getMessage() for record in caplog.records] == [
        "accept 0", "accept 1", "accept 2", "later (7 records before it were left out)",
    ]  # fmt: skip
    assert [record.exc_info is not None for record in caplog.records] == [True, False, False, False]
