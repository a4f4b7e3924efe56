"""How much is kept of what, how evenly, and how every model does on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from counterfoil.mine import common_wrong_answer, names_the_same, spread
from counterfoil.pipeline.mining.picked import Picked
from counterfoil.report.mining import MinedModel, SpreadRow, WrongAnswers, Yield
from counterfoil.report.mining.content import ALL, Role

_GROUPED: dict[Literal["class", "attribute"], str] = {"class": "label", "attribute": "attribute"}


def models_of(picked: Picked) -> list[MinedModel]:
    """Every model with its accuracies on originals, candidates and kept pictures."""
    first = np.zeros(len(picked.asked.candidates), bool)
    first[np.unique(picked.asked.photo, return_index=True)[1]] = True  # one picture stands for its photo's original
    found = []
    for place, model in enumerate(picked.asked.models):
        right, original = picked.said.right[place], picked.said.original[place]
        scored = np.isfinite(right)
        accuracies = (
            picked.share(original == 1, first & np.isfinite(original)),
            picked.share(right == 1, scored),
            picked.share(right == 1, scored & picked.choice.kept),
        )
        role: Role = "surrogate" if place < picked.asked.surrogates else "target"
        family = picked.job.family(model.address)
        found.append(MinedModel(model.name, role, family, model.digest, *accuracies, int((~scored).sum())))
    return found


def yields_of(picked: Picked) -> list[Yield]:
    """What the rule chose of all, then of every attribute with its edits and their levels."""
    variants = [exhibit.variant for exhibit in picked.asked.candidates]
    columns = [np.array([getattr(v, name) for v in variants], object) for name in ("attribute", "edit", "level")]
    rows = dict.fromkeys([(ALL, ALL, ALL)])
    for attribute in dict.fromkeys(v.attribute for v in variants):
        own = [v for v in variants if v.attribute == attribute]
        rows[attribute, ALL, ALL] = None
        for edit in dict.fromkeys(v.edit for v in own):
            rows[attribute, edit, ALL] = None
            rows |= dict.fromkeys((attribute, edit, v.level) for v in own if v.edit == edit)
    found = []
    for row in rows:
        among = np.ones(len(variants), bool)
        for name, column in zip(row, columns, strict=True):
            among &= (column == name) | (name == ALL)
        chosen = picked.choice.chosen & among
        found.append(Yield(*row, int(among.sum()), int(chosen.sum()), picked.share(chosen, among)))
    return found


def spreads_of(picked: Picked) -> Iterator[SpreadRow]:
    """How evenly candidates and kept pictures spread over classes and attributes."""
    for over, name in _GROUPED.items():
        groups = [str(getattr(exhibit.variant, name)) for exhibit in picked.asked.candidates]
        kept = [group for group, is_kept in zip(groups, picked.choice.kept, strict=True) if is_kept]
        yield SpreadRow(over, "candidates", spread(groups, groups), _largest(groups))
        yield SpreadRow(over, "kept", spread(kept, groups), _largest(kept))


def classes_of(picked: Picked) -> list[tuple[str, int, int]]:
    """Every class with its candidates and kept pictures, the fullest first."""
    labels = [exhibit.variant.label for exhibit in picked.asked.candidates]
    candidates = Counter(labels)
    kept = Counter(label for label, is_kept in zip(labels, picked.choice.kept, strict=True) if is_kept)
    rows = [(label, many, kept[label]) for label, many in candidates.items()]
    return sorted(rows, key=lambda row: (-row[2], -row[1], row[0]))


def wrong_answers_of(picked: Picked) -> WrongAnswers:
    """Whether the failing surrogates name the same class, and whether targets that fail there name it too."""
    surrogates = slice(0, picked.asked.surrogates)
    wrong = picked.said.right == 0
    common = common_wrong_answer(picked.asked.answers[surrogates], wrong[surrogates])
    several = picked.choice.kept & (wrong[surrogates].sum(axis=0) > 1)
    followed = names_the_same(picked.asked.answers, wrong, common)
    shared = picked.choice.kept & (common >= 0)
    return WrongAnswers(
        picked.share(common >= 0, several),
        {model.name: picked.share(followed[place], shared & wrong[place]) for place, model in picked.targets},
    )


def _largest(members: Sequence[str]) -> str:
    counts = Counter(members)
    return min(counts, key=lambda name: (-counts[name], name), default="")
