"""What an edit costs in another photo's scene, where no hole is filled, beside what it costs on the photo's own ground.

The edits in a scene declare which edit is the same change on the photo's own background. Older runs and tables have a
combination of a swapped background and another edit instead.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.registry import own_ground_of, reference_of
from counterfoil.statistics.answers import Answers
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.photo_tests import estimate_mean
from counterfoil.statistics.references import find_crossed, list_conditions, locate_edits, reference_losses
from counterfoil.types import EditLevel

SWAP = "background-swap"
_UNKNOWN = Estimate(math.nan, math.nan, math.nan, 0)


class NaturalGround(NamedTuple):
    """What an edit costs one model on two grounds, over the photos that have all pictures; in points."""

    model: str
    edit: EditLevel  # "size 0.05"
    ground: EditLevel  # what the edit in the scene is compared with: "scene-swap random", or "scene-size 0.05"
    drop: Estimate  # in the scene, against the ground
    own_drop: Estimate  # on the photo's own background, filled, against its reference; NaN where it is not in the table
    difference: Estimate  # drop - own_drop

    @property
    def is_clear(self) -> bool:
        """Whether the edit is shown to cost something in the other scene; 95 %, this row alone."""
        return self.drop.ci_low > 0


class _Pair(NamedTuple):
    """The conditions that one row compares."""

    both: int  # position of the edit in the scene
    ground: EditLevel
    edit: EditLevel


def measure_natural_ground(answers: Answers) -> list[NaturalGround]:
    """The drop of each edit that the table also holds in another scene, model by model."""
    pairs = [pair for place in list_conditions(answers) if (pair := _find_pair(answers, place)) is not None]
    return [_measure(answers, model, pair) for model in range(len(answers.models)) for pair in pairs]


def prefer_scene(answers: Answers, own: EditLevel) -> EditLevel:
    """An edit on the photo's own background, or the same in another scene where that could use more photos.

    More photos, not more points: the choice looks at no answer, so that it spends nothing of the level of the tests.
    """
    places = locate_edits(answers)
    scene = next((other for other in places if own_ground_of(*other) == own), None)
    if scene is None:
        return own
    photos = [_count_photos(answers, places[each]) if each in places else 0 for each in (own, scene)]
    return scene if photos[1] > photos[0] else own


def _count_photos(answers: Answers, place: int) -> int:
    """The photos that some model answered under a condition and under its reference."""
    return int(np.isfinite(reference_losses(answers, place)).any(axis=0).sum())


def _find_pair(answers: Answers, place: int) -> _Pair | None:
    condition, places = answers.conditions[place], locate_edits(answers)
    own = own_ground_of(condition.edit, condition.level)
    ground = reference_of(condition.edit, condition.level)
    if own is not None and ground is not None:
        return _Pair(place, ground, own) if ground in places else None
    parts = find_crossed(answers, place)
    if parts is None or parts[0].edit != SWAP or parts[0] not in places:
        return None
    return _Pair(place, *parts)


def _measure(answers: Answers, model: int, pair: _Pair) -> NaturalGround:
    places, rates = locate_edits(answers), answers.rates[model]
    drop = rates[places[pair.ground]] - rates[pair.both]  # (samples,)
    if pair.edit not in places:
        return NaturalGround(answers.models[model], pair.edit, pair.ground, _points(drop), _UNKNOWN, _UNKNOWN)
    own = reference_losses(answers, places[pair.edit])[model]
    known = np.isfinite(drop) & np.isfinite(own)
    return NaturalGround(
        model=answers.models[model],
        edit=pair.edit,
        ground=pair.ground,
        drop=_points(drop[known]),
        own_drop=_points(own[known]),
        difference=estimate_mean(drop[known] - own[known], 4).scaled(100),
    )


def _points(losses: NDArray[np.float64]) -> Estimate:
    return estimate_mean(losses).scaled(100)
