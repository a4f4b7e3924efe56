"""Who gets in and who does not, by real HTTP against the served page."""

from __future__ import annotations

import json
import select
import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from click.testing import CliRunner

from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.store.parquet import read_table
from counterfoil.verification.server_address import resolve_address
from verify_site import YES, Browser, Site, build_workspace, command, hosted, questions_file, served

HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_workspace(tmp_path_factory.mktemp("secure"), 2)


@pytest.fixture(scope="module")
def site(workspace: Path) -> Iterator[Site]:
    with hosted(workspace) as found:
        yield found


@pytest.fixture(scope="module")
def ada(site: Site) -> Browser:
    return site.annotator("Ada")


@pytest.fixture(scope="module")
def eve(site: Site) -> Browser:
    return site.annotator("Eve")


@pytest.mark.parametrize(
    "path",
    ["/", "/annotate", "/admin", "/picture/anything", "/admin/picture/1", "/api/me/progress", "/api/admin/summary",
     "/api/admin/export.csv", "/api/admin/export.json", "/api/admin/label-studio"],
)  # fmt: skip
def test_nobody_without_a_session_sees_anything(site: Site, path: str) -> None:
    reply = Browser(site.url).http.get(path)
    assert reply.status_code == 401
    assert len(reply.content) < 2000
    assert "keep cookies" in reply.text  # or whoever forbids them would open the link for ever


@pytest.mark.parametrize("path", ["/api/next", "/api/answer", "/api/undo", "/api/leave", "/api/admin/invite",
                                  "/api/admin/revoke", "/api/admin/exclude", "/api/admin/adjudicate"])  # fmt: skip
def test_nobody_without_a_session_changes_anything(site: Site, path: str) -> None:
    assert Browser(site.url).post(path, {}).status_code == 401


def test_pages_that_describe_the_server_are_not_there(ada: Browser) -> None:
    assert {ada.http.get(path).status_code for path in ("/docs", "/redoc", "/openapi.json")} == {404}


def test_an_annotator_does_not_reach_the_administrators_side(ada: Browser) -> None:
    for path in ("/admin", "/admin/picture/1", "/api/admin/summary", "/api/admin/export.csv"):
        assert ada.http.get(path).status_code == 403
    for path, content in (
        ("/api/admin/invite", {"name": "Mallory", "role": "admin"}), ("/api/admin/revoke", {"annotator": "Eve"}),
        ("/api/admin/exclude", {"annotator": "Eve", "excluded": True}),
        ("/api/admin/adjudicate", {"id": 1, "question": "only", "answer": "yes"}),
    ):  # fmt: skip
        assert ada.post(path, content).status_code == 403


def test_an_annotator_neither_sees_nor_changes_what_is_anothers(site: Site, ada: Browser, eve: Browser) -> None:
    mine = ada.tasks(3)
    assert ada.http.get(mine[0]["picture"]).status_code == 200
    assert ada.answer(mine[0]).status_code == 200
    for task in mine:
        assert eve.http.get(task["picture"]).status_code == 404
        assert eve.answer(task, {"recognisable": "no", "only": "no"}).status_code == 409
    assert eve.post("/api/undo", {}).json()["task"] is None
    rows = json.loads(site.administrator().http.get("/api/admin/export.json").text)["verdicts"]
    assert {(row["annotator"], row["answer"]) for row in rows} == {("Ada", "yes")}


def test_each_annotator_has_names_of_their_own_for_the_same_pictures(ada: Browser, eve: Browser) -> None:
    names = [{task[key] for task in who.tasks(20) for key in ("task", "picture")} for who in (ada, eve)]
    assert not names[0] & names[1]


