"""A model of one's own, by `python:module:factory` or from another package: a callable with labels becomes a model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.evaluate import ModelBase
from counterfoil.own_code import Plugin, made_by, optional, source_digest, told_of
from counterfoil.types import Classifier, Model, Preprocessing


@dataclass(frozen=True)
class PythonClassifier(ModelBase):
    """Makes a model of a plain classifier: one call at a time, answers checked."""

    name: str
    labels: tuple[str, ...]
    preprocessing: Preprocessing | None
    digest: str
    model: Classifier
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


def load_python(address: str, place: str) -> Model:
    """Import the module and call its factory."""
    made, module = made_by(address, place)
    return _as_model(address, made, module)


def load_plugin(address: str, plugin: Plugin, request: object) -> Model:
    """What another package's loader makes of the request."""
    with told_of(f"expected '{address}' to load, but it fails"):
        made = plugin.load(request)
    return _as_model(address, made, plugin.module)


def _checked(address: str, made: Any) -> Model:
    """A model that has what its author has to write; its name tells its table from others."""
    missing = [name for name in ("name", "preprocessing", "digest") if not hasattr(made, name)]
    if missing:
        raise UserError(f"expected {address} to return a model with `{missing[0]}`, {type(made).__name__} has none")
    if not str(made.name).startswith(address):
        raise UserError(f"expected the model of {address} to have the address as its name, got '{made.name}'")
    model: Model = made
    return model


def _as_model(address: str, made: Any, module: ModuleType) -> Model:
    """A model as it is; a callable with labels as a model."""
    labels = tuple(str(label) for label in optional(made, "labels", ()))
    if not callable(made) or not labels:
        raise UserError(f"expected {address} to return a callable with `labels`, got {type(made).__name__}")
    if isinstance(made, ModelBase):
        return _checked(address, made)
    digest = optional(made, "digest", None) or source_digest(module)
    return PythonClassifier(address, labels, optional(made, "preprocessing", None), str(digest), made)
