"""The estimates of mining: accuracies on kept pictures, yield, transfer to targets, spread, shared wrong answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.mining.balanced_selection import Group, MinedAnswers
from counterfoil.mining.mining_results import (
    ALL,
    MinedModel,
    Role,
    Spread,
    SpreadRow,
    Transfer,
    WrongAnswers,
    Yield,
)
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.photo_shares import (
    PhotoCounts,
    PhotoShare,
    estimate_share,
    mover_interval,
    pooled_share,
)


def estimate_transfers(picked: MinedAnswers) -> list[Transfer]:
    """Estimate the transfer to every target."""
    return [_transfer(picked, model.name, picked.job.family(model.address), [place]) for place, model in picked.targets]


def estimate_families(picked: MinedAnswers) -> list[Transfer]:
    """Estimate the transfer to each family of targets: a pair of target and picture counts once."""
    members: dict[str, list[int]] = {}
    for place, model in picked.targets:
        members.setdefault(picked.job.family(model.address), []).append(place)
    return [_transfer(picked, name, name, places) for name, places in members.items()]


def _transfer(picked: MinedAnswers, name: str, family: str, places: Sequence[int]) -> Transfer:
    right, original = picked.said.right[list(places)], picked.said.original[list(places)]
    chose = {picked.job.family(model.address) for model in picked.asked.models[: picked.asked.surrogates]}
    failing = _contrast(picked, right == 0, np.isfinite(right))
    lost = _contrast(picked, right == 0, np.isfinite(right) & (original == 1))
    return Transfer(name, family, family not in chose, *failing, *lost)


def _contrast(
    picked: MinedAnswers, hits: NDArray[np.bool_], among: NDArray[np.bool_]
) -> tuple[Estimate, Estimate, Estimate]:
    """The contrast for the pictures that the rule kept."""
    return contrast_kept(hits, among, picked.choice.kept, picked.photos)


def contrast_kept(
    hits: NDArray[np.bool_], among: NDArray[np.bool_], chosen_pictures: NDArray[np.bool_], photos: PhotoCounts
) -> tuple[Estimate, Estimate, Estimate]:
    """The share on the kept pictures, on all candidates, and their difference; over all pairs of model and picture."""
    chosen = np.broadcast_to(chosen_pictures, among.shape)
    kept, everything, rest, part = (
        pooled_share(what, of, photos)
        for what, of in ((hits, among & chosen), (hits, among), (hits, among & ~chosen), (chosen, among))
    )
    of_kept, of_all = (estimate_share(found).scaled(100) for found in (kept, everything))
    return of_kept, of_all, _difference(kept, rest, part).scaled(100)


def _difference(kept: PhotoShare, rest: PhotoShare, part: PhotoShare) -> Estimate:
    """The difference of kept and all pictures: kept minus rest, times the share of the rest; all three are uncertain.

    The kept pictures are among all, so an interval from the two overlapping shares would be too narrow.
    """
    n = round(kept.pictures)
    if not n or part.value == 1:  # nothing to compare where none or all are kept
        return Estimate(math.nan, math.nan, math.nan, n)
    others, gap = 1 - part.value, kept.value - rest.value
    terms = [(others, kept), (-others, rest), (-gap, part)]
    return Estimate(others * gap, *mover_interval(terms, others * gap), n)


_GROUPED: dict[Literal["class", "attribute"], str] = {"class": "label", "attribute": "attribute"}


def estimate_models(picked: MinedAnswers) -> list[MinedModel]:
    """Estimate every model's accuracies on originals, candidates and kept pictures."""
    first = np.zeros(len(picked.asked.candidates), bool)
    first[np.unique(picked.asked.photo, return_index=True)[1]] = True  # one picture per photo, for the photo's original
    models = []
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
        models.append(MinedModel(model.name, role, family, model.digest, *accuracies, int((~scored).sum())))
    return models


