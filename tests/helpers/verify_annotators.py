"""Many annotators at once, each a thread with its own connection that retries while the server is down."""

from __future__ import annotations

import http.client
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from counterfoil.verification import schema
from counterfoil.verification.database import Database
from verify_site import YES, Site

_PATIENCE_SECONDS = 300.0


@dataclass
class Acknowledged:
    """The answers of all annotators that the server has acknowledged."""

    keys: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)  # seconds from the answer to its acknowledgement
    refused: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, key: str, seconds: float) -> None:
        """Note one more."""
        with self.lock:
            self.keys.append(key)
            self.waits.append(seconds)


@dataclass
class Worker:
    """One annotator, who answers a given number of pictures and sends every second answer twice."""

    port: int
    cookie: str
    csrf: str
    most: int
    last_after: threading.Event | None = None  # what the last answer waits for

    def work(self, told: Acknowledged) -> None:
        """Answer until enough is done or nothing is left."""
        done = 0
        while done < self.most:
            tasks = self._post("/api/next", {"count": min(3, self.most - done)})["tasks"]
            if not tasks:
                return
            for task in tasks:
                if self.last_after is not None and done == self.most - 1:
                    self.last_after.wait()
                self._answer(task["task"], told, twice=done % 2 == 0)
                done += 1

    def _answer(self, task: str, told: Acknowledged, twice: bool) -> None:
        content = {"task": task, "answers": YES, "seconds": 1.0, "key": secrets.token_hex(16)}
        for _ in range(2 if twice else 1):
            began = time.monotonic()
            reply = self._post("/api/answer", content)
            if reply.get("ok"):
                told.add(str(content["key"]), time.monotonic() - began)
            else:
                told.refused.append(str(reply))

    def _post(self, path: str, content: object) -> dict[str, Any]:
        """Send until there is an answer, as the page does while the server is down."""
        body = json.dumps(content)
        headers = {"Cookie": self.cookie, "X-CSRF-Token": self.csrf, "Content-Type": "application/json"}
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
                line.request("POST", path, body, headers)
                reply = line.getresponse()
                found: dict[str, Any] = json.loads(reply.read())
                line.close()
            except (OSError, http.client.HTTPException, ValueError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                if reply.status < 500:
                    return found


def crowd(site: Site, people: int, most: int) -> list[Worker]:
    """That many annotators who have joined."""
    browsers = [site.annotator(f"person {place}") for place in range(people)]
    return [Worker(site.port, "=".join(one.cookie), one.csrf, most) for one in browsers]


def set_to_work(workers: Sequence[Worker], told: Acknowledged) -> list[threading.Thread]:
    """Start all annotators at once."""
    threads = [threading.Thread(target=worker.work, args=(told,)) for worker in workers]
    for thread in threads:
        thread.start()
    return threads


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until the condition holds; fail after the time limit."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def check_nothing_lost_or_twice(url: str, told: Acknowledged, most: int) -> int:
    """Every acknowledged answer is stored once; no picture has too many annotators, no annotator a picture twice."""
    database = Database(url)
    with database.reading() as connection:
        submissions, assignments = schema.submissions.c, schema.assignments.c
        stored = list(connection.execute(select(submissions.key)).scalars())
        answers = connection.execute(select(func.count()).select_from(schema.answers)).scalar_one()
        held = connection.execute(
            select(assignments.person_id, assignments.picture_id).where(assignments.state.in_(("open", "done")))
        ).all()
        taken = {row.id: row.taken for row in connection.execute(select(schema.pictures.c.id, schema.pictures.c.taken))}
    database.close()
    per_picture = Counter(picture for _, picture in held)
    assert told.refused == []
    assert len(stored) == len(set(stored)) == answers / len(YES)
    assert set(told.keys) == set(stored)
    assert max(per_picture.values()) <= most
    assert len({tuple(row) for row in held}) == len(held)
    assert taken == {picture: per_picture[picture] for picture in taken}
    return len(stored)
