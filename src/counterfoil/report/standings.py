"""The lines of a leaderboard: which stand first, and which are left out where there is room for few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

MANY = 40  # rows; more are ranked, and a terminal or a report shows a part of them
_SHORT = 24  # characters; a longer remark stands below the table
_PLAIN = "top-1"
_LOWER_IS_BETTER = ("mCE", "CE, ", "error", "clean error", "mean error", "drop", "mean drop", "bg_gap")


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard: a model's numbers in one source."""

    model: str
    values: Mapping[str, float]  # by condition
    source: str
    note: str = ""  # of the whole source
    own: bool = False  # from a run of the reader's, not published
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    remark: str = ""  # of this line alone
    same: bool = False  # published, of a model that is among the reader's own

    @property
    def told(self) -> str:
        """Where the numbers are from, and what to know of them."""
        remark = "" if self.beside else self.remark
        return one_line("; ".join(part for part in (self.source, remark, self.note) if part))

    @property
    def beside(self) -> str:
        """The remark where it is short enough to stand in the line."""
        return one_line(self.remark) if len(self.remark) <= _SHORT else ""


@dataclass(frozen=True)
class Leaderboard:
    """What is known of a benchmark: one's own models first, then what was published."""

    benchmark: str
    standings: tuple[Standing, ...]

    @property
    def conditions(self) -> list[str]:
        """The columns, one's own first, each once."""
        return list(dict.fromkeys(name for standing in self.standings for name in standing.values))

    @property
    def leading(self) -> str:
        """The condition that orders the lines: plain top-1, or what most published ones have, and one's own."""
        own = {name for standing in self.standings if standing.own for name in standing.values}
        counted = Counter(name for standing in self.standings if not standing.own for name in standing.values)
        shared = {name: count for name, count in counted.items() if name in own} or counted or Counter(own)
        return _PLAIN if _PLAIN in shared else max(self.conditions, key=lambda name: shared.get(name, 0))

    def ranked(self) -> Leaderboard:
        """One's own first, what was published of the same models next, then the best; a short board stays as it is."""
        if len(self.standings) <= MANY:
            return self
        conditions = [self.leading, *(name for name in self.conditions if name != self.leading)]
        return replace(self, standings=tuple(sorted(self.standings, key=lambda row: _place(row, conditions))))

    def shortened(self, most: int) -> Leaderboard:
        """At most so many of the others: the nearest to one's own numbers, or the best where there are none."""
        name = self.leading
        own = [row.values[name] for row in self.standings if row.own and name in row.values]
        others = [row for row in self.standings if not row.own and not row.same]
        if own:
            others = sorted(others, key=lambda row: _distance(row, name, own))
        kept = {id(row) for row in others[:most]}
        return replace(self, standings=tuple(r for r in self.standings if r.own or r.same or id(r) in kept))


def one_line(text: str) -> str:
    """A stranger's text without line breaks, which would end a row."""
    return " ".join(text.split())


def _place(row: Standing, conditions: Sequence[str]) -> tuple[bool, bool, int, float]:
    """By the first of the conditions that a line has; lines of another condition stand below."""
    place, name = next((place, name) for place, name in enumerate(conditions) if name in row.values)
    sign = 1 if name.startswith(_LOWER_IS_BETTER) else -1
    return not row.own, not row.same, place, sign * row.values[name]


def _distance(row: Standing, name: str, own: Sequence[float]) -> float:
    return min(abs(row.values[name] - value) for value in own) if name in row.values else float("inf")