def estimate_yields(picked: MinedAnswers) -> list[Yield]:
    """Estimate the share that the rule selected: of all, then of every attribute with its edits and their levels."""
    variants = [stored.variant for stored in picked.asked.candidates]
    columns = [np.array([getattr(v, name) for v in variants], object) for name in ("attribute", "edit", "level")]
    rows = dict.fromkeys([(ALL, ALL, ALL)])
    for attribute in dict.fromkeys(v.attribute for v in variants):
        own = [v for v in variants if v.attribute == attribute]
        rows[attribute, ALL, ALL] = None
        for edit in dict.fromkeys(v.edit for v in own):
            rows[attribute, edit, ALL] = None
            rows |= dict.fromkeys((attribute, edit, v.level) for v in own if v.edit == edit)
    yields = []
    for row in rows:
        among = np.ones(len(variants), bool)
        for name, column in zip(row, columns, strict=True):
            among &= (column == name) | (name == ALL)
        chosen = picked.choice.chosen & among
        yields.append(Yield(*row, int(among.sum()), int(chosen.sum()), picked.share(chosen, among)))
    return yields


def estimate_spreads(picked: MinedAnswers) -> Iterator[SpreadRow]:
    """Measure how evenly candidates and kept pictures are spread over classes and attributes."""
    for over, name in _GROUPED.items():
        groups = [str(getattr(stored.variant, name)) for stored in picked.asked.candidates]
        kept = [group for group, is_kept in zip(groups, picked.choice.kept, strict=True) if is_kept]
        yield SpreadRow(over, "candidates", measure_spread(groups, groups), _largest(groups))
        yield SpreadRow(over, "kept", measure_spread(kept, groups), _largest(kept))


def count_classes(picked: MinedAnswers) -> list[tuple[str, int, int]]:
    """Return every class with its candidates and kept pictures, the largest first."""
    labels = [stored.variant.label for stored in picked.asked.candidates]
    candidates = Counter(labels)
    kept = Counter(label for label, is_kept in zip(labels, picked.choice.kept, strict=True) if is_kept)
    rows = [(label, many, kept[label]) for label, many in candidates.items()]
    return sorted(rows, key=lambda row: (-row[2], -row[1], row[0]))


def estimate_wrong_answers(picked: MinedAnswers) -> WrongAnswers:
    """Estimate whether the failing surrogates name the same class, and whether failing targets name it too."""
    surrogates = slice(0, picked.asked.surrogates)
    wrong = picked.said.right == 0
    common = find_common_answer(picked.asked.answers[surrogates], wrong[surrogates])
    several = picked.choice.kept & (wrong[surrogates].sum(axis=0) > 1)
    followed = repeats_common_answer(picked.asked.answers, wrong, common)
    shared = picked.choice.kept & (common >= 0)
    return WrongAnswers(
        picked.share(common >= 0, several),
        {model.name: picked.share(followed[place], shared & wrong[place]) for place, model in picked.targets},
    )


def _largest(members: Sequence[str]) -> str:
    counts = Counter(members)
    return min(counts, key=lambda name: (-counts[name], name), default="")


def measure_spread(kept: Iterable[Group], candidates: Iterable[Group]) -> Spread:
    """Measure the spread of the kept pictures over the groups of the candidates."""
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


NO_ANSWER = -1


def find_common_answer(answers: NDArray[np.intp], wrong: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The class that all failing surrogates name, (pictures,); -1 where they differ or fewer than two fail.

    Both arguments are (surrogates, pictures); an answer is the position of a class, -1 where there is none.
    """
    failing = wrong & (answers >= 0)
    highest = np.where(failing, answers, -1).max(axis=0, initial=-1)
    lowest = np.where(failing, answers, np.iinfo(np.intp).max).min(axis=0, initial=np.iinfo(np.intp).max)
    return np.where((failing.sum(axis=0) > 1) & (highest == lowest), highest, NO_ANSWER)


def repeats_common_answer(
    answers: NDArray[np.intp], wrong: NDArray[np.bool_], common: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Where a failing model names the surrogates' common class, (models, pictures)."""
    return np.asarray(wrong & (common >= 0) & (answers == common))
