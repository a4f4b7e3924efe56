"""What asking took: questions, requests, tokens, cost and time."""

from __future__ import annotations

import threading

from counterfoil.types import Usage

__all__ = ["Meter", "Usage"]


class Meter:
    """Adds up usage from several threads."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._usage = Usage(cost=0.0)

    def add(self, more: Usage) -> None:
        """Count something; whoever has no price adds NaN to the cost."""
        with self._one_at_a_time:
            self._usage = self._usage.plus(more)

    @property
    def usage(self) -> Usage:
        """The count so far."""
        with self._one_at_a_time:
            return self._usage
