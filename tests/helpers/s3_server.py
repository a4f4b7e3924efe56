"""A real S3 server (moto's) in a process of its own, that can fail one call in so many, as services do."""

from __future__ import annotations

import http.client
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
_CONTROL = "/fail-every/"  # answered by the server itself: the share of calls that fail from now on, in percent


class FailingCalls:
    """A WSGI application before another one: a share of the calls fails, half before and half after they are done.

    The bucket "forbidden" refuses every call.
    """

    def __init__(self, application: Callable[..., Any]) -> None:
        self._application, self._percent, self._failed = application, 0.0, 0
        self._random = random.Random(0)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path: str = environ["PATH_INFO"]
        if path.startswith(_CONTROL):
            self._percent = float(path.removeprefix(_CONTROL))
            start_response("200 OK", [])
            return [str(self._failed).encode()]
        if path.startswith("/forbidden"):
            start_response("403 Forbidden", [("Content-Type", "text/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]
        if self._random.uniform(0, 100) >= self._percent:
            return self._application(environ, start_response)  # type: ignore[no-any-return]
        self._failed += 1
        if self._random.random() < 0.5:  # done, but the answer is lost
            list(self._application(environ, lambda *_: None))
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start_response("500 Internal Server Error", [("Content-Type", "text/xml")])
        return [b"<Error><Code>InternalError</Code><Message>injected</Message></Error>"]


def main() -> None:
    """Serve on a free port of this machine, whose number is printed."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application = FailingCalls(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()


@contextmanager
def serve_s3(log: Path) -> Iterator[str]:
    """The address of a server that runs inside the block."""
    with log.open("w") as errors:
        process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
            process.wait(10)


def fail_calls(address: str, percent: float) -> int:
    """Let a share of the calls fail from now on; returns how many failed so far."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    connection.request("GET", f"{_CONTROL}{percent}")
    return int(connection.getresponse().read())


def put_folder(folder: Path, address: str) -> None:
    """Put the files of a folder to an address of object storage."""
    import fsspec

    fsspec.filesystem(address.partition("://")[0], skip_instance_cache=True).put(f"{folder}/", address, recursive=True)


if __name__ == "__main__":
    main()
