"""A server in this process that speaks as much of the Hugging Face Hub's protocol as files of a data set need.

It holds one data set, `user/data`: its record, listing, reading and commits of small files. "user/refused" refuses
every call. Real are the client (`huggingface_hub`) and what it sends; what the Hub itself would do is written by us.
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

DATA = "/api/datasets/user/data"
_RESOLVE = "/datasets/user/data/resolve/main/"


class Hub(ServedFiles):
    """The files of the data set."""

    def list_tree(self, folder: str, recursive: bool) -> list[dict[str, Any]] | None:
        """The entries below a folder; None where there is none."""
        prefix = f"{folder}/" if folder else ""
        names = [name for name in sorted(self.files) if name.startswith(prefix)]
        if folder and not names:
            return None
        entries: dict[str, dict[str, Any]] = {}
        for name in names:
            parts = name.removeprefix(prefix).split("/")
            for depth in range(1, len(parts) if recursive else min(2, len(parts))):
                path = prefix + "/".join(parts[:depth])
                entries.setdefault(path, {"type": "directory", "path": path, "oid": "0" * 40, "size": 0})
            if recursive or len(parts) == 1:
                entries[name] = self.describe(name)
        return list(entries.values())

    def describe(self, name: str) -> dict[str, Any]:
        """A file as the Hub lists it."""
        content = self.files[name]
        return {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}

    def commit(self, text: bytes) -> bool:
        """Add and remove files as the lines of a commit say; False where one to be removed is not there."""
        lines = [json.loads(line) for line in text.splitlines()]
        with self.lock:
            removed = [line["value"]["path"] for line in lines if line["key"] == "deletedFile"]
            if not set(removed) <= self.files.keys():
                return False
            for name in removed:
                del self.files[name]
            for line in lines:
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            return True


def _missing(path: str) -> str:
    """The code that the Hub gives for something that is not there."""
    if path.startswith(_RESOLVE):
        return "EntryNotFound"
    return "RevisionNotFound" if path.startswith(DATA) else "RepoNotFound"


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet: apart, each waits for the other side's acknowledgement

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path, tree = unquote(url.path), f"{DATA}/tree/main"
        if self._refuses(path):
            return
        if path in (DATA, f"{DATA}/revision/main"):
            self._answer({"id": "user/data", "sha": "0" * 40, "private": False, "siblings": []})
        elif path.startswith(tree):
            recursive = parse_qs(url.query).get("recursive", [""])[0].lower() == "true"
            entries = self.hub.list_tree(path.removeprefix(tree).strip("/"), recursive)
            self._answer(entries) if entries is not None else self._fail(404, "EntryNotFound")
        elif path.startswith(_RESOLVE) and path.removeprefix(_RESOLVE) in self.hub.files:
            content, status = self.hub.files[path.removeprefix(_RESOLVE)], 200
            if "Range" in self.headers:
                first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
                content, status = content[int(first) : int(last) + 1], 206
            self._send(status, content)
        else:
            self._fail(404, _missing(path))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        content, path = self._read(), unquote(urlsplit(self.path).path)
        if self._refuses(path):
            return
        if path == f"{DATA}/preupload/main":
            files = [{"path": row["path"], "uploadMode": "regular", "shouldIgnore": False} for row in
                     json.loads(content)["files"]]  # fmt: skip
            self._answer({"files": files})
        elif path == f"{DATA}/paths-info/main":
            names = json.loads(content)["paths"]
            self._answer([self.hub.describe(name) for name in names if name in self.hub.files])
        elif path == f"{DATA}/commit/main" and not self.hub.commit(content):
            self._fail(404, "EntryNotFound")
        elif path == f"{DATA}/commit/main":
            self._answer(
                {"commitUrl": f"{self.hub.address}/datasets/user/data/commit/{'0' * 40}", "commitOid": "0" * 40}
            )
        else:
            self._fail(404, "RepoNotFound")

    def _refuses(self, path: str) -> bool:
        if "/user/refused" in path:
            self._fail(403, "", "you may not read this")
        elif self.hub.fails():
            self._fail(500, "", "injected")
        else:
            return False
        return True

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content = b""
        while size := int(self.rfile.readline().strip(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _answer(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), "application/json")

    def _fail(self, status: int, code: str, message: str = "") -> None:
        headers = {"X-Error-Code": code} if code else {}
        self._send(status, json.dumps({"error": message}).encode(), "application/json", headers)

    def _send(
        self, status: int, content: bytes, kind: str = "application/octet-stream", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        about = {"Content-Type": kind, "Content-Length": str(len(content)), "X-Repo-Commit": "0" * 40, "ETag": '"0"'}
        for name, value in {**about, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def serve_hub() -> Iterator[Hub]:
    """The Hub on a free port of this machine, inside the block."""
    hub = Hub()
    with serve(hub, type("Handler", (_Handler,), {"hub": hub})):
        yield hub
