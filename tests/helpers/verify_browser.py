"""A real server in its own process, and annotators' pages in real Chromium."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Playwright

PATIENCE = 300_000  # milliseconds that a browser on a machine with other work may take for anything


def chromium(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"], timeout=PATIENCE)


def opened(browser: Browser, **screen: Any) -> Page:
    """An empty page in a new browser session."""
    context = browser.new_context(**screen)
    context.set_default_timeout(PATIENCE)
    return context.new_page()


@dataclass
class Server:
    """`counterfoil verify serve`, started again on the same port after it was killed."""

    workspace: Path
    questions: Path | None = None
    port: int = 0
    link: str = ""
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        asked = ["--questions", str(self.questions)] if self.questions else []
        arguments = ["verify", "serve", str(self.workspace), *asked, "--port", str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "counterfoil", *arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        found = None
        while found is None:
            line = self._process.stdout.readline()
            assert line, "the server ended before it told its link"
            found = re.search(r"http://127\.0\.0\.1:(\d+)/join/\S+", line)
        self.link, self.port = found[0], int(found[1])

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@dataclass
class Administrator:
    """An administrator's browser."""

    server: Server
    context: BrowserContext
    page: Page

    def invite(self, name: str) -> str:
        """The link that the page makes for an annotator."""
        self.page.fill("#invite-name", name)
        self.page.click("#invite button.strong")
        self.page.wait_for_function("name => document.getElementById('invited-name').textContent === name", arg=name)
        return self.page.input_value("#link")

    def verdicts(self, name: str) -> list[dict[str, Any]]:
        """Every answer of one annotator as the server exports it."""
        told = self.context.request.get(f"{self.server.url}/api/admin/export.json").json()["verdicts"]
        return [row for row in told if row["annotator"] == name]


def administrator(browser: Browser, server: Server, **screen: Any) -> Administrator:
    page = opened(browser, **screen)
    page.goto(server.link)
    page.wait_for_function("() => document.getElementById('lead').textContent.includes('answers are in')")
    return Administrator(server, page.context, page)


def at_work(browser: Browser, link: str, **screen: Any) -> Page:
    """An annotator's page with the first picture shown."""
    page = opened(browser, **screen)
    page.goto(link)
    page.click("#start")
    page.wait_for_function("() => current !== null && upcoming.isReady(current.task.task)")
    return page


def press(page: Page, keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def all_sent(page: Page) -> None:
    page.wait_for_function("() => client.queue.length === 0")


def answer_everything(page: Page, keys: str) -> None:
    """Press the same keys for every picture until none is left."""
    while True:
        page.wait_for_function("() => current !== null || document.getElementById('waiting').innerText.includes('all')")
        if page.evaluate("current === null"):
            break
        press(page, keys)
    all_sent(page)
