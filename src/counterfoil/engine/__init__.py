"""Where work runs: on this machine's threads; order is free, nothing is lost, nothing runs twice."""

from counterfoil.engine.local import LocalEngine

__all__ = ["LocalEngine"]
