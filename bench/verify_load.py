"""Concurrent annotators on a project of 5,000 pictures over real HTTP, with the server killed in the middle.

Run it from the repository: `python bench/verify_load.py`. It prints how long an answer waits for its acknowledgement
(it is on disk by then) and checks that no answer is lost, stored twice or beyond n.
Uses Debian's PostgreSQL if installed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from counterfoil.verification.database import sqlite_url
from mining_workspace import write_workspace
from postgres_server import fresh_database, postgres
from verify_annotators import Acknowledged, check_nothing_lost_or_twice, crowd, set_to_work, wait_until
from verify_site import questions_file, served

PHOTOS = 1250  # of four edited pictures each
N = 3


def measure(name: str, database: str, people: int, most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = write_workspace(Path(folder) / "workspace", PHOTOS).folder
        settings = questions_file(Path(folder), annotators=N, control_share=0)
        told = Acknowledged()
        with served(workspace, "--database", database, "--questions", settings) as site:
            workers = crowd(site, people, most)
            began = time.monotonic()
            threads = set_to_work(workers, told)
            wait_until(lambda: len(told.keys) > people * most // 2)
            half = time.monotonic() - began
            waits = sorted(told.waits)
            port = site.port
            site.kill()
        with served(workspace, "--database", database, "--port", port):
            for thread in threads:
                thread.join()
        stored = check_nothing_lost_or_twice(database, told, N)
    at = [1000 * waits[int(share * (len(waits) - 1))] for share in (0.95, 1)]
    print(
        f"{name}: {people} annotators, {stored} answers stored of {people * most}, none lost, none twice;"
        f" {len(waits) / half:.0f} acknowledgements/s; wait median {1000 * statistics.median(waits):.0f} ms,"
        f" 95 % within {at[0]:.0f} ms, longest {at[1]:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=40, help="per annotator")
    most = parser.parse_args().answers
    with tempfile.TemporaryDirectory() as folder:
        measure("SQLite", sqlite_url(Path(folder) / "load.sqlite"), 20, most)
    if any(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        with postgres() as url:
            measure("PostgreSQL", fresh_database(url, "load"), 50, most)


if __name__ == "__main__":
    main()
