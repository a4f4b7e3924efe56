"""A model of one's own: `python:module:factory`, where `factory()` returns a classifier."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.own_code import made_by, source_digest, told_of
from counterfoil.types import Preprocessing


@dataclass(frozen=True)
class PythonClassifier:
    """Lifts what a factory returned to a classifier: one call at a time, answers checked."""

    name: str
    labels: tuple[str, ...]
    preprocessing: Preprocessing | None
    digest: str
    model: Any
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        failed = f"{self.name} failed on {len(images)} {'picture' if len(images) == 1 else 'pictures'}"
        with self._one_at_a_time, told_of(failed, "; what is finished is kept"):
            scores = np.asarray(self.model(images), np.float32)
        if scores.shape != (len(images), len(self.labels)):
            raise UserError(
                f"expected scores of shape {(len(images), len(self.labels))} from {self.name}, got {scores.shape}"
            )
        _check_probabilities(self.name, scores)
        return scores


def _check_probabilities(name: str, scores: NDArray[np.float32]) -> None:
    """Logits would be ranked rightly and scored wrongly; a row that is not finite is an error row of its own."""
    rows = scores[np.isfinite(scores).all(axis=1)]
    if (rows < -1e-4).any() or (np.abs(rows.sum(axis=1) - 1) > 1e-2).any():
        raise UserError(
            f"expected probabilities that sum to 1 in each row from {name}, got other scores; apply softmax"
        )


def load_python(address: str, place: str) -> PythonClassifier:
    """Import the module and call its factory."""
    model, module = made_by(address, place)
    labels = tuple(str(label) for label in getattr(model, "labels", ()))
    if not callable(model) or not labels:
        raise UserError(f"expected {address} to return a callable with `labels`, got {type(model).__name__}")
    digest = getattr(model, "digest", None) or source_digest(module)
    return PythonClassifier(address, labels, getattr(model, "preprocessing", None), str(digest), model)
