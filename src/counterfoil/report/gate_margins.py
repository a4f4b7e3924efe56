"""The gate against a baseline: margins on how much more an attribute may cost, and the verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from counterfoil.errors import UserError, did_you_mean
from counterfoil.report.gate import Bound, Check, decide, find_too_few
from counterfoil.report.words import format_count, format_number, name_attribute
from counterfoil.statistics.growth import ACCURACY, MOST_PHOTOS, Growth, photos_to_fail, photos_to_hold

_CLEARLY = 2.0  # times the margin: what was measured is then taken for the true growth, where photos are counted


@dataclass(frozen=True)
class Margins:
    """By how many points a loss may grow: for everything, and for single attributes."""

    everything: float | None = None  # None: only the named attributes are held to a margin
    named: Mapping[str, float] = field(default_factory=dict)

    def of(self, attribute: str) -> float | None:
        """The margin of an attribute; None where it has none."""
        return self.named.get(attribute, self.everything)


def parse_margins(texts: Sequence[str]) -> Margins:
    """Parse margins as typed: 2 for everything, background=2 for one attribute, accuracy=1 for unedited photos."""
    everything: float | None = None
    named: dict[str, float] = {}
    for text in texts:
        name, equals, points = text.rpartition("=")
        try:
            value = float(points)
        except ValueError:
            value = math.nan
        if not 0 <= value <= 100 or (equals and not name):
            raise UserError(f"expected --margin POINTS or ATTRIBUTE=POINTS such as 2 or background=2, got '{text}'")
        if name in named or (not equals and everything is not None):
            raise UserError(f"expected one --margin for {name or 'everything'}, got two, the second '{text}'")
        if equals:
            named[name] = value
        else:
            everything = value
    return Margins(everything, named)


def judge_growth(rows: Sequence[Growth], model: str, margins: Margins, bound: Bound) -> list[Check]:
    """Hold every attribute of a model to its margin; raises `UserError` where a margin names no attribute."""
    names = [row.attribute for row in rows]
    for name in margins.named:
        if name not in names:
            offer = did_you_mean(name, names, "")
            raise UserError(f"expected a margin for one of {', '.join(names)}, got '{name}'{offer}")
    return [_judge(row, model, margin, bound) for row in rows if (margin := margins.of(row.attribute)) is not None]


def _judge(row: Growth, model: str, margin: float, bound: Bound) -> Check:
    subject = "errors on the unedited photos" if row.attribute == ACCURACY else name_attribute(row.attribute)
    if few := find_too_few(row.n):
        return Check(model, subject, "cannot tell", f"{model}, {subject}: {few}", limit=margin)
    verdict = decide((row.low, row.growth, row.high), margin, bound)
    photos = _count_photos(row, margin) if verdict == "cannot tell" else 0
    message = f"{model}, {subject}: {_describe_growth(row)}; {margin:g} more is allowed"
    return Check(
        model, subject, verdict, message + (f"; {_describe_photos(row, margin, photos)}" if photos else ""),
        before=row.before, after=row.after, measured=row.growth, low=row.low, high=row.high, limit=margin, n=row.n,
        photos=photos, spread=row.spread,
    )  # fmt: skip


def _describe_growth(row: Growth) -> str:
    change = f"{format_number(row.growth)} more [{format_number(row.low)}, {format_number(row.high)}]"
    if row.attribute == ACCURACY:
        right = f"right on {format_number(100 - row.after)} %, {format_number(100 - row.before)} % before"
        return f"{right}: wrong on {change}, n = {row.n}"
    return f"loses {format_number(row.after)} points, {format_number(row.before)} before: {change}, n = {row.n}"


def _count_photos(row: Growth, margin: float) -> int:
    """The photos that would decide with 80 %: that it holds if nothing changed, or that it fails if it grew so much."""
    if row.growth > _CLEARLY * margin:
        return photos_to_fail(row.spread, margin, growth=row.growth, attribute=row.attribute)
    return photos_to_hold(row.spread, margin) if margin > 0 else MOST_PHOTOS + 1


def _describe_photos(row: Growth, margin: float, photos: int) -> str:
    fails = row.growth > _CLEARLY * margin
    if margin == 0 and not fails:
        return "no number of photos proves a margin of 0"
    if photos > MOST_PHOTOS:
        return f"more than {format_count(MOST_PHOTOS)} photos would be needed to decide"
    if fails:
        return f"about {format_count(photos)} photos would show that it does, if it grew by {format_number(row.growth)}"
    return f"about {format_count(photos)} photos would show that it holds, if nothing changed"
