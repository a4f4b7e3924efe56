"""The server around the page."""

from __future__ import annotations

import errno
import socket

import uvicorn
from starlette.types import ASGIApp

from counterfoil.errors import UserError
from counterfoil.verify.address import Address

_WAITING = 128


def listening(host: str, port: int) -> socket.socket:
    """A socket that is ours, or one line that says why not; port 0 takes a free one."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(_WAITING)  # from now on nobody is turned away, they wait until the page is up
    except OSError as error:
        bound.close()
        busy = error.errno == errno.EADDRINUSE
        reason = "is taken by another program; choose another --port" if busy else f"cannot be used: {error.strerror}"
        raise UserError(f"expected {host}:{port} to listen on, which {reason}") from error
    return bound


def server_of(app: ASGIApp, address: Address) -> uvicorn.Server:
    """The server of a page, to be run on a socket that listens."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False,  # the log would hold invitation links
        proxy_headers=address.is_behind_proxy, server_header=False, timeout_keep_alive=30, lifespan="off",
    )  # fmt: skip
    return uvicorn.Server(config)
