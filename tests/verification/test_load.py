"""Many annotators at once by real HTTP: nothing lost, nothing twice, nothing beyond n, also when the server dies."""

from __future__ import annotations

import resource
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.verification.database import sqlite_url
from postgres_server import fresh_database, postgres
from verify_annotators import Acknowledged, check_nothing_lost_or_twice, crowd, set_to_work, wait_until
from verify_site import build_workspace, questions_file, served

N = 3


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_workspace(tmp_path_factory.mktemp("built"), 12)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


def killed_in_the_middle(workspace: Path, database: str, people: int, most: int) -> int:
    """A crowd at work while the server is killed and started again; gives back how many answers are stored."""
    answers = Acknowledged()
    settings = questions_file(workspace.parent, annotators=N, control_share=0)
    killed = threading.Event()
    with served(workspace, "--database", database, "--questions", settings) as site:
        workers = crowd(site, people, most)
        workers[0].last_after = killed  # somebody at least is not done by then, however late we are
        threads = set_to_work(workers, answers)
        wait_until(lambda: len(answers.keys) > people)
        port = site.port
        site.kill()
        killed.set()
    acknowledged = len(answers.keys)
    with served(workspace, "--database", database, "--port", port):
        for thread in threads:
            thread.join()
    assert len(answers.keys) > acknowledged
    return check_nothing_lost_or_twice(database, answers, N)


def test_twenty_annotators_at_once_on_sqlite_with_the_server_killed(built: Path, tmp_path: Path) -> None:
    workspace = Path(shutil.copytree(built, tmp_path / "workspace"))
    assert killed_in_the_middle(workspace, sqlite_url(tmp_path / "load.sqlite"), people=20, most=8) == 20 * 8


@pytest.mark.postgres
def test_fifty_annotators_at_once_on_postgresql_with_the_server_killed(
    built: Path, tmp_path: Path, server: str
) -> None:
    workspace = Path(shutil.copytree(built, tmp_path / "workspace"))
    assert killed_in_the_middle(workspace, fresh_database(server, "load"), people=50, most=5) == 50 * 5


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
def test_a_full_disk_loses_nothing_that_was_acknowledged(built: Path, tmp_path: Path) -> None:
    workspace = Path(shutil.copytree(built, tmp_path / "workspace"))
    with served(workspace, "--questions", questions_file(tmp_path, control_share=0)) as site:
        assert site.process is not None
        browser = site.annotator("Ada")
        tasks = browser.tasks(20)
        allowed = (workspace / "verify" / "verify.sqlite-wal").stat().st_size + 40_000
        resource.prlimit(site.process.pid, resource.RLIMIT_FSIZE, (allowed, resource.RLIM_INFINITY))
        replies = [browser.answer(task, key=f"key-of-{place}").status_code for place, task in enumerate(tasks)]
        assert set(replies) == {200, 503}
        resource.prlimit(site.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        stored = browser.http.get("/api/me/progress").json()["progress"]["done"]
        assert stored == replies.count(200)
        again = {browser.answer(task, key=f"key-of-{place}").status_code for place, task in enumerate(tasks)}
        assert again == {200}
        assert browser.http.get("/api/me/progress").json()["progress"]["done"] == len(tasks)
