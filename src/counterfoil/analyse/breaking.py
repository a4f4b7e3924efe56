"""Where a model breaks: the classes, the photos, and the places in the picture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Answers, original_rates, photo_rates, place_of
from counterfoil.analyse.details import Details, photo_labels
from counterfoil.analyse.interval import Bounds, Estimate, estimate
from counterfoil.analyse.mean_drop import NO_ATTRIBUTE

_LOSS = Bounds(-1.0, 1.0)  # given, since a class may have too few photos to show how far it can go


class BrokenClass(NamedTuple):
    """What a model's edits cost the photos of one class, mean over conditions, in points."""

    label: str
    drop: Estimate


class BrokenPhoto(NamedTuple):
    """A photo that models get right, and the share of its edits that they then get wrong, in percent."""

    sample_id: str
    wrong: float
    answers: int


class PositionMap(NamedTuple):
    """Accuracy by where the object's centre lies; rows from the top, columns from the left."""

    accuracy: NDArray[np.float64]  # (rows, columns), percent, NaN where no object lay
    n: NDArray[np.int64]  # (rows, columns), pictures


def worst_classes(details: Details, model: str) -> list[BrokenClass]:
    """The classes by what the edits cost them, most first; control and diagnostics left out."""
    losses = _mean_losses(details.answers)[place_of(details.answers, model)]
    label = photo_labels(details)
    rows = [BrokenClass(details.labels[c], estimate(losses[label == c], _LOSS).scaled(100)) for c in np.unique(label)]
    return sorted((row for row in rows if row.drop.n), key=lambda row: -row.drop.value)


def worst_photos(answers: Answers, *, limit: int = 20) -> list[BrokenPhoto]:
    """The photos that most often go wrong under an edit, over the models that have the original right."""
    chosen = _attribute_conditions(answers)
    rates = photo_rates(answers)[:, chosen]
    was_right = (original_rates(answers) == 1.0)[:, None, :]
    known = was_right & np.isfinite(rates)
    wrong = np.where(known, 1.0 - rates, 0.0).sum(axis=(0, 1))
    times = known.sum(axis=(0, 1))
    rows = [
        BrokenPhoto(answers.samples[p], 100 * float(wrong[p] / times[p]), int(times[p])) for p in np.flatnonzero(times)
    ]
    return sorted(rows, key=lambda row: (-row.wrong, -row.answers, row.sample_id))[:limit]


def position_map(details: Details, model: str, *, cells: int = 5) -> PositionMap:
    """Accuracy over a grid of cells x cells; pictures whose object's centre is unknown are left out."""
    answers = details.answers
    rows = answers.scored & (answers.model == place_of(answers, model)) & np.isfinite(details.centre).all(axis=1)
    places = np.clip((details.centre[rows] * cells).astype(np.intp), 0, cells - 1)
    cell = places[:, 1] * cells + places[:, 0]
    n = np.bincount(cell, minlength=cells**2)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN of an empty cell
        accuracy = 100 * np.bincount(cell, answers.correct[rows].astype(float), minlength=cells**2) / n
    return PositionMap(accuracy.reshape(cells, cells), n.reshape(cells, cells).astype(np.int64))


def _mean_losses(answers: Answers) -> NDArray[np.float64]:
    """What each photo loses, mean over the conditions answered, (models, photos)."""
    rates = photo_rates(answers)[:, _attribute_conditions(answers)]
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that says "unanswered"
        losses: NDArray[np.float64] = original_rates(answers) - np.nansum(rates, axis=1) / np.isfinite(rates).sum(
            axis=1
        )
    return losses


def _attribute_conditions(answers: Answers) -> list[int]:
    return [c for c, condition in enumerate(answers.conditions) if condition.attribute not in NO_ATTRIBUTE]
