"""A model of one's own: `python:module:factory`, where `factory()` returns a classifier."""

from __future__ import annotations

import hashlib
import importlib
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
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
        with self._one_at_a_time:
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
    """Import the module (from the working folder too, as `python -m` does) and call its factory."""
    module_name, _, factory_name = place.partition(":")
    if not module_name or not factory_name:
        raise UserError(f"expected python:module:factory, got '{address}'")
    factory = _factory(address, module_name, factory_name)
    model = factory()
    labels = tuple(str(label) for label in getattr(model, "labels", ()))
    if not callable(model) or not labels:
        raise UserError(f"expected {address} to return a callable with `labels`, got {type(model).__name__}")
    digest = getattr(model, "digest", None) or _source_digest(module_name)
    return PythonClassifier(address, labels, getattr(model, "preprocessing", None), str(digest), model)


def _factory(address: str, module_name: str, factory_name: str) -> Any:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UserError(f"expected an importable module in '{address}', got: {error}") from error
    if not callable(getattr(module, factory_name, None)):
        raise UserError(f"expected a function '{factory_name}' in module '{module_name}' for '{address}', found none")
    return getattr(module, factory_name)


def _source_digest(module_name: str) -> str:
    """Where a model names no digest, its source stands for it; the weights are then not covered."""
    source = Path(sys.modules[module_name].__file__ or "")
    return hashlib.sha256(source.read_bytes() if source.is_file() else module_name.encode()).hexdigest()
