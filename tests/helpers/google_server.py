"""A server in this process that speaks as much of Google Cloud Storage's JSON protocol as files in a bucket need.

It holds the bucket `bucket`; the bucket `refused` refuses every call. Real is the client (`gcsfs`) and what it sends,
"only where none is" included; what the service itself would do is written by us.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from served_files import ServedFiles, serve

_PREFIXES = ("/download", "/upload", "")  # of "/storage/v1"


class Bucket(ServedFiles):
    """The files of the bucket."""

    def describe(self, name: str) -> dict[str, Any]:
        """A file as the service lists it."""
        content = self.files[name]
        md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
        return {"kind": "storage#object", "name": name, "bucket": "bucket", "size": str(len(content)),
                "generation": "1", "md5Hash": md5, "contentType": "application/octet-stream"}  # fmt: skip

    def put(self, name: str, content: bytes, only_new: bool) -> bool:
        """Keep a file; False where one is there and only a new one is wanted."""
        with self.lock:
            if only_new and name in self.files:
                return False
            self.files[name] = content
            return True


class _Handler(BaseHTTPRequestHandler):
    bucket: Bucket
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet: apart, each waits for the other side's acknowledgement

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._read()
        place = self._place()
        if place is None:
            return
        name, query = place
        if name is None:
            prefix = query.get("prefix", "")
            rows = [self.bucket.describe(row) for row in sorted(self.bucket.files) if row.startswith(prefix)]
            self._answer({"kind": "storage#objects", "items": rows[: int(query.get("maxResults", 1000))]})
        elif name not in self.bucket.files:
            self._fail(404, "No such object")
        elif query.get("alt") == "media":
            self._send(200, self.bucket.files[name])
        else:
            self._answer(self.bucket.describe(name))

    def do_POST(self) -> None:
        content = self._read()
        place = self._place()
        if place is None:
            return
        head, data = content.split(b"\n\n", 2)[1:]
        name = json.loads(head.split(b"\n--")[0])["name"]
        data = data[: data.rindex(b"\n--")]
        if self.bucket.put(name, data, place[1].get("ifGenerationMatch") == "0"):
            self._answer(self.bucket.describe(name))
        else:
            self._fail(412, "At least one of the pre-conditions you specified did not hold.")

    def do_DELETE(self) -> None:
        self._read()
        place = self._place()
        if place is not None:
            there = self.bucket.files.pop(place[0] or "", None)
            self._send(204, b"") if there is not None else self._fail(404, "No such object")

    def _place(self) -> tuple[str | None, dict[str, str]] | None:
        """The file that is asked for, if one is, and the query; None where the call was refused."""
        url = urlsplit(self.path)
        start = next(f"{prefix}/storage/v1/b/" for prefix in _PREFIXES if url.path.startswith(f"{prefix}/storage/v1/"))
        bucket, _, name = url.path.removeprefix(start).partition("/o")
        if bucket == "refused":
            self._fail(403, "the account does not have storage.objects.list access")
        elif bucket != "bucket":
            self._fail(404, "The specified bucket does not exist.")
        elif self.bucket.fails():
            self._fail(503, "injected")
        else:
            return unquote(name.lstrip("/")) or None, {key: row[0] for key, row in parse_qs(url.query).items()}
        return None

    def _read(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), "application/json")

    def _fail(self, status: int, message: str) -> None:
        self._send(status, json.dumps({"error": {"code": status, "message": message}}).encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str = "application/octet-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serve_bucket() -> Iterator[Bucket]:
    """The bucket on a free port of this machine, inside the block."""
    bucket = Bucket()
    with serve(bucket, type("Handler", (_Handler,), {"bucket": bucket})):
        yield bucket
