"""How far a run is, read from its folder by any machine: parts, pace, failures, machine time."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.progress import describe_seconds
from counterfoil.store.failures import FailureStore
from counterfoil.store.merged_tables import describe_kind
from counterfoil.store.parts import PartStore
from counterfoil.store.piece_plan import PiecePlan, read_plan

MOST_RECORDS = 2000  # that are read: at an address each is a file to fetch
_LAST_SECONDS = 600.0  # the pace is that of the last ten minutes in which parts were made


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """The state of a run: pieces and parts of all and those there, and what the parts' records say."""

    pieces: int
    pieces_done: int
    parts: int
    done: int  # parts
    pictures: int  # with the answers of one model each, or none where no model is asked
    pace: float  # pictures a second, lately
    seconds_left: float | None
    machine_seconds: float
    kinds: tuple[str, ...]  # of machines
    failures: tuple[dict[str, Any], ...]
    finished: bool  # whether the tables are written


def open_plan(folder: Path) -> PiecePlan:
    """The plan of the run in a folder; raises `UserError` where there is none."""
    plan = read_plan(folder)
    if plan is None and _was_painted(folder):
        raise UserError(
            f"expected the folder of a run with its plan, got the painted workspace '{folder}': the command that"
            " painted it, without --shard, joins its shards"
        )
    if plan is None:
        raise UserError(f"expected the folder of a run with its plan, got '{folder}', which has no work/plan.json")
    return plan


def _was_painted(folder: Path) -> bool:
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and bool(record.get("painter"))


def read_status(folder: Path) -> RunStatus:
    """The state of the run in a folder; of very many parts some records are read and scaled up."""
    plan, store = open_plan(folder), PartStore(folder / "work" / "parts")
    there = store.names()
    wanted = [(name, model) for name, _, _, model in plan.parts()]
    done = [(name, model) for name, model in wanted if name in there]
    taken = sorted(done)[:MOST_RECORDS]  # names are hashes: the first are a fair sample
    factor = len(done) / len(taken) if taken else 1.0
    records = [(store.about(name), model) for name, model in taken]
    counted = [record for record, model in records if model is not None or not plan.models]
    pace = factor * measure_pace([(record["ended"], record["rows"], record["seconds"]) for record in counted])
    left = len(wanted) - len(done)
    rows = sum(record["rows"] for record in counted)
    per_part = rows / len(records) if records else 0.0  # of all parts, since all that are missing are left
    pieces = [all(name in there for name in names) for names in plan.parts_of_pieces()]
    return RunStatus(
        pieces=len(pieces),
        pieces_done=sum(pieces),
        parts=len(wanted),
        done=len(done),
        pictures=round(factor * rows),
        pace=pace,
        seconds_left=left * per_part / pace if pace and left else (None if left else 0.0),
        machine_seconds=_sum_seconds(records) if factor == 1 else factor * _estimate_seconds(plan, records),
        kinds=tuple(kind for kind, _ in Counter(describe_kind(record) for record, _ in records).most_common()),
        failures=tuple(FailureStore(folder / "work" / "failed").read()),
        finished=(folder / "variants.parquet").is_file(),
    )


def _sum_seconds(records: Sequence[tuple[dict[str, Any], str | None]]) -> float:
    """The seconds of all pieces; the parts that a piece wrote together have the same record of time."""
    by_piece = {(record["start"], record["seconds"], record["ended"]): record["seconds"] for record, _ in records}
    return float(sum(by_piece.values()))


def _estimate_seconds(plan: PiecePlan, records: Sequence[tuple[dict[str, Any], str | None]]) -> float:
    """The seconds of the pieces of some parts: those of a part divided by the models of its group."""
    share = {model: 1 / len(group) for group in plan.groups for model in group}
    alone = 0.0 if plan.models else 1.0  # of pictures, which are made with the answers where models are asked
    return float(sum(record["seconds"] * (alone if model is None else share[model]) for record, model in records))


def measure_pace(parts: list[tuple[float, int, float]]) -> float:
    """Pictures a second over the last minutes of work, from when each part ended, its rows and its seconds."""
    if not parts:
        return 0.0
    last = max(ended for ended, _, _ in parts)
    recent = [part for part in parts if part[0] >= last - _LAST_SECONDS]
    began = min(ended - seconds for ended, _, seconds in recent)
    return sum(rows for _, rows, _ in recent) / max(last - began, 1e-3)


def describe_status(status: RunStatus) -> list[str]:
    """The state of a run in lines."""
    share = 100 * status.done / status.parts if status.parts else 100.0
    pieces = f"pieces: {status.pieces_done:,} of {status.pieces:,} done"
    lines = [f"{pieces}, parts: {status.done:,} of {status.parts:,} ({share:.0f} %)"]
    if status.pictures:
        left = "" if status.seconds_left is None else f", about {describe_seconds(status.seconds_left)} left"
        left = "" if status.done == status.parts else left
        lines.append(f"pictures: {status.pictures:,} shown to models or made, {status.pace:,.1f} a second lately{left}")
    lines.append(f"machine time: {describe_seconds(status.machine_seconds)}")
    if len(status.kinds) > 1:
        lines += [f"kinds of machines: {len(status.kinds)}", *(f"  {kind}" for kind in status.kinds)]
    for row in status.failures:
        models = f" with {', '.join(row['models'])}" if row["models"] else ""
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(row["ended"]))
        lines.append(
            f"failed {row['attempts']} times: photos {row['start'] + 1} to {row['stop']}{models} ({when} UTC):"
            f" {row['reason']}"
        )
    if status.done == status.parts and not status.finished:
        lines.append("all parts are there: `counterfoil shards merge` writes the tables")
    return lines