def test_pictures_are_not_kept_by_shared_caches(ada: Browser) -> None:
    reply = ada.http.get(ada.tasks(1)[0]["picture"])
    assert reply.headers["cache-control"].startswith("private")
    assert reply.headers["vary"] == "Cookie"
    assert reply.headers["content-type"] == "image/png"
    assert ada.http.get("/annotate").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["../../secret", "..%2f..%2fverify%2fsecret", "%2e%2e/%2e%2e/verify/verify.sqlite", "/etc/passwd", "%00"]
)
def test_no_path_leads_out_of_the_page(site: Site, ada: Browser, path: str) -> None:
    for start in ("/picture/", "/static/", "/admin/picture/", "/"):
        request = f"GET {start}{path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nCookie: {'='.join(ada.cookie)}\r\n"
        reply = _raw(site, request.encode() + b"Connection: close\r\n\r\n")
        status = int(reply.split()[1])
        assert status in (403, 404, 400, 422), reply[:200]
        assert b"root:" not in reply
        assert b"SQLite" not in reply


def test_a_change_without_the_pages_token_is_refused(site: Site, ada: Browser, eve: Browser) -> None:
    task = ada.tasks(1)[0]
    content = {"task": task["task"], "answers": YES, "seconds": 1.0, "key": "forged-key"}
    before = ada.http.get("/api/me/progress").json()
    for token in ("", eve.csrf, "0" * 64):
        assert ada.http.post("/api/answer", json=content, headers={"X-CSRF-Token": token}).status_code == 403
    assert ada.http.post("/api/answer", json=content).status_code == 403
    assert ada.http.get("/api/me/progress").json() == before


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"},
                                     {"Sec-Fetch-Site": "cross-site"}])  # fmt: skip
def test_a_change_from_another_page_is_refused_even_with_the_token(ada: Browser, headers: dict[str, str]) -> None:
    assert ada.post("/api/next", {"count": 1}, **headers).status_code == 403


def test_the_pages_own_origin_is_let_through(site: Site, ada: Browser) -> None:
    assert ada.post("/api/next", {"count": 1}, Origin=site.url).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1:80.evil.example"])
def test_another_host_name_is_not_answered(ada: Browser, host: str) -> None:
    assert ada.http.get("/annotate", headers={"Host": host}).status_code == 421


def test_a_session_that_was_planted_is_not_taken_up(site: Site) -> None:
    link = site.invite("Fixed")
    browser = Browser(site.url)
    browser.http.cookies.set(browser.cookie[0], "planted-by-somebody-else", domain="127.0.0.1")
    browser.open(link)
    first = _session(browser)
    assert first != "planted-by-somebody-else"
    browser.open(link)
    second = _session(browser)
    assert second != first
    old = Browser(site.url)
    old.http.cookies.set(browser.cookie[0], first, domain="127.0.0.1")
    assert old.http.get("/annotate").status_code == 401


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(site: Site) -> None:
    cookie = Browser(site.url).http.get(site.invite("Cookie")).headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=lax", "path=/"))


def test_leaving_ends_the_session(site: Site) -> None:
    browser = site.annotator("Leaver")
    session = _session(browser)
    assert browser.post("/api/leave", {}).status_code == 200
    again = Browser(site.url)
    again.http.cookies.set(browser.cookie[0], session, domain="127.0.0.1")
    assert again.http.get("/annotate").status_code == 401


def test_every_reply_carries_the_headers_that_browsers_obey(site: Site, ada: Browser) -> None:
    for path in ("/annotate", "/static/look.css", "/nothing", "/api/me/progress", ada.tasks(1)[0]["picture"]):
        headers = ada.http.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_oversized_bodies_are_refused_whatever_their_headers_say(site: Site, ada: Browser) -> None:
    assert ada.post("/api/answer", {"task": "x" * 100_000}).status_code == 413
    head = (
        f"POST /api/next HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nCookie: {'='.join(ada.cookie)}\r\n"
        f"X-CSRF-Token: {ada.csrf}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    assert b" 413 " in _raw(site, head.encode() + chunk * 5 + b"0\r\n\r\n").split(b"\r\n")[0]


@pytest.mark.parametrize(("length", "status"), [(20, 403), (100_000, 413)])
def test_a_refusal_reaches_somebody_who_is_still_sending(site: Site, length: int, status: int) -> None:
    head = (
        f"POST /api/next HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nOrigin: https://evil.example\r\n"
        f"Content-Length: {length}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", site.port), timeout=300) as line:
        line.sendall(head.encode())
        select.select([line], [], [], 0.2)  # in vain, if all is well: it does not hang up on what is still to come
        line.sendall(b" " * length)
        reply = b"".join(iter(lambda: line.recv(65536), b""))
    assert int(reply.split()[1]) == status
    assert b'"error"' in reply


