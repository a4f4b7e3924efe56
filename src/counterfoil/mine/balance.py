"""How evenly what was kept spreads over classes and attributes, and a choice that spreads evenly."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias, TypeVar

Balance: TypeAlias = Literal["class", "attribute", "both"]
Group = TypeVar("Group", bound=Hashable)


class Spread(NamedTuple):
    """How evenly pictures spread over groups; a group that has none counts as a group."""

    groups: int  # among the candidates
    filled: int  # with a kept picture
    evenness: float  # entropy over the most there could be: 1 even, 0 all in one group; NaN with one group
    effective: float  # how many equal groups would have the same entropy
    gini: float  # 0 even, towards 1 all in one group
    largest: float  # share of the pictures in the largest group


def spread(kept: Iterable[Group], candidates: Iterable[Group]) -> Spread:
    """The spread of the kept pictures' groups over the groups that candidates come from."""
    counts = Counter(dict.fromkeys(candidates, 0))
    counts.update(kept)
    sizes, total = sorted(counts.values()), sum(counts.values())
    if not total:
        return Spread(len(sizes), 0, math.nan, math.nan, math.nan, math.nan)
    entropy = -sum(size / total * math.log(size / total) for size in sizes if size)
    ranked = sum(rank * size for rank, size in enumerate(sizes, start=1))
    return Spread(
        groups=len(sizes),
        filled=sum(size > 0 for size in sizes),
        evenness=(entropy + 0.0) / math.log(len(sizes)) if len(sizes) > 1 else math.nan,
        effective=math.exp(entropy),
        gini=2 * ranked / (len(sizes) * total) - (len(sizes) + 1) / len(sizes),
        largest=sizes[-1] / total,
    )


def balanced(groups: Mapping[str, Group], most: int | None = None) -> tuple[list[str], int]:
    """The ids kept when every group may have `most` (the smallest group's number), and that number.

    Which go is settled by the hash of the id, so that it depends on nothing else: the same picture wins again.
    """
    members: dict[Group, list[str]] = {}
    for name, group in groups.items():
        members.setdefault(group, []).append(name)
    limit = most or min((len(names) for names in members.values()), default=0)
    chosen = {name for names in members.values() for name in sorted(names, key=_lot)[:limit]}
    return [name for name in groups if name in chosen], limit


def group_of(balance: Balance, label: str, attribute: str) -> tuple[str, ...]:
    """What a picture is balanced by: its class, its attribute, or both together."""
    return {"class": (label,), "attribute": (attribute,), "both": (label, attribute)}[balance]


def _lot(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
