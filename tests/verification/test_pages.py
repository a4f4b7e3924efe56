"""The annotators' and the administrator's page in real Chromium, before a real server."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Page, sync_playwright

from counterfoil.cli import commands
from planted import write_photos
from verify_browser import (
    Administrator,
    Server,
    administrator,
    all_sent,
    answer_everything,
    at_work,
    chromium,
    opened,
    press,
)

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=alert(1)>"
QUESTIONS = {
    "name": f"Colours {HOSTILE}",
    "instructions": f"Look closely. {HOSTILE}",
    "annotators": 30,
    "control_share": 0,
    "questions": [
        {"id": "recognisable", "text": "Is the {class} recognisable?", "help": "Parts may be hidden."},
        {"id": "only", "text": "Is it alone?", "answers": ["yes", "no", "unsure"]},
    ],
}
RECIPE = """
about: Seven pictures of each photo that people are asked about.
working_size: 192
judge_fills: false
edits:
  - {edit: size, levels: {rate: [full, 0.1, 0.05]}}
  - edit: position
  - edit: direction
  - edit: background-plain
  - edit: background-swap
"""
WIDTHS = (390, 768, 1440)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    images, masks = write_photos(folder, 2)
    (folder / "recipe.yaml").write_text(RECIPE)
    arguments = ["build", "--images", str(images), "--masks", str(masks), "--out", str(folder / "workspace")]
    done = CliRunner().invoke(commands, [*arguments, "--recipe", str(folder / "recipe.yaml")], catch_exceptions=False)
    assert done.exit_code == 0
    return folder / "workspace"


@pytest.fixture(scope="module")
def server(workspace: Path) -> Iterator[Server]:
    questions = workspace.parent / "questions.json"
    questions.write_text(json.dumps(QUESTIONS), encoding="utf-8")
    made = Server(workspace, questions)
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = chromium(playwright)
        yield made
        made.close()


@pytest.fixture(scope="module")
def admin(browser: Browser, server: Server) -> Administrator:
    return administrator(browser, server)


@pytest.fixture(autouse=True)
def nobody_stays(browser: Browser, admin: Administrator) -> Iterator[None]:
    """Pages of one test are closed before the next: those left open would go on asking the server."""
    yield
    for context in browser.contexts:
        if context is not admin.context:
            context.close()


def shown_task(page: Page) -> str:
    return str(page.evaluate("current.task.task"))


def is_wide(page: Page) -> bool:
    """Whether something sticks out at the side."""
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


def test_the_form_that_invites_comes_first_while_nobody_is_invited(browser: Browser, workspace: Path) -> None:
    lonely = Server(shutil.copytree(workspace, workspace.parent / "lonely"))
    lonely.start()
    try:
        board = administrator(browser, lonely)
        first = board.page.locator("main > section").first
        assert first.locator("#invite-name").count() == 1
        link = board.page.locator("#link")
        board.invite("First")
        assert link.evaluate("link => document.activeElement === link")
        assert first.locator("#invite-name").count() == 1  # it stays where it is until the page is opened again
        board.page.reload()
        board.page.wait_for_function("() => document.getElementById('lead').textContent.includes('answers are in')")
        assert first.locator("#progress").count() == 1
    finally:
        lonely.kill()


def test_two_keys_answer_a_picture_and_bring_the_next(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Keys"))
    first = shown_task(page)
    press(page, "y")
    assert shown_task(page) == first
    assert page.locator(".question").nth(1).evaluate("field => field.classList.contains('active')")
    press(page, "3")
    assert shown_task(page) != first
    assert page.inner_text("#count").startswith("1 of ")
    all_sent(page)
    answers = {row["question"]: row["answer"] for row in admin.verdicts("Keys")}
    assert answers == {"recognisable": "yes", "only": "unsure"}


def test_the_next_picture_was_decoded_before_the_key(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Ahead"))
    for _ in range(6):
        page.wait_for_function(
            "() => upcoming.length >= 4 && upcoming.tasks.slice(0, 4).every((task) => upcoming.isReady(task.task))"
        )
        page.evaluate("window.expected = upcoming.pictures.get(upcoming.tasks[0].task).edited.image")
        press(page, "yn")
        assert page.evaluate("document.querySelector('#pictures img') === window.expected && expected.complete")


def test_undo_brings_back_the_last_picture_and_a_correction_is_a_new_version(
    browser: Browser, admin: Administrator
) -> None:
    page = at_work(browser, admin.invite("Undo"))
    first = shown_task(page)
    press(page, "yn")
    second = shown_task(page)
    assert page.is_enabled("#undo")
    page.keyboard.press("Backspace")
    page.wait_for_function("id => current.task.task === id", arg=first)
    pressed = page.locator("#questions button[aria-pressed=true]").all_inner_texts()
    assert [text.split()[0] for text in pressed] == ["yes", "no"]
    page.keyboard.press("Enter")  # keeps the first answer
    press(page, "u")
    assert shown_task(page) == second
    all_sent(page)
    rows = admin.verdicts("Undo")
    last = max(row["version"] for row in rows)
    assert {row["question"]: row["answer"] for row in rows if row["version"] == last} == {
        "recognisable": "yes",
        "only": "unsure",
    }
    assert {row["answer"] for row in rows if row["version"] == 1} == {"yes", "no"}


def test_undo_within_a_picture_goes_back_one_question(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Within"))
    first = shown_task(page)
    assert page.is_disabled("#undo")  # nothing was answered yet
    press(page, "y")
    assert page.is_enabled("#undo")
    press(page, "z")
    assert page.is_disabled("#undo")
    assert shown_task(page) == first
    assert page.locator("#questions button[aria-pressed=true]").count() == 0
    press(page, "ny")
    all_sent(page)
    assert {row["answer"] for row in admin.verdicts("Within")} == {"no", "yes"}


def test_a_held_key_answers_one_question_only(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Held"))
    first = shown_task(page)
    for _ in range(5):
        page.keyboard.down("y")  # the browser marks all but the first as repeated
    assert shown_task(page) == first


def test_answers_without_a_connection_are_sent_once_it_is_back(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Away"))
    page.wait_for_function("() => upcoming.length >= 4 && upcoming.tasks.every((task) => upcoming.isReady(task.task))")
    page.context.set_offline(True)
    press(page, "yy")
    page.wait_for_function("() => document.getElementById('banner').textContent.includes('1 answer is kept')")
    page.evaluate("void (client.sending = new Promise(() => {}))")  # an attempt under way, which says nothing for long
    press(page, "ny")
    assert "2 answers are kept in this browser" in page.inner_text("#banner")
    page.evaluate("client.sending = null")
    assert page.inner_text("#count").startswith("2 of ")
    page.context.set_offline(False)
    all_sent(page)
    page.wait_for_function("() => document.getElementById('banner').hidden")
    rows = admin.verdicts("Away")
    assert len(rows) == 4
    assert len({(row["variant_id"], row["question"]) for row in rows}) == 4


LATE_REPLIES = """() => {
    const sent = window.fetch;
    window.release = {};
    window.fetch = async (address, asked) => {
        const released = new Promise((release) => { window.release[address] = release; });
        if (address === '/api/next') await released;
        const reply = await sent(address, asked);
        if (address === '/api/answer') { window.stored = true; await released; }
        return reply;
    };
}"""


def test_an_answer_that_the_server_has_and_the_page_does_not_know_of_is_counted_once(
    browser: Browser, admin: Administrator
) -> None:
    page = at_work(browser, admin.invite("Late"))
    page.evaluate(LATE_REPLIES)
    page.evaluate("void refill()")
    press(page, "yy")
    page.wait_for_function("() => window.stored")
    page.evaluate("window.release['/api/next']()")  # it tells of one answer, while that one is still in the queue
    page.wait_for_function("() => !filling")
    assert page.inner_text("#count").startswith("1 of ")
    page.evaluate("window.release['/api/answer']()")
    all_sent(page)
    assert page.inner_text("#count").startswith("1 of ")


def test_a_killed_and_restarted_server_loses_and_doubles_nothing(
    browser: Browser, admin: Administrator, server: Server
) -> None:
    page = at_work(browser, admin.invite("Restart"))
    page.wait_for_function("() => upcoming.length >= 4 && upcoming.tasks.every((task) => upcoming.isReady(task.task))")
    press(page, "yy")
    server.kill()
    press(page, "nnuu")
    page.wait_for_function("() => !document.getElementById('banner').hidden")
    server.start()
    page.reload()  # what the page held in memory is gone, what it kept is not
    all_sent(page)
    rows = admin.verdicts("Restart")
    assert len(rows) == 6
    assert {row["version"] for row in rows} == {1}
    assert sorted(row["answer"] for row in rows) == ["no", "no", "unsure", "unsure", "yes", "yes"]


def test_a_revoked_annotator_is_told_so_and_gets_no_more_pictures(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Revoked"))
    admin.page.once("dialog", lambda dialog: dialog.accept())
    admin.page.click("button[aria-label='Revoke: Revoked']")
    admin.page.wait_for_selector("button[aria-label='Revoke: Revoked'][disabled]")
    press(page, "yy")
    page.wait_for_function("() => document.getElementById('banner').textContent.includes('session has ended')")
    address = page.evaluate("upcoming.tasks[0].picture")
    assert page.context.request.get(admin.server.url + address).status == 401


def test_two_tabs_of_one_person_both_go_on(browser: Browser, admin: Administrator) -> None:
    link = admin.invite("Tabs")
    first = at_work(browser, link)
    second = first.context.new_page()
    second.goto(link)  # a fresh session, which the first tab's token is not of
    press(first, "yy")
    all_sent(first)
    assert first.is_hidden("#banner")
    assert len(admin.verdicts("Tabs")) == 2


def test_the_page_knows_nothing_of_other_people_or_of_models(
    browser: Browser, admin: Administrator, tmp_path: Path
) -> None:
    busy = at_work(browser, admin.invite("Somebody-Else"))
    press(busy, "yyyy")
    all_sent(busy)
    page = at_work(browser, admin.invite("Blind"), record_har_path=tmp_path / "traffic.har")
    tasks = page.evaluate("[current.task, ...upcoming.tasks]")
    page.context.close()  # writes down everything that the server said
    traffic = (tmp_path / "traffic.har").read_text(encoding="utf-8")
    assert tasks[0]["task"] in traffic
    keys = {"task", "class_name", "definition", "references", "picture", "original", "questions"}
    assert all(set(task) == keys for task in tasks)
    assert "Somebody-Else" not in traffic
    assert "keep_if" not in traffic  # which answer keeps a picture
    assert not any(row["variant_id"] in traffic for row in admin.verdicts("Somebody-Else"))


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_their_screen_and_fingers(browser: Browser, admin: Administrator, width: int) -> None:
    screen = {"viewport": {"width": width, "height": 844}, "has_touch": width < 800}
    page = at_work(browser, admin.invite(f"Width-{width}"), **screen)
    assert not is_wide(page)
    sizes = page.locator(".answers button").evaluate_all("all => all.map((one) => one.getBoundingClientRect().height)")
    assert min(sizes) >= 44
    if width < 800:
        assert page.locator(".answers button").last.evaluate("one => one.getBoundingClientRect().bottom") <= 844
        first = shown_task(page)
        page.locator(".question").nth(0).get_by_role("button", name="no").tap()
        page.locator(".question").nth(1).get_by_role("button", name="unsure").tap()
        page.wait_for_function("id => current.task.task !== id", arg=first)  # a tap is a click a moment later
    board = administrator(browser, admin.server, **screen)
    assert not is_wide(board.page)


def test_hostile_words_stay_words(browser: Browser, admin: Administrator) -> None:
    alarms: list[str] = []
    admin.page.on("dialog", lambda dialog: alarms.append(dialog.message))
    link = admin.invite(HOSTILE)
    page = opened(browser)
    page.on("dialog", lambda dialog: alarms.append(dialog.message))
    page.goto(link)
    assert HOSTILE in page.inner_text("h1")
    assert HOSTILE in page.inner_text("#intro")
    page.click("#start")
    page.keyboard.press("?")
    assert HOSTILE in page.inner_text("#help-sheet")
    admin.page.reload()
    admin.page.wait_for_selector("#annotators tr")
    assert HOSTILE in admin.page.inner_text("#annotators")
    assert alarms == []
    assert page.locator("img[src=x]").count() == 0


def test_arrows_and_enter_alone_are_enough(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Arrows"))
    first = shown_task(page)
    press_names(page, "ArrowRight", "ArrowRight", "Enter", "ArrowLeft", "Enter")
    assert shown_task(page) != first
    all_sent(page)
    answers = {row["question"]: row["answer"] for row in admin.verdicts("Arrows")}
    assert answers == {"recognisable": "no", "only": "unsure"}
    assert page.evaluate("document.activeElement.closest('.answers') !== null")


def press_names(page: Page, *names: str) -> None:
    for name in names:
        page.keyboard.press(name)


def test_space_enlarges_the_picture_and_answers_nothing(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Zoom"))
    first = shown_task(page)
    page.locator(".answers button").first.click()  # a click must not leave the space bar on the button
    page.keyboard.press(" ")
    assert page.evaluate("document.getElementById('zoom').open")
    page.keyboard.press("+")
    assert "scale(1.5)" in page.evaluate("document.querySelector('#zoom img').style.transform")
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.getElementById('zoom').open")
    assert shown_task(page) == first


def test_the_start_button_lets_go_of_the_keyboard_at_once(browser: Browser, admin: Administrator) -> None:
    page = opened(browser)
    page.goto(admin.invite("Starter"))
    started = "() => { byId('start').focus(); byId('start').click(); return document.activeElement === document.body; }"
    assert page.evaluate(started)


def test_two_fingers_enlarge_the_picture(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Pinch"), viewport={"width": 390, "height": 844}, has_touch=True)
    page.locator("#pictures .frame").tap()
    page.wait_for_function("() => zoom.isOpen")
    fingers = page.context.new_cdp_session(page)
    for kind, apart in (("touchStart", 40), ("touchMove", 60), ("touchMove", 80)):
        points = [{"x": 195 + side * apart, "y": 400, "id": place} for place, side in enumerate((-1, 1))]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_function("() => Math.abs(zoom.scale - 2) < 0.05")
    assert page.evaluate("zoom.isOpen")


def test_everything_on_the_pages_has_a_name_for_those_who_cannot_see_it(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Named"))
    for one in (page, admin.page):
        assert one.evaluate("[...document.images].every((image) => image.alt !== '')")
        nameless = one.evaluate(
            "[...document.querySelectorAll('button, input, select, progress')].filter((part) =>"
            " !(part.textContent.trim() || part.getAttribute('aria-label') || part.labels?.length)).length"
        )
        assert nameless == 0
    press(page, "yy")
    announced = page.inner_text("#announce")
    assert page.inner_text("#class-name") in announced
    assert "recognisable" in announced


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(
    browser: Browser, admin: Administrator, scheme: Literal["light", "dark"]
) -> None:
    page = opened(browser, color_scheme=scheme)
    page.goto(admin.server.link)
    read = "names => names.map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim())"
    pairs = [
        ("--ink", "--paper"), ("--ink", "--raised"), ("--muted", "--paper"), ("--muted", "--raised"),
        ("--accent", "--paper"), ("--on-accent", "--accent"), ("--warn", "--warn-paper"), ("--muted", "--well"),
    ]  # fmt: skip
    for pair in pairs:
        text, ground = (luminance(colour) for colour in page.evaluate(read, list(pair)))
        assert (max(text, ground) + 0.05) / (min(text, ground) + 0.05) >= 4.5, pair


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    shares = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_administrator_sees_disagreement_and_has_the_last_word(browser: Browser, admin: Administrator) -> None:
    pages = {name: at_work(browser, admin.invite(name)) for name in ("Yes-Sayer", "No-Sayer")}
    for name, page in pages.items():
        answer_everything(page, "yy" if name == "Yes-Sayer" else "ny")
    board = administrator(browser, admin.server)
    board.page.wait_for_selector("#disagreements .card")
    card = board.page.locator("#disagreements .card").first
    assert "No-Sayer" in card.inner_text()
    board.page.locator("#disagreements .card").last.get_by_role("button").last.focus()
    board.page.evaluate("refresh()")
    assert board.page.evaluate("document.activeElement.closest('.card:last-child') !== null")
    card.get_by_role("button", name="yes").first.click()
    board.page.wait_for_function(
        "() => document.querySelectorAll('#disagreements button[aria-pressed=true]').length > 0"
    )
    assert re.search(r"\d+ of \d+ answers are in", board.page.inner_text("#lead"))
    assert "[" in board.page.inner_text("#agreement")  # an interval
    row = board.page.locator("#annotators tr", has_text="Yes-Sayer").inner_text()
    assert re.search(r"\d+\.\d s", row)


def test_the_button_that_the_administrator_is_on_stays_while_answers_come_in(
    browser: Browser, admin: Administrator
) -> None:
    page = at_work(browser, admin.invite("Steady"))
    board = administrator(browser, admin.server)
    board.page.focus("button[aria-label='Leave out: Steady']")
    board.page.evaluate("void (window.focused = document.activeElement)")
    press(page, "yy")
    all_sent(page)
    board.page.evaluate("refresh()")
    assert board.page.locator("#annotators tr", has_text="Steady").locator("td").first.inner_text() == "1"
    assert board.page.evaluate("document.activeElement === window.focused")


def test_somebody_left_out_is_marked_with_the_reason_and_let_back(browser: Browser, admin: Administrator) -> None:
    page = at_work(browser, admin.invite("Left-Out"))
    press(page, "yy")
    all_sent(page)
    board = administrator(browser, admin.server)
    board.page.once("dialog", lambda dialog: dialog.accept("too fast"))
    board.page.click("button[aria-label='Leave out: Left-Out']")
    board.page.wait_for_selector("button[aria-label='Count again: Left-Out']")
    assert "too fast" in board.page.locator("#annotators tr", has_text="Left-Out").inner_text()
    board.page.click("button[aria-label='Count again: Left-Out']")
    board.page.wait_for_selector("button[aria-label='Leave out: Left-Out']")


def test_the_export_links_give_every_form(admin: Administrator) -> None:
    links = admin.page.locator("#export-title ~ p a").evaluate_all("all => all.map((one) => one.href)")
    replies = [admin.context.request.get(link) for link in links]
    assert len(replies) == 4
    assert all(reply.ok and "attachment" in reply.headers["content-disposition"] for reply in replies)


def test_an_offline_package_works_from_a_file_and_its_answers_come_in_once(
    browser: Browser, admin: Administrator, workspace: Path, tmp_path: Path
) -> None:
    verify(["package", str(workspace), "Far Away", "--count", "6", "--out", str(tmp_path / "package.zip")])
    zipfile.ZipFile(tmp_path / "package.zip").extractall(tmp_path)
    page = opened(browser, accept_downloads=True)
    page.goto((tmp_path / "counterfoil-Far-Away" / "index.html").as_uri())
    page.click("#start")
    page.wait_for_selector("#task .frame img")
    press(page, "yn" * 3)
    page.reload()  # the browser keeps them
    page.click("#start")
    press(page, "yyz")
    page.wait_for_function("() => current.earlier.only === 'yes'")
    press_names(page, "Enter", "Enter")
    press(page, "uu" * 2)
    assert page.inner_text("#count") == "6 of 6"
    with page.expect_download() as download:
        page.click("#download")
    download.value.save_as(tmp_path / "answers.json")
    assert "6 answers imported" in verify(["import", str(workspace), str(tmp_path / "answers.json")])
    assert "0 answers imported" in verify(["import", str(workspace), str(tmp_path / "answers.json")])
    answers = sorted(row["answer"] for row in admin.verdicts("Far Away"))
    assert answers == ["no"] * 3 + ["unsure"] * 4 + ["yes"] * 5


def verify(arguments: list[str]) -> str:
    done = CliRunner().invoke(commands, ["verify", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output
