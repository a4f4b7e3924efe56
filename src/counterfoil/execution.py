"""Where a run is executed: by threads or processes here, by a Ray cluster, or as one shard of a batch scheduler."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from counterfoil.errors import UserError

# the variables in which schedulers say which task of how many this is, and the number of the first task
_SCHEDULERS = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"),
    ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", ""),
    ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", ""),
)

LOCAL = ("local", "threads", "processes")  # engines of this machine; "local" chooses between the other two


@dataclass(frozen=True)
class WorkShard:
    """One of several processes that share a run's pieces; numbers begin at 1."""

    number: int
    count: int

    def takes(self, piece: int) -> bool:
        """Whether the piece of this number, from 0, is this shard's."""
        return piece % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True)
class Execution:
    """Who works on the pieces of a run."""

    engine: str = "local"  # one of LOCAL, "ray" or "ray:ADDRESS"
    shard: WorkShard | None = None

    def __post_init__(self) -> None:
        known = isinstance(self.engine, str) and (self.engine in (*LOCAL, "ray") or self.engine.startswith("ray:"))
        if not known:
            raise UserError(f"expected --engine {', '.join(LOCAL)}, ray or ray:ADDRESS, got '{self.engine}'")
        if self.engine not in LOCAL and self.shard is not None:
            raise UserError("expected --engine ray or --shard, got both: Ray shares the work out itself; leave one out")

    @property
    def ray_address(self) -> str | None:
        """The address of the Ray cluster, empty for the one that Ray finds or starts; None without Ray."""
        return None if self.engine in LOCAL else self.engine.partition(":")[2]


def parse_shard(text: str, environment: Mapping[str, str] = os.environ) -> WorkShard:
    """A shard from I/N, or from a batch scheduler's variables where the text is "auto"."""
    if text == "auto":
        return _read_scheduler(environment)
    number, slash, count = text.partition("/")
    if not slash or not number.isdecimal() or not count.isdecimal():
        raise UserError(f"expected --shard I/N, such as 1/8, or auto, got '{text}'")
    return _check_shard(WorkShard(int(number), int(count)), f"'{text}'")


def _read_scheduler(environment: Mapping[str, str]) -> WorkShard:
    for number, count, first in _SCHEDULERS:
        if number not in environment:
            continue
        if count not in environment:
            raise UserError(
                f"expected the number of tasks in {count} beside {number}, which is not set; set it, or say --shard I/N"
            )
        values = [environment[number], environment[count], environment.get(first, "0")]
        if not all(value.isdecimal() for value in values):
            raise UserError(f"expected whole numbers in {number} and {count}, got '{values[0]}' and '{values[1]}'")
        place, total, least = map(int, values)
        return _check_shard(WorkShard(place - least + 1, total), f"{number}={place} of {count}={total}")
    names = ", ".join(number for number, *_ in _SCHEDULERS)
    raise UserError(f"expected a batch scheduler for --shard auto, but none of {names} is set; say --shard I/N")


def _check_shard(shard: WorkShard, given: str) -> WorkShard:
    if not 1 <= shard.number <= shard.count:
        raise UserError(f"expected a shard from 1/N to N/N, got {given}")
    return shard
