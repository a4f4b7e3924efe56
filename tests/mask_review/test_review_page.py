"""The page of `masks review` in real Chromium, before a real server."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, sync_playwright

from counterfoil.sources.folder import FolderSource, read_review
from counterfoil.sources.pixels import read_mask
from planted import write_photos
from verify_browser import chromium, opened

pytestmark = pytest.mark.browser


@dataclass
class ReviewServer:
    """`counterfoil photos review` as a process."""

    images: Path
    start: Path
    out: Path
    port: int = 0
    link: str = ""
    process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        arguments = ["masks", "review", self.images, "--masks", self.out, "--start", self.start, "--no-browser"]
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "counterfoil", *map(str, arguments), "--port", str(self.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        told = ""
        for line in self.process.stdout:
            told += line
            if line.startswith("Ctrl-C"):
                break
        found = re.search(r"http://127\.0\.0\.1:(\d+)/open/\S+", told)
        assert found, told
        self.link, self.port = found[0], int(found[1])

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def mask(self, folder: Path | None = None) -> NDArray[np.uint8]:
        """The mask of the first photo, as written or in another folder."""
        first = FolderSource(self.images).samples()[0][0]
        return read_mask((folder or self.out) / Path(first.image).with_suffix(".png"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = chromium(playwright)
        yield made
        made.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReviewServer]:
    images, masks = write_photos(tmp_path, 4)
    made = ReviewServer(images, masks, tmp_path / "reviewed")
    made.run()
    yield made
    with contextlib.suppress(ProcessLookupError):
        made.kill()


def at_review(browser: Browser, server: ReviewServer, **screen: object) -> Page:
    page = opened(browser, **screen)
    page.goto(server.link)
    settled(page)
    return page


def settled(page: Page) -> None:
    """Wait until a photo is shown and everything was sent."""
    page.wait_for_function("() => place >= 0 && !busy && !drafting && !encoding && server.waiting.length === 0")


def spot(page: Page, x: float, y: float) -> tuple[float, float]:
    """Where on the screen a pixel of the photo is."""
    place = page.evaluate(
        "([x, y]) => { const box = byId('stage').getBoundingClientRect();"
        " return [box.left + board.left + x * board.scale, box.top + board.top + y * board.scale]; }",
        [float(x), float(y)],
    )
    return float(place[0]), float(place[1])


def stroke(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*spot(page, *start))
    page.mouse.down()
    page.mouse.move(*spot(page, *end), steps=4)
    page.mouse.up()


def test_keys_accept_reject_and_take_back(browser: Browser, server: ReviewServer) -> None:
    page = at_review(browser, server)
    first = page.inner_text("#name")
    page.keyboard.press("a")
    settled(page)
    second = page.inner_text("#name")
    assert second != first
    assert page.inner_text("#count") == "1 of 4"
    page.keyboard.press("r")
    settled(page)
    assert read_review(server.out) == {first: "accepted", second: "rejected"}
    page.keyboard.press("z")
    settled(page)
    assert page.inner_text("#name") == second
    assert read_review(server.out) == {first: "accepted"}


def test_strokes_are_painted_undone_and_written(browser: Browser, server: ReviewServer) -> None:
    page = at_review(browser, server)
    page.keyboard.press("p")
    stroke(page, (20, 20), (60, 20))
    page.keyboard.press("e")
    before = page.evaluate("board.mask[20 * board.width + 40]")
    stroke(page, (40, 10), (40, 40))
    assert (before, page.evaluate("board.mask[20 * board.width + 40]")) == (255, 0)
    page.keyboard.press("z")
    page.keyboard.press("a")
    settled(page)
    written = server.mask()
    assert written[20, 25] == written[20, 40] == 255
    assert written[150, 10] == 0


def test_a_click_grows_the_mask_over_the_object(browser: Browser, server: ReviewServer) -> None:
    whole = server.mask(server.start)
    rows, columns = np.nonzero(whole)
    page = at_review(browser, server)
    page.evaluate("rows => { board.mask.fill(0, 0, board.width * rows); board.draw(); }", int(rows.mean()))
    page.keyboard.press("g")
    page.mouse.click(*spot(page, columns.mean(), rows.min() + 20))
    page.wait_for_function("() => board.undo.length === 1")
    settled(page)
    page.keyboard.press("a")
    settled(page)
    assert np.count_nonzero((server.mask() > 0) & (whole > 0)) > 0.95 * np.count_nonzero(whole)


def test_on_a_phone_one_finger_paints_and_two_enlarge(browser: Browser, server: ReviewServer) -> None:
    page = at_review(browser, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.touchscreen.tap(*spot(page, 20, 20))
    page.wait_for_function("() => board.undo.length === 1")
    assert page.evaluate("board.mask[20 * board.width + 20]") == 255
    before = page.evaluate("board.scale")
    touches = page.context.new_cdp_session(page)
    for kind, apart in (("touchStart", 20), ("touchMove", 60), ("touchEnd", 0)):
        points = [{"x": 200 + side * apart, "y": 300, "id": side} for side in (0, 1)] if apart else []
        touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.wait_for_function("before => board.scale > 1.5 * before", arg=before)
    assert page.evaluate("board.undo.length") == 1  # the two fingers painted nothing
    page.click("#accept")
    page.wait_for_function("() => byId('count').textContent === '1 of 4'")
    settled(page)
    assert server.mask()[20, 20] == 255


def test_nothing_is_lost_when_the_server_is_killed(browser: Browser, server: ReviewServer) -> None:
    page = at_review(browser, server)
    stroke(page, (20, 20), (60, 20))
    settled(page)
    server.kill()
    server.run()
    again = at_review(browser, server)
    assert again.evaluate("board.mask[20 * board.width + 40]") == 255
    assert again.inner_text("#note") == "changed, not decided on yet"


def test_nobody_is_let_in_without_the_link(server: ReviewServer) -> None:
    url = f"http://127.0.0.1:{server.port}"
    assert httpx2.get(f"{url}/api/photos").status_code == 401
    assert httpx2.get(f"{url}/open/guess").status_code == 403
    with httpx2.Client(base_url=url) as client:
        assert client.get(server.link).status_code == 303
        assert client.get("/api/photos").status_code == 200
        assert client.post("/api/photos/0/reject").status_code == 403  # without the page's token
        assert client.get("/api/photos/99/mask").status_code == 404
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
