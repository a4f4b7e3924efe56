"""Two implementations of the same work, measured in turns, A B A B ..., each turn in its own process.

Background load changes over time but hits both measurements of a pair alike, so only ratios within a pair are used, and
their median is reported.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# glibc gives large blocks back to the system and fetches them again for every batch unless told not to. It is told
# for both sides; other C libraries ignore these.
TUNED_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
    "MALLOC_TOP_PAD_": str(2**26),
}

QUIET = 0.1  # share of the machine that other programs may use


class Turn(NamedTuple):
    """One way, done once."""

    wall_seconds: float
    cpu_seconds: float  # of the process and all its children
    others_share: float  # of the machine's CPU time in that while, used by anything else; NaN where it is not known
    found: Any


class Ratios(NamedTuple):
    """How many times as long the usual way takes as ours: medians over the quiet pairs, over all where none was."""

    wall: float
    cpu: float
    lowest_wall: float
    highest_wall: float
    quiet_pairs: int
    pairs: int


def report_turn(work: Callable[[], Any]) -> None:
    """In the child: do the work, and print how long it took and what it found."""
    cpu, wall, machine = _cpu_seconds(), time.perf_counter(), _machine_seconds()
    found = work()
    cpu, wall = _cpu_seconds() - cpu, time.perf_counter() - wall
    others = _machine_seconds() - machine - cpu
    print(json.dumps(Turn(wall, cpu, others / (wall * (os.cpu_count() or 1)), found)))


def turn(script: str, *arguments: object) -> Turn:
    """Run one of the scripts beside this file and read what it reports."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **TUNED_MALLOC}, stdout=subprocess.PIPE, text=True, check=True)
    return Turn(*json.loads(done.stdout.splitlines()[-1]))


def in_turns(usual: Callable[[], Turn], ours: Callable[[], Turn], repetitions: int) -> list[tuple[Turn, Turn]]:
    """Pairs of (usual, ours); the order within a pair changes, so that neither always comes first."""
    pairs = []
    for repetition in range(repetitions):
        if repetition % 2:
            second, first = ours(), usual()
        else:
            first, second = usual(), ours()
        pairs.append((first, second))
    return pairs


def ratios(pairs: Sequence[tuple[Turn, Turn]]) -> Ratios:
    """Medians over the pairs, and how far the wall-clock ratios spread."""
    # Threads that wait for one another, torch's among them, lose more on a busy machine than others do.
    quiet = [pair for pair in pairs if max(turn.others_share for turn in pair) <= QUIET]
    counted = quiet or pairs
    wall = [usual.wall_seconds / ours.wall_seconds for usual, ours in counted]
    cpu = [usual.cpu_seconds / ours.cpu_seconds for usual, ours in counted]
    return Ratios(statistics.median(wall), statistics.median(cpu), min(wall), max(wall), len(quiet), len(pairs))


def line_of(name: str, found: Ratios) -> str:
    """The ratios for people, with a warning where they mean little."""
    spread = f"{found.lowest_wall:.2f} to {found.highest_wall:.2f}"
    line = f"{name}: {found.wall:.2f}x by the clock ({spread}), {found.cpu:.2f}x in CPU time"
    if found.quiet_pairs:
        return f"{line}; {found.quiet_pairs} of {found.pairs} pairs on a quiet machine"
    return f"{line}; the machine was busy with other programs all the while: measure again when it is idle"


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _machine_seconds() -> float:
    """CPU time that all programs together have used since the start, and what a hypervisor took away."""
    if not Path("/proc/stat").exists():
        return float("nan")
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(
        int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    )
    return (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")
