"""Time from the key that answers a picture to the frame that shows the next one, on a project of 5,000 pictures.

Run it from the repository: `python bench/verify_page.py`. A real server, real Chromium, the original beside each
picture. It prints the median, the 95th percentile and the longest, and how often the next picture was preloaded.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from planted import write_photos
from verify_browser import Server, administrator, at_work, chromium

PHOTOS = 200  # of 25 pictures each
WATCH = """() => {
  window.waits = []; window.ready = [];
  let pressed = null, before = null, ready = false;
  const shown = () => document.querySelector("#pictures figure:last-child img");
  addEventListener("keydown", (event) => {
    [pressed, before] = [event.timeStamp, shown()];
    ready = upcoming.length > 0 && upcoming.isReady(upcoming.tasks[0].task);
  }, true);
  new MutationObserver(() => {
    if (pressed === null || shown() === before) return;
    const since = pressed;
    pressed = null;
    window.ready.push(ready);
    shown().decode().then(() => requestAnimationFrame(() => {
      const painted = new MessageChannel();  // its message comes after the frame
      painted.port1.onmessage = () => window.waits.push(performance.now() - since);
      painted.port2.postMessage(0);
    }));
  }).observe(document.getElementById("pictures"), { childList: true });
}"""


def build(folder: Path) -> Path:
    images, masks = write_photos(folder, PHOTOS)
    places = ["--images", str(images), "--masks", str(masks), "--out", str(folder / "workspace")]
    subprocess.run([sys.executable, "-m", "counterfoil", "build", *places, "--recipe", "attributes"], check=True)
    return folder / "workspace"


def answer(page: Page, pictures: int, seconds: float) -> tuple[list[float], list[bool]]:
    page.wait_for_timeout(1000)
    page.evaluate(WATCH)
    for _ in range(pictures):
        for key in "yn":
            page.wait_for_timeout(500 * seconds)
            page.keyboard.press(key)
    page.wait_for_timeout(1000)
    return sorted(page.evaluate("waits")), page.evaluate("ready")


def measure(workspace: Path, pictures: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        questions = Path(folder) / "questions.yaml"
        questions.write_text("show_original: true\n")
        server = Server(workspace, questions)
        server.start()
        try:
            browser = chromium(playwright)
            link = administrator(browser, server).invite(f"Speed {seconds:g}")
            waits, ready = answer(at_work(browser, link, viewport={"width": 1440, "height": 900}), pictures, seconds)
        finally:
            server.kill()
    print(
        f"{len(waits)} pictures, one every {seconds:g} s: median {statistics.median(waits):.0f} ms, 95 % within"
        f" {waits[int(0.95 * (len(waits) - 1))]:.0f} ms, longest {waits[-1]:.0f} ms;"
        f" the next lay ready {sum(ready)} of {len(ready)} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workspace", type=Path, help="a workspace that is there instead of a new one")
    parser.add_argument("--pictures", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = given.workspace or build(Path(folder))
        for seconds in (1.0, 0.4):
            measure(workspace, given.pictures, seconds)


if __name__ == "__main__":
    main()
