"""A real Ray cluster of a head and two nodes of one core on this machine, whose workers can be killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from locations import HELPERS

_MEMORY = 80_000_000  # of each node's object store: pixels never pass through it
_MARK = "COUNTERFOIL_TEST_CLUSTER"  # a variable that the cluster's processes inherit: other clusters may run here


@contextmanager
def start_cluster() -> Iterator[Any]:
    """A cluster inside the block, its two nodes in `workers`; their processes find the helpers of tests."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        patch.setenv("RAY_worker_niceness", "0")  # by default workers give way to all other processes
        patch.setenv(_MARK, str(os.getpid()))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(HELPERS), os.environ.get("PYTHONPATH")])))
        head = {"num_cpus": 0, "object_store_memory": _MEMORY, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.workers = [cluster.add_node(num_cpus=1, object_store_memory=_MEMORY) for _ in range(2)]
        try:
            yield cluster
        finally:
            cluster.shutdown()


def count_parts(out: Path) -> int:
    """The finished parts in a run's folder."""
    return len(list((out / "work" / "parts").glob("[!.]*")))


def wait_for_parts(out: Path, count: int) -> None:
    """Return when a run's folder holds so many parts."""
    while count_parts(out) < count:
        time.sleep(0.05)


def kill_worker() -> bool:
    """Kill one process of an actor of this process's cluster with SIGKILL; returns whether there was one."""
    mark = f"{_MARK}={os.getpid()}".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            name, surroundings = path.read_bytes().split(b"\0")[0], (path.parent / "environ").read_bytes()
        except OSError:
            continue
        if name.startswith(b"ray::RayWorker") and mark in surroundings.split(b"\0"):
            os.kill(int(path.parent.name), signal.SIGKILL)
            return True
    return False