def test_malformed_requests_are_refused_without_a_trace(site: Site, ada: Browser) -> None:
    wrong: list[object] = [{"count": -1}, {"count": "many"}, {"count": 1, "more": 1}, [], None]
    for content in wrong:
        reply = ada.post("/api/next", content)
        assert reply.status_code == 422
        assert "Traceback" not in reply.text
    task = ada.tasks(1)[0]["task"]
    good = {"task": task, "answers": YES, "seconds": 1, "key": "some-good-key"}
    for bad in ({"seconds": -1}, {"seconds": "NaN"}, {"key": "x"}, {"key": "'; DROP TABLE people; --"},
                {"answers": {"only": {"a": 1}}}, {"task": "x" * 500}):  # fmt: skip
        assert ada.post("/api/answer", {**good, **bad}).status_code == 422
    for place in ("99999999999999999999", "-1", "one"):
        assert site.administrator().http.get(f"/admin/picture/{place}").status_code == 422
    for body in (b"[" * 60_000, b'{"count": ' + b"9" * 5000 + b"}", b'{"count": NaN}', b"\xff", b""):
        headers = {"X-CSRF-Token": ada.csrf, "Content-Type": "application/json"}
        assert ada.http.post("/api/next", content=body, headers=headers).status_code in (400, 422)


def test_text_from_people_and_files_stays_text(tmp_path: Path) -> None:
    workspace = build_workspace(tmp_path, 2, crimson=HOSTILE)
    question = {"id": "seen", "text": f"Is {{class}} seen? {HOSTILE}", "help": HOSTILE}
    settings = questions_file(tmp_path, name=HOSTILE, instructions=HOSTILE, questions=[question])
    with hosted(workspace, settings) as site:
        browser = site.annotator(HOSTILE)
        pages = [browser.http.get("/annotate").text, site.administrator().http.get("/admin").text]
        tasks = browser.post("/api/next", {"count": 20})
        missing = browser.http.get(f"/picture/{quote(HOSTILE)}").text
        summary = site.administrator().http.get("/api/admin/summary")
    for page in (*pages, missing):
        assert HOSTILE not in page
        assert "<img src=x" not in page
    assert tasks.headers["content-type"] == summary.headers["content-type"] == "application/json"
    assert tasks.json()["tasks"][0]["questions"][0]["text"].endswith(HOSTILE)
    assert HOSTILE in {task["class_name"] for task in tasks.json()["tasks"]}


def test_links_can_be_neither_guessed_nor_changed_and_tries_are_limited(workspace: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(workspace, tmp_path / "copy", ignore=shutil.ignore_patterns("verify")))
    with hosted(copy) as site:
        link = site.invite("Ada")
        stranger = Browser(site.url)
        head, token = link.rsplit("/", 1)
        body, signature = token.split(".")
        for forged in ("", "x", body, f"{body}.{signature[::-1]}", f"{body[:-2]}AA.{signature}", f"{token}A"):
            assert stranger.http.get(f"{head}/{forged}").status_code in (403, 404)
        statuses = [stranger.http.get(f"{head}/{place}.{signature}").status_code for place in range(20)]
        assert set(statuses) == {403, 429}
        assert statuses[-1] == 429
        assert Browser(site.url).http.get(link).status_code == 303  # people share addresses: a valid link is let in
        assert stranger.http.get(f"{head}/0.{signature}").status_code == 429


