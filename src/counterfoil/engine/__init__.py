"""Where work runs: on this machine's threads, or its processes; order is free, nothing is lost, nothing runs twice."""

from counterfoil.engine.forked import ForkedEngine
from counterfoil.engine.local import LocalEngine, cores

__all__ = ["ForkedEngine", "LocalEngine", "cores"]
