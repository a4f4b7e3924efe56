"""Bounds on connections, on the time for a request's headers, and on the log, so that slow clients shut nobody out."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if sys.platform != "win32":
    import resource

HEADER_SECONDS = 10.0  # from the first byte of a request, or from the connection, to the end of its headers
_MOST_CONNECTIONS = 1000
_RECORDS_A_MINUTE = 60


def count_allowed_connections() -> int:
    """How many connections the server holds at most: half of the files that the process may open."""
    if sys.platform == "win32":  # it has no such limits
        return _MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(8, min(_MOST_CONNECTIONS, soft // 2))


class Connection(Protocol):
    """An open connection, as the bounds see it."""

    def is_unfinished(self) -> bool:
        """Whether it waits for a request, or for the rest of one; not where a request is being answered."""

    def drop(self) -> None:
        """Close it at once."""


@dataclass
class ConnectionBounds:
    """The open connections in all and by address.

    Where there is no room, the oldest connection without a whole request makes room, of the address that has the most:
    half-open connections, however many and from wherever, shut nobody out.
    """

    most: int = field(default_factory=count_allowed_connections)
    trusted: frozenset[str] = frozenset()  # a proxy's addresses, which stand for many clients
    header_seconds: float = HEADER_SECONDS
    _open: Counter[str] = field(default_factory=Counter)
    _connections: dict[Connection, str] = field(default_factory=dict)  # with their addresses, the oldest first

    @property
    def most_per_address(self) -> int:
        """Half of all, so that one address leaves room for the others; a class behind one router has room too."""
        return max(4, self.most // 2)

    def admit(self, connection: Connection, address: str) -> bool:
        """Count one more connection; False where there is no room for it and none can be made."""
        if (
            address not in self.trusted
            and self._open[address] >= self.most_per_address
            and not self._make_room([address])
        ):
            return False
        if self._open.total() >= self.most and not self._make_room([name for name, _ in self._open.most_common()]):
            return False
        self._open[address] += 1
        self._connections[connection] = address
        return True

    def release(self, connection: Connection) -> None:
        """Count a connection that is over; nothing where it was refused or dropped."""
        address = self._connections.pop(connection, None)
        if address is None:
            return
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]

    def _make_room(self, addresses: Sequence[str]) -> bool:
        """Drop the oldest unfinished connection of the first of these addresses that has one; False where none has."""
        for address in addresses:
            for connection, own in self._connections.items():
                if own == address and connection.is_unfinished():
                    self.release(connection)
                    connection.drop()
                    return True
        return False


def make_bounded_protocol(bounds: ConnectionBounds) -> type[H11Protocol]:
    """The HTTP protocol of uvicorn with these bounds."""

    class BoundedProtocol(H11Protocol):
        """Closes connections that are too many, and those whose headers do not come in time."""

        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **settings)
            self._timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Admit the connection, and give its headers their time."""
            peer = transport.get_extra_info("peername")
            address = str(peer[0]) if peer else ""
            super().connection_made(transport)
            if bounds.admit(self, address):
                self._watch(True)
            else:
                transport.abort()

        def is_unfinished(self) -> bool:
            """Whether a request, or the rest of one, is waited for."""
            return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

        def drop(self) -> None:
            """Close the connection at once."""
            self._watch(False)
            self.transport.abort()

        def data_received(self, data: bytes) -> None:
            """Take bytes, and give the headers that they begin their time."""
            super().data_received(data)
            self._watch(self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0]))

        def connection_lost(self, exc: Exception | None) -> None:
            """Make room for another."""
            self._watch(False)
            bounds.release(self)
            super().connection_lost(exc)

        def _watch(self, waiting: bool) -> None:
            """Start the time for headers where they are waited for, and stop it where they are there."""
            if waiting and self._timer is None:
                self._timer = self.loop.call_later(bounds.header_seconds, self.transport.abort)
            elif not waiting and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return BoundedProtocol


class LogLimit(logging.Filter):
    """Lets so many records a minute through, none with a traceback twice; a line counts what was left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = _RECORDS_A_MINUTE) -> None:
        super().__init__()
        self._clock, self._most = clock, most
        self._minute, self._count = clock(), 0
        self._traced: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        if self._clock() - self._minute >= 60:
            left_out = self._count - self._most
            self._minute, self._count = self._clock(), 0
            self._traced.clear()
            if left_out > 0:
                record.msg, record.args = f"{record.getMessage()} ({left_out} records before it were left out)", None
        self._count += 1
        self._cut_traceback(record)
        return self._count <= self._most

    def _cut_traceback(self, record: logging.LogRecord) -> None:
        """A traceback is written once a minute for each kind of error."""
        kind = record.exc_info[0] if record.exc_info else None
        if kind is None:
            return
        if kind.__name__ in self._traced:
            record.exc_info = record.exc_text = None
        self._traced.add(kind.__name__)
