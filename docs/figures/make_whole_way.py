"""Make the pictures and the output of whole_way.md and verify_pages.md again, in real Chromium.

    python docs/figures/make_whole_way.py FOLDER

The numbers come from the demo photos, which may not be shown; every photo in a figure is one of three free ones.
The three people are a script: they recognise what is left of the object, and err now and then.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import random
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from counterfoil.assets.cache import fetch_asset
from counterfoil.labels.label_space import imagenet1k
from counterfoil.sources.pixels import read_photo
from counterfoil.store.workspace import Workspace
from counterfoil.types import Variant

HERE = Path(__file__).parent
PHOTOS = {"chelsea.png": "tabby", "coffee.png": "espresso", "rocket.jpg": "missile"}  # CC0 or public domain
SURROGATES = ("embedded:efficientnet-lite0", "embedded:efficientnet-lite2")
UNSEEN = "embedded:pp-lcnetv2"
PEOPLE = {"Ann": 0.04, "Ben": 0.08, "Cleo": 0.12}  # how often each errs
HARD_TO_RECOGNISE = {"object-removed": 1.0, "silhouette": 0.6, "texture": 0.4, "size": 0.2}
WIDE: ViewportSize = {"width": 1200, "height": 750}
NARROW: ViewportSize = {"width": 390, "height": 844}

Watch = Callable[[Page, Variant], None]


def counterfoil(folder: Path, *arguments: str) -> None:
    """One command, said and run."""
    print(f"\n$ counterfoil {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", "counterfoil", *arguments], cwd=folder, check=True, stderr=subprocess.DEVNULL)


def write_free_photos(folder: Path) -> None:
    """Three photos of scikit-image and their masks as folders of classes."""
    data = resources.files("counterfoil.assets").joinpath("masks.zip").read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name, label in PHOTOS.items():
            photo = Image.fromarray(read_photo(fetch_asset("photos-scikit-image") / name))
            mask = Image.open(io.BytesIO(archive.read(f"{Path(name).stem}.png")))
            for kind, image in (("photos", photo), ("masks", mask)):
                place = folder / kind / label / f"{Path(name).stem}.png"
                place.parent.mkdir(parents=True, exist_ok=True)
                image.save(place)


def mined(folder: Path, images: str, *masks: str, at_least: int) -> None:
    """Pictures of photos, and of them what surrogates fail on."""
    counterfoil(folder, "build", "--images", images, *masks, "--out", "workspace")
    chosen = [part for name in SURROGATES for part in ("--surrogate", name)]
    counterfoil(folder, "mine", "workspace", *chosen, "--at-least", str(at_least), "--target", UNSEEN)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[Browser, str]]:
    """A browser, and the administrator's link to the page that is served."""
    print("\n$ counterfoil verify serve workspace", flush=True)
    command = [sys.executable, "-u", "-m", "counterfoil", "verify", "serve", "workspace", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = None
        while found is None:
            line = server.stdout.readline()
            print(line, end="")
            found = re.search(r"http://\S+/join/\S+", line)
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                yield browser, found[0]
                browser.close()
        finally:
            server.terminate()


def three_people(browser: Browser, link: str, workspace: Workspace, watch: Watch) -> Page:
    """Let three people answer everything; gives back the administrator's page."""
    variants = {
        hashlib.sha256((workspace.folder / row.file).read_bytes()).hexdigest(): row.variant
        for row in workspace.pictures
    }
    board = browser.new_page(viewport={"width": 1200, "height": 1060})
    board.goto(link)
    for name in PEOPLE:
        board.fill("#invite-name", name)
        board.click("#invite .strong")
        board.wait_for_function("name => document.getElementById('invited-name').textContent === name", arg=name)
        page = browser.new_context(viewport=WIDE).new_page()
        page.goto(board.input_value("#link"))
        _answer(page, name, variants, watch)
    board.reload()
    board.wait_for_selector("#annotators th")
    board.wait_for_load_state("networkidle")
    board.evaluate("scrollTo(0, 0)")
    return board


def _answer(page: Page, name: str, variants: Mapping[str, Variant], watch: Watch) -> None:
    page.click("#start")
    while True:
        page.wait_for_function("() => current !== null || document.getElementById('waiting').innerText.includes('all')")
        if page.evaluate("current === null"):
            break
        address = page.evaluate("location.origin + current.task.picture")
        variant = variants[hashlib.sha256(page.request.get(address).body()).hexdigest()]
        watch(page, variant)
        page.keyboard.press(_opinion(name, variant, page.inner_text("#class-name")))
        page.keyboard.press("y")
    page.wait_for_function("() => client.queue.length === 0")
    page.context.close()


def _opinion(name: str, variant: Variant, shown_as: str) -> str:
    """What is hard to recognise in a picture is so for everybody; slips are each person's own."""
    hard = random.Random(variant.id).random() < HARD_TO_RECOGNISE.get(variant.edit, 0.05)
    recognised = not hard and imagenet1k().name_of(variant.label) == shown_as
    own = random.Random(f"{name}/{variant.id}")
    slips = own.random() < PEOPLE[name]
    return own.choice("nu") if recognised and slips else "y" if recognised or slips else "n"


def shoot(page: Page, name: str, selector: str | None = None) -> None:
    """A picture of a page or of a part of it, small enough for a repository."""
    page.wait_for_timeout(400)  # until nothing moves any more
    data = page.locator(selector).first.screenshot() if selector else page.screenshot()
    Image.open(io.BytesIO(data)).convert("RGB").save(HERE / f"{name}.jpg", quality=80, optimize=True)


def screens(page: Page, variant: Variant) -> None:
    """The first annotator's page before a picture that a network takes for something else, wide and narrow."""
    if variant.edit not in ("background-swap", "position", "flip") or page.evaluate("answered.length") < 3:
        return
    page.wait_for_function("() => upcoming.isReady(current.task.task)")
    page.keyboard.press("y")
    shoot(page, "verify_annotate")
    page.set_viewport_size(NARROW)
    shoot(page, "verify_annotate_narrow")
    page.set_viewport_size(WIDE)
    page.keyboard.press("z")


def free_way(folder: Path) -> None:
    """The figures that show photos."""
    write_free_photos(folder)
    mined(folder, "photos", "--masks", "masks", at_least=1)
    with served(folder) as (browser, link):
        board = three_people(browser, link, Workspace(folder / "workspace"), screens)
        board.locator(".card").first.scroll_into_view_if_needed()
        board.wait_for_load_state("networkidle")
        shoot(board, "verify_disagreement", ".card")


def demo_way(folder: Path) -> None:
    """The whole way with numbers that mean something."""
    mined(folder, "demo:", at_least=2)
    with served(folder) as (browser, link):
        shoot(three_people(browser, link, Workspace(folder / "workspace"), lambda page, variant: None), "verify_admin")
    counterfoil(folder, "verify", "decide", "workspace")
    counterfoil(folder, "verify", "changed", "workspace")
    counterfoil(folder, "freeze", "workspace", "--name", "hard-demo", "--version", "1.0.0", "--out", "benchmark")
    counterfoil(folder, "check", "benchmark")
    counterfoil(folder, "evaluate", "benchmark", "--model", UNSEEN, "--out", "run")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto((folder / "run" / "report.html").resolve().as_uri())
        shoot(page, "whole_way_report")
        browser.close()


if __name__ == "__main__":
    for name, way in (("free", free_way), ("demo", demo_way)):
        (Path(sys.argv[1]) / name).mkdir(parents=True)
        way(Path(sys.argv[1]) / name)
