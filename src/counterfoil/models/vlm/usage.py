"""What asking took: questions, requests, tokens, cost and time."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Usage:
    """A count of everything asked in one session; `plus` adds the sessions of a run that was resumed."""

    questions: int = 0
    requests: int = 0  # more than questions where something was tried again
    input_tokens: int = 0
    output_tokens: int = 0
    unmetered: int = 0  # replies that did not say how many tokens they took
    request_seconds: float = 0.0  # over all requests, also those at the same time
    waited_seconds: float = 0.0  # before further attempts
    cost: float = math.nan  # NaN where no prices were given
    outcomes: Mapping[str, int] = field(default_factory=dict)
    served: Mapping[str, int] = field(default_factory=dict)  # the models that the endpoint says it used

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        mine, theirs = asdict(self), asdict(other)
        return Usage(**{name: _sum(value, theirs[name]) for name, value in mine.items()})

    def record(self) -> dict[str, Any]:
        """As JSON, which has no NaN: an unknown cost is null."""
        return {**asdict(self), "cost": None if math.isnan(self.cost) else self.cost}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Usage:
        """The usage that a record holds."""
        return cls(**{**record, "cost": math.nan if record["cost"] is None else record["cost"]})

    @property
    def sentence(self) -> str:
        """One line for people."""
        at_least = "at least " if self.unmetered else ""
        outcomes = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(self.outcomes.items())) or "nothing asked"
        cost = "cost unknown (no prices given)" if math.isnan(self.cost) else f"cost {at_least}{self.cost:.4f}"
        return (
            f"{self.questions:,} questions ({outcomes}) in {self.requests:,} requests, {at_least}"
            f"{self.input_tokens:,} + {self.output_tokens:,} tokens, {cost}, {self.request_seconds:.0f} s of requests,"
            f" {self.waited_seconds:.0f} s of waiting"
        )


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


def _sum(mine: Any, theirs: Any) -> Any:
    return dict(Counter(mine) + Counter(theirs)) if isinstance(mine, dict) else mine + theirs