def test_revoked_replaced_and_expired_links_let_nobody_in(site: Site, workspace: Path) -> None:
    admin = site.administrator()
    link = site.invite("Gone")
    browser = site.visit(link)
    assert admin.post("/api/admin/revoke", {"annotator": "Gone"}).status_code == 200
    assert browser.http.get("/annotate").status_code == 401
    assert Browser(site.url).http.get(link).status_code == 403
    newer = site.invite("Gone")
    assert Browser(site.url).http.get(link).status_code == 403
    let_in = site.visit(newer)
    newest = site.invite("Gone")
    assert let_in.http.get("/annotate").status_code == 401  # by a link that may have leaked
    assert Browser(site.url).http.get(newest).status_code == 303
    told = command("invite", workspace, "Short", "--days", "0.000000001", "--port", site.port)
    assert Browser(site.url).http.get(told.output.split(": ", 1)[1].strip()).status_code == 403


def test_an_invitation_for_an_annotator_does_not_make_an_administrator(site: Site, ada: Browser) -> None:
    reply = site.administrator().post("/api/admin/invite", {"name": "Ada", "role": "admin"})
    assert reply.status_code == 409
    assert ada.http.get("/admin").status_code == 403


def test_the_secret_and_the_answers_belong_to_their_owner_alone(site: Site, workspace: Path) -> None:
    folder = workspace / "verify"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "secret").stat().st_mode) == 0o600
    data = (folder / "verify.sqlite").read_bytes() + (folder / "verify.sqlite-wal").read_bytes()
    assert _session(site.annotator("Stored")).encode() not in data
    (folder / "secret").chmod(0o644)
    refused = command("invite", workspace, "Ada")
    (folder / "secret").chmod(0o600)
    assert isinstance(refused.exception, UserError)
    assert "chmod 600" in str(refused.exception)


def test_the_page_listens_on_this_machine_alone_unless_told_otherwise(site: Site) -> None:
    assert site.url.startswith("http://127.0.0.1:")
    with pytest.raises(UserError, match="expected --url with --host"):
        resolve_address("0.0.0.0", 8642, None)
    assert resolve_address("0.0.0.0", 8642, "https://verify.example.org").origins >= {"https://verify.example.org"}


def test_what_to_do_for_tls_is_said(workspace: Path, tmp_path: Path) -> None:
    refused = CliRunner().invoke(commands, ["verify", "serve", str(workspace), "--host", "0.0.0.0"])
    assert isinstance(refused.exception, UserError)
    assert "TLS" in str(refused.exception)


def test_behind_tls_the_cookie_goes_over_nothing_else(workspace: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(workspace, tmp_path / "copy", ignore=shutil.ignore_patterns("verify")))
    with served(copy, "--url", "https://verify.example.org") as site:
        assert site.link.startswith("https://verify.example.org/join/")
        link = site.link.replace("https://verify.example.org", site.url)
        reply = httpx2.get(link, headers={"Host": "verify.example.org", "X-Forwarded-For": "203.0.113.9"})
    assert reply.status_code == 303
    told = reply.headers["set-cookie"]
    assert told.startswith("__Host-session=")
    assert "Secure" in told
    assert "max-age" in reply.headers["strict-transport-security"]


def test_file_names_of_the_workspace_are_told_to_nobody(site: Site, workspace: Path, ada: Browser) -> None:
    told = ada.http.get("/annotate").text + json.dumps(ada.tasks(20))
    table = read_table(workspace / "variants.parquet")
    assert not any(str(name) in told for column in ("id", "sample_id") for name in table[column])
    assert str(workspace) not in told


def _session(browser: Browser) -> str:
    return browser.cookie[1]


def _raw(site: Site, request: bytes) -> bytes:
    """A request to the byte: clients tidy paths up before they send them."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=300) as line:
        line.sendall(request)
        reply = b""
        while b"\r\n\r\n" not in reply:
            part = line.recv(65536)
            if not part:
                break
            reply += part
    return reply
