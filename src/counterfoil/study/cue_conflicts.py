"""Cue conflicts of a study: pictures with the shape of one class and the texture of another, and who follows what.

The texture's class is in the name of a picture (airplane1-bicycle2.png), or is that of the photo that lent a texture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Details
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.shape_bias import parse_cue_conflict, shape_bias


class ShapeDecisions(NamedTuple):
    """How one model answers where shape and texture disagree."""

    model: str
    bias: Estimate  # shape decisions / (shape + texture decisions), percent; its n counts both
    pictures: int  # with an answer

    @property
    def neither(self) -> int:
        """Answers that name neither class."""
        return self.pictures - self.bias.n


def measure_shape_decisions(details: Details) -> list[ShapeDecisions]:
    """Return one row per model; empty where no picture is a cue conflict."""
    answers, texture = details.answers, find_texture_classes(details)
    conflict = answers.scored & (texture >= 0) & (details.answer >= 0) & (texture != details.label)
    if not conflict.any():
        return []
    rows = [conflict & (answers.model == place) for place in range(len(answers.models))]
    return [
        ShapeDecisions(
            model, shape_bias(details.answer[own], details.label[own], texture[own]), pictures=int(own.sum())
        )
        for model, own in zip(answers.models, rows, strict=True)
    ]


def find_texture_classes(details: Details) -> NDArray[np.intp]:
    """The class of the texture in each row, -1 where there is none.

    A class that is neither a photo's label nor anybody's answer gets a number beyond the labels.
    """
    answers, shapes = details.answers, details.photo_labels
    places = {label.lower(): place for place, label in enumerate(details.labels)}
    by_photo = np.full(len(answers.samples), -1, np.intp)
    for photo, name in enumerate(answers.samples):
        cues = parse_cue_conflict(name)
        if cues is not None and shapes[photo] >= 0 and places.get(cues[0]) == shapes[photo]:
            by_photo[photo] = places.setdefault(cues[1], len(places))
    donated = answers.conditions_of({"texture"})[answers.condition] & (details.donor >= 0)
    return np.where(donated, details.donor, by_photo[answers.sample])
