"""Annotators who answer at a human pace for some minutes: does the server's memory stay flat?

Run it from the repository: `python bench/verify_soak.py --minutes 10`. It prints the server's resident memory and
open files over time, and compares the last quarter with the second.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from counterfoil.verification.database import sqlite_url
from mining_workspace import write_workspace
from verify_annotators import Acknowledged, Worker, check_nothing_lost_or_twice, crowd, set_to_work
from verify_site import questions_file, served

N = 3
PEOPLE = 20
SAMPLES = 40


@dataclass
class PatientWorker(Worker):
    """An annotator who waits before each request."""

    pause: float = 1.0

    def _post(self, path: str, content: object) -> dict[str, Any]:
        time.sleep(self.pause)
        return super()._post(path, content)


def read_memory(process: int) -> float:
    """Resident memory in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--photos", type=int, default=1250, help="of four edited pictures each")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = write_workspace(Path(folder) / "workspace", given.photos).folder
        settings = questions_file(Path(folder), annotators=N, control_share=0)
        database, told = sqlite_url(Path(folder) / "soak.sqlite"), Acknowledged()
        most = 4 * given.photos * N // PEOPLE
        with served(workspace, "--database", database, "--questions", settings) as site:
            assert site.process is not None
            pause = 60 * given.minutes / most / 2
            workers = [
                PatientWorker(one.port, one.cookie, one.csrf, most, None, pause) for one in crowd(site, PEOPLE, most)
            ]
            threads = set_to_work(workers, told)
            memory, files = [], []
            end = time.monotonic() + 60 * given.minutes
            while time.monotonic() < end and any(thread.is_alive() for thread in threads):
                time.sleep(60 * given.minutes / SAMPLES)
                memory.append(read_memory(site.process.pid))
                files.append(len(list(Path(f"/proc/{site.process.pid}/fd").iterdir())))
            for worker in workers:
                worker.most = 0  # they finish what they are at
            for thread in threads:
                thread.join()
        stored = check_nothing_lost_or_twice(database, told, N)
    quarter = len(memory) // 4
    early, late = statistics.median(memory[quarter : 2 * quarter]), statistics.median(memory[-quarter:])
    print(f"MB over time: {', '.join(f'{value:.0f}' for value in memory)}")
    print(
        f"{given.minutes:g} minutes, {PEOPLE} annotators, {stored} answers, none lost, none twice; resident memory"
        f" {early:.1f} MB in the second quarter, {late:.1f} MB in the last ({100 * (late / early - 1):+.1f} %);"
        f" open files at most {max(files)}"
    )


if __name__ == "__main__":
    main()
