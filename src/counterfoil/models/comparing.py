"""A model in reduced precision, held against itself in full precision on the first pictures."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.evaluate import ModelBase
from counterfoil.types import Model, Preprocessing

COMPARED = 256  # pictures asked twice; enough to see a percent of changed answers


def _counts() -> Any:
    """Pictures compared and answers changed, counted by threads and by forked processes alike."""
    return multiprocessing.Array("q", 2)


@dataclass(frozen=True)
class ComparedClassifier(ModelBase):
    """Answers in reduced precision and counts how many top-1 answers that changed."""

    reduced: Model
    exact: Model
    precision: str
    _counted: Any = field(default_factory=_counts, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The address, and the precision it runs in."""
        return f"{self.reduced.name} ({self.precision})"

    @property
    def labels(self) -> Sequence[str]:
        """The name of each column."""
        return self.reduced.labels

    @property
    def preprocessing(self) -> Preprocessing | None:
        """What is done to a picture before the network sees it."""
        return self.reduced.preprocessing

    @property
    def digest(self) -> str:
        """Hash of the weights in full precision."""
        return self.reduced.digest

    @property
    def note(self) -> str:
        """How far the reduced precision can be trusted."""
        compared, changed = self._counted
        return f"{self.precision} changed {changed} of {compared} top-1 answers against f32"

    @property
    def device(self) -> str:
        """Where the model runs."""
        return self.reduced.device

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        scores = self.reduced(images)
        if images and self._counted[0] < COMPARED:
            changed = int((scores.argmax(1) != self.exact(images).argmax(1)).sum())
            with self._counted.get_lock():
                self._counted[0] += len(images)
                self._counted[1] += changed
        return scores
