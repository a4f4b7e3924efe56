"""A served verification: a workspace, the command as a process, and its users' browsers."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
from click.testing import CliRunner, Result

from counterfoil.cli import commands
from counterfoil.verification.app import create_app, create_server
from counterfoil.verification.project import begin_verification
from counterfoil.verification.server_address import open_listener, resolve_address
from counterfoil.verification.service import VerificationService
from planted import write_photos

RECIPE = """
about: Seven edited pictures of each photo.
judge_fills: false
edits:
  - edit: control
  - edit: background-blur
  - {edit: size, levels: {rate: [full, 0.1, 0.08, 0.05]}}
  - {edit: position, settings: {rate: 0.05}}
  - {edit: direction, settings: {rate: 0.05}}
"""
YES = {"recognisable": "yes", "only": "yes"}


def build_workspace(folder: Path, photos: int, **renamed: str) -> Path:
    """A workspace of seven edits per photo beside original and control; classes may get other names."""
    images, masks = write_photos(folder, photos)
    for label, name in renamed.items():
        for kind in (images, masks):
            (kind / label).rename(kind / name)
    (folder / "recipe.yaml").write_text(RECIPE)
    arguments = ["build", "--images", str(images), "--masks", str(masks), "--out", str(folder / "workspace")]
    done = CliRunner().invoke(commands, [*arguments, "--recipe", str(folder / "recipe.yaml")], catch_exceptions=False)
    assert done.exit_code == 0
    return folder / "workspace"


def questions_file(folder: Path, **settings: Any) -> Path:
    """A questions file with these settings beside the defaults."""
    path = folder / "questions.json"
    path.write_text(json.dumps(settings))
    return path


def command(*arguments: object) -> Result:
    """One of the commands of `verify`, in this process."""
    return CliRunner().invoke(commands, ["verify", *map(str, arguments)])


@dataclass
class Browser:
    """One person's browser: it keeps the cookie and sends the token of its page."""

    url: str
    http: httpx2.Client = field(init=False)
    csrf: str = ""

    def __post_init__(self) -> None:
        self.http = httpx2.Client(base_url=self.url, timeout=300)

    @property
    def cookie(self) -> tuple[str, str]:
        """The session's name and token."""
        name = f"session-{self.url.rsplit(':', 1)[1]}"
        return name, str(self.http.cookies.get(name, ""))

    def open(self, link: str) -> httpx2.Response:
        """Follow an invitation link, and load the page that it leads to."""
        reply = self.http.get(link)
        if reply.status_code == 303:
            page = self.http.get(reply.headers["location"])
            found = re.search(r'name="csrf" content="([0-9a-f]+)"', page.text)
            assert found, page.text
            self.csrf = found[1]
        return reply

    def post(self, path: str, content: object, **headers: str) -> httpx2.Response:
        """Send JSON as the page does."""
        return self.http.post(path, json=content, headers={"X-CSRF-Token": self.csrf, **headers})

    def tasks(self, count: int = 5) -> list[dict[str, Any]]:
        """The open tasks, with new ones up to the count."""
        reply = self.post("/api/next", {"count": count})
        assert reply.status_code == 200, reply.text
        found: list[dict[str, Any]] = reply.json()["tasks"]
        return found

    def answer(
        self, task: Mapping[str, Any], answers: Mapping[str, str] = YES, key: str = "", seconds: float = 1.5
    ) -> httpx2.Response:
        """Answer one task."""
        content = {"task": task["task"], "answers": answers, "seconds": seconds, "key": key or secrets.token_hex(16)}
        return self.post("/api/answer", content)


@dataclass
class Site:
    """The served page, and the administrator's link to it."""

    url: str
    link: str
    process: subprocess.Popen[str] | None = None

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self.url.rsplit(":", 1)[1])

    def administrator(self) -> Browser:
        """The administrator's browser."""
        return self.visit(self.link)

    @cached_property
    def _host(self) -> Browser:
        return self.administrator()

    def invite(self, name: str) -> str:
        """A link for an annotator."""
        return str(self._host.post("/api/admin/invite", {"name": name, "role": "annotator"}).json()["link"])

    def annotator(self, name: str) -> Browser:
        """A new annotator's browser."""
        return self.visit(self.invite(name))

    def annotators(self, names: Sequence[str]) -> list[Browser]:
        """Several new annotators' browsers."""
        return [self.annotator(name) for name in names]

    def visit(self, link: str) -> Browser:
        """A browser that has opened a link."""
        browser = Browser(self.url)
        assert browser.open(link).status_code == 303
        return browser

    def kill(self) -> None:
        """End the server as a power cut would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def served(workspace: Path, *arguments: object) -> Iterator[Site]:
    """The command as a process of its own, up to the moment when it listens."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "counterfoil", "verify", "serve", str(workspace), "--port", "0",
         *map(str, arguments)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        told = ""
        for line in process.stdout:
            told += line
            if line.startswith("Ctrl-C"):
                break
        link = re.search(r"https?://\S+/join/\S+", told)
        port = re.search(r"listening on \S+:(\d+)", told)
        assert link, told
        assert port, told
        yield Site(f"http://127.0.0.1:{port[1]}", link[0], process)
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextlib.contextmanager
def hosted(workspace: Path, questions: Path | None = None) -> Iterator[Site]:
    """The same page on a thread of this process, which starts a second faster."""
    verification = begin_verification(workspace, None, questions)
    with open_listener("127.0.0.1", 0) as bound:
        address = resolve_address("127.0.0.1", bound.getsockname()[1], None)
        service = VerificationService(verification, address)
        server = create_server(create_app(service), address)
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield Site(address.url, service.administrator_link())
        finally:
            server.should_exit = True
            thread.join()
            verification.database.close()


def answer_everything(browser: Browser, answers: Mapping[str, str] = YES) -> list[dict[str, Any]]:
    """Answer every task, and return the tasks."""
    done = []
    while tasks := browser.tasks(10):
        for task in tasks:
            assert browser.answer(task, answers).status_code == 200
        done += tasks
    return done
