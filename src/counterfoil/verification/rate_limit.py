"""Rate limit on invalid invitation links, so that links cannot be guessed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class RateLimit:
    """Failed attempts of one address within a minute; above the limit, links without a valid signature have to wait.

    A valid link is let in at any time, since many people may share one address.
    """

    clock: Callable[[], float]
    limit: int = 10
    within_seconds: float = 60.0
    _failures: dict[str, deque[float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_reached(self, address: str) -> bool:
        """Whether this address has to wait."""
        with self._lock:
            return len(self._recent(address)) >= self.limit

    def add_failure(self, address: str) -> None:
        """Count a failed attempt."""
        with self._lock:
            self._recent(address).append(self.clock())

    def _recent(self, address: str) -> deque[float]:
        """This address's recent failures; addresses without any are dropped, so the table stays small."""
        oldest = self.clock() - self.within_seconds
        for name in [name for name, times in self._failures.items() if not times or times[-1] < oldest]:
            del self._failures[name]
        times = self._failures.setdefault(address, deque())
        while times and times[0] < oldest:
            times.popleft()
        return times
