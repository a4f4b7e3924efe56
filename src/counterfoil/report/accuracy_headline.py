"""What a person wants to know first of pictures that have no original beside them."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.analyse import FEWEST_PHOTOS
from counterfoil.analyse.accuracies import ALL, GroupAccuracy
from counterfoil.report.finding import NO_ATTRIBUTE, Finding
from counterfoil.report.wording import attribute_name, count, interval, listed, number, sentence_start

_MOST_NAMED = 6  # kinds in a sentence; nuisances come by the hundred


def accuracy_headline(rows: Sequence[GroupAccuracy], surrogates: Sequence[str]) -> list[Finding]:
    """The accuracy of each model, where it is lowest, and what tells the models apart."""
    overall = [row for row in rows if row.overall]
    enough = [row for row in overall if row.photos >= FEWEST_PHOTOS]
    if not enough:
        return [Finding("", "data", _too_little(overall))]
    found = [finding for row in enough for finding in (_accuracy(row), *_lowest(rows, row.model))]
    return [*found, *_models(enough, surrogates)]


def _accuracy(row: GroupAccuracy) -> Finding:
    told = f"right on {number(row.top1.value)} % {interval(row.top1)} of the pictures"
    if row.top5.n:
        told += f", and the truth is among its five best answers on {number(row.top5.value)} % {interval(row.top5)}"
    told += f" (n = {count(row.top1.n)})."
    return Finding(row.model, "accuracy", f"{row.model} is {told}", brief=sentence_start(told))


def _lowest(rows: Sequence[GroupAccuracy], model: str) -> list[Finding]:
    """The kind of picture that a model is right on least often, as far as the intervals tell."""
    kinds = [row for row in kinds_of(rows) if row.model == model and row.photos >= FEWEST_PHOTOS]
    if len(kinds) < 2:
        return []
    lowest, *others = sorted(kinds, key=lambda row: row.top1.value)
    near = [row for row in others if row.top1.ci_low <= lowest.top1.ci_high]
    rate = lowest.top1
    told = f"Lowest on {kind_name(lowest)}: {number(rate.value)} % {interval(rate)} (n = {count(rate.n)})"
    if near:
        names = [kind_name(row) for row in near]
        told += f"; {listed(names) if len(near) <= _MOST_NAMED else f'{len(near)} other kinds'} may be as low"
    return [Finding(model, "weakest", f"{told}.")]


def kinds_of(rows: Sequence[GroupAccuracy]) -> list[GroupAccuracy]:
    """The coarsest division of the pictures that has more than one part: by attribute, by edit, by level."""
    telling = [row for row in rows if not row.overall and row.attribute not in NO_ATTRIBUTE]
    if len({row.attribute for row in telling}) > 1:
        return attributes_of(rows)
    edits = {row.edit for row in telling if row.edit != ALL}
    if len(edits) > 1:
        return [row for row in telling if row.edit != ALL and (row.level == ALL) == _divided(telling, row.edit)]
    return [row for row in telling if row.level != ALL]


def attributes_of(rows: Sequence[GroupAccuracy]) -> list[GroupAccuracy]:
    """Every attribute as a whole, for each model: its first group, since rows come from coarse to fine."""
    telling = [row for row in rows if not row.overall and row.attribute not in NO_ATTRIBUTE]
    first: dict[str, tuple[str, str]] = {}
    for row in telling:
        first.setdefault(row.attribute, (row.edit, row.level))
    return [row for row in telling if (row.edit, row.level) == first[row.attribute]]


def _divided(rows: Sequence[GroupAccuracy], edit: str) -> bool:
    return any(row.edit == edit and row.level == ALL for row in rows)


def kind_name(row: GroupAccuracy) -> str:
    """What people call a kind of picture."""
    if row.edit == ALL:
        return attribute_name(row.attribute)
    return row.edit if row.level in (ALL, "", row.edit) else f"{row.edit} {row.level}"


def _models(overall: Sequence[GroupAccuracy], surrogates: Sequence[str]) -> list[Finding]:
    judged = sorted((row for row in overall if row.model not in surrogates), key=lambda row: -row.top1.value)
    left_out = " Surrogates are left out of this comparison." if len(judged) < len(overall) else ""
    if len(judged) < 2:
        return []
    best, *others = judged
    clear = [row for row in others if not set(row.letters) & set(best.letters)]
    if not clear:
        told = "The pictures do not tell the models apart overall: a ranking of them would be noise."
        return [Finding("", "models", told + left_out)]
    tied = [row.model for row in others if row not in clear]
    told = f"Overall {best.model} is right more often than {listed([row.model for row in clear])}"
    told += f" ({number(best.top1.value)} % against {listed([f'{number(row.top1.value)} %' for row in clear])})"
    told += f"; it cannot be told apart from {listed(tied)}" if tied else ""
    return [Finding("", "models", f"{told}.{left_out}")]


def _too_little(overall: Sequence[GroupAccuracy]) -> str:
    most = max((row.photos for row in overall), default=0)
    if most == 0:
        return "No data: no picture was scored, so nothing can be said."
    return f"Too few pictures: at most {most} were scored, and {FEWEST_PHOTOS} are the least."
