"""The Backgrounds challenge by its published rule: a model meets a foreground on one background after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.evaluate import answers
from counterfoil.published.challenge import KIND_EVERY
from counterfoil.published.laid import EveryBackground, Meeting
from counterfoil.types import Answerer, Classifier, Prediction, Preprocessing, Variant

_ROUNDS = (8, 16, 32, 64)  # pictures asked together: few at first, since most foregrounds fall early; the last goes on


@dataclass(frozen=True)
class Surviving:
    """A model whose answer to a foreground is its first wrong one on any background, or its last where all are right.

    The answer's text says which background it was and how many were met. No picture is shown twice, and none is kept.
    """

    model: Classifier
    challenge: EveryBackground

    def __getattr__(self, name: str) -> Any:
        """Whatever else is asked of it, the model says."""
        if name in ("model", "challenge"):  # while it is being made
            raise AttributeError(name)
        return getattr(self.model, name)

    @property
    def may_recover(self) -> bool:
        """Whether a rerun could do better: not where a network's own numbers were none."""
        return isinstance(self.model, Answerer) and bool(getattr(self.model, "may_recover", True))

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    @property
    def labels(self) -> Sequence[str]:
        """The model's."""
        return self.model.labels

    @property
    def preprocessing(self) -> Preprocessing | None:
        """The model's."""
        return self.model.preprocessing

    @property
    def digest(self) -> str:
        """The model's."""
        return self.model.digest

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        return self.model(images)

    def among(self, labels: Sequence[str]) -> Classifier:
        """The same model: which labels compete was settled before."""
        return self

    def answers(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """One prediction per variant; originals are asked as they are."""
        plain = [place for place, variant in enumerate(variants) if variant.level != KIND_EVERY.level]
        asked = [variants[place] for place in plain]
        found = dict(
            zip(plain, answers(self.model, asked, [images[place] for place in plain], _ROUNDS[-1]), strict=True)
        )
        return [found[place] if place in found else self._survival(variant) for place, variant in enumerate(variants)]

    def _survival(self, variant: Variant) -> Prediction:
        met, last = 0, Prediction(variant.id, (), (), float("nan"), "error", "no background was met")
        for meetings in _in_rounds(self.challenge.meetings(variant)):
            images = [meeting.image for meeting in meetings]
            told = answers(self.model, [variant] * len(images), images, len(images))
            for meeting, last in zip(meetings, told, strict=True):
                met += 1
                if last.outcome != "scored":
                    return last
                if last.ranked[0] != variant.label:
                    return replace(last, text=f"wrong on {meeting.ground}, number {met:,} of the backgrounds met")
        return replace(last, text=f"right on all {met:,} backgrounds that could be met")


def _in_rounds(meetings: Iterator[Meeting]) -> Iterator[list[Meeting]]:
    sizes = iter(_ROUNDS)
    while found := list(islice(meetings, next(sizes, _ROUNDS[-1]))):
        yield found
