"""The remedy `last-layer` over the three folds: fitted, chosen and judged on parts that share no photo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from counterfoil.remedies.last_layer import (
    ChosenFit,
    Features,
    LastLayerSettings,
    Rows,
    choose_fit,
    fit_rows,
    old_rows,
    write_rows,
)
from counterfoil.remedies.network_file import NetworkFile, WrittenNetwork
from counterfoil.remedies.photo_parts import FOLDS
from counterfoil.remedies.picture_answers import PhotoAnswers
from counterfoil.remedies.repair_config import LAST_LAYER


@dataclass(frozen=True, kw_only=True)
class LayerFolds:
    """The fitted layers: one for each fold, which never saw the photos it is judged on, and one of all photos."""

    folds: tuple[WrittenNetwork, ...]
    final: WrittenNetwork
    chosen: tuple[ChosenFit, ...]
    judged: list[list[PhotoAnswers]]  # of each part, with the answers of its fold added
    choosing: list[list[PhotoAnswers]]  # of each fold, answered by a layer fitted on the fitting part alone
    left_out: dict[str, list[list[PhotoAnswers]]]  # by attribute: judged by layers that were fitted without it


@dataclass(frozen=True)
class LayerFitter:
    """What the fits have in common."""

    network: NetworkFile
    columns: NDArray[np.int64]  # of the photos' classes
    settings: LastLayerSettings
    fitting: Sequence[Sequence[PhotoAnswers]]  # features of the pictures to fit on, part by part
    mined: Sequence[tuple[frozenset[int], PhotoAnswers]] = ()  # further pictures, with the parts of their photos

    def features(self, parts: Sequence[int], without: Collection[str] = ()) -> Features:
        """The features of the pictures of some parts, every photo with the same weight, and of mined pictures."""
        photos = [photo for part in parts for photo in self.fitting[part]]
        photos += [photo for needed, photo in self.mined if needed <= set(parts)]
        return Features.join([_collect(photo, without) for photo in photos if _has(photo, without)])

    def fit(self, parts: Sequence[int], chosen: ChosenFit, without: Collection[str] = ()) -> Rows:
        """The layer of some parts with the chosen settings."""
        old = old_rows(self.network.last_layer)
        fitted = fit_rows(old, self.features(parts, without), self.columns, chosen.strength, self.settings)
        return old.toward(fitted, chosen.share)

    def answer(self, photos: Sequence[PhotoAnswers], rows: Rows, name: str = LAST_LAYER) -> list[PhotoAnswers]:
        """The photos with the layer's answers added."""
        return [self._answer(photo, rows, name) for photo in photos]

    def _answer(self, photo: PhotoAnswers, rows: Rows, name: str) -> PhotoAnswers:
        if photo.features is None:  # no picture of it could be made
            none = np.zeros(0, np.int64)
            return replace(photo, answers={**photo.answers, name: none}, among={**photo.among, name: none})
        scores = rows.scores(photo.features)
        best = np.asarray(scores.argmax(axis=1), np.int64)
        among = self.columns[scores[:, self.columns].argmax(axis=1)]
        return replace(photo, answers={**photo.answers, name: best}, among={**photo.among, name: among})


def fit_folds(fitter: LayerFitter, judged: Sequence[list[PhotoAnswers]]) -> LayerFolds:
    """Fit, choose and judge in turn.

    Args:
        fitter: The network, the columns, the settings and the pictures to fit on.
        judged: Features of the pictures to judge by, part by part; other edits and seeds.
    """
    old = old_rows(fitter.network.last_layer)
    chosen, rows, choosing = [], [], []
    for fold in FOLDS:
        fit_on = fitter.features([fold.fitting])
        own = [row for row in fitter.mined if row[0] == {fold.choosing}]  # others may have been fitted on
        choose_on = replace(fitter, mined=own).features([fold.choosing])
        choice = choose_fit(old, fit_on, choose_on, fitter.columns, fitter.settings)
        chosen.append(choice)
        rows.append(fitter.fit([fold.fitting, fold.choosing], choice))
        choosing.append(fitter.answer(judged[fold.choosing], fitter.fit([fold.fitting], choice)))
    usual = _most_frequent(chosen)
    return LayerFolds(
        folds=tuple(_write(fitter, layer, choice) for layer, choice in zip(rows, chosen, strict=True)),
        final=_write(fitter, fitter.fit(range(len(FOLDS)), usual), usual),
        chosen=tuple(chosen),
        judged=[fitter.answer(judged[fold.judging], layer) for fold, layer in zip(FOLDS, rows, strict=True)],
        choosing=choosing,
        left_out={name: _leave_out(fitter, judged, (name, chosen)) for name in _attributes(fitter.fitting)},
    )


def _leave_out(
    fitter: LayerFitter,
    judged: Sequence[list[PhotoAnswers]],
    about: tuple[str, Sequence[ChosenFit]],
) -> list[list[PhotoAnswers]]:
    """The judged photos, answered by layers that were fitted without one attribute."""
    attribute, chosen = about
    parts = []
    for fold, choice in zip(FOLDS, chosen, strict=True):
        layer = fitter.fit([fold.fitting, fold.choosing], choice, without={attribute})
        parts.append(fitter.answer(judged[fold.judging], layer))
    return parts


def _write(fitter: LayerFitter, rows: Rows, choice: ChosenFit) -> WrittenNetwork:
    count = len(fitter.columns)
    note = f"last layer fitted for {count} classes: strength {choice.strength:g}, {choice.share:.0%} of the way"
    return write_rows(fitter.network, rows, note)


def _collect(photo: PhotoAnswers, without: Collection[str]) -> Features:
    assert photo.features is not None
    kept = [place for place, row in enumerate(photo.conditions) if row.attribute not in without]
    columns = np.full(len(kept), photo.label, np.int64)
    return Features(photo.features[kept], columns, np.full(len(kept), 1.0 / len(kept)))


def _has(photo: PhotoAnswers, without: Collection[str]) -> bool:
    return photo.features is not None and any(row.attribute not in without for row in photo.conditions)


def _attributes(parts: Sequence[Sequence[PhotoAnswers]]) -> list[str]:
    named = dict.fromkeys(row.attribute for part in parts for photo in part for row in photo.conditions)
    return [name for name in named if name != "original"]


def _most_frequent(chosen: Sequence[ChosenFit]) -> ChosenFit:
    """The settings that most folds chose; of equals those nearest to the old weights."""
    counts = Counter((choice.strength, choice.share) for choice in chosen)
    return max(chosen, key=lambda row: (counts[row.strength, row.share], row.strength, -row.share))
