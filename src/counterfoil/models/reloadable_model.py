"""A model that can be released and loaded again, here or in another process: its facts stay, its weights go.

A run of a hundred models holds one group of them at a time, and a worker on another machine loads a model from its
address. Only the facts that tables, records and names need are kept meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.models.model_protocol import ModelBase
from counterfoil.store.piece_plan import MOST_PARAMETERS, UNKNOWN_PARAMETERS
from counterfoil.types import Model, Prediction, Preprocessing, Usage, Variant

_FACTS = (
    "name", "labels", "preprocessing", "digest", "details", "identity", "device", "parameters", "prepared_by",
    "scoring", "retryable", "gives_scores",
)  # fmt: skip


class ReloadableModel(ModelBase):
    """The model that `load` gives; `loaded` is the first of its kind."""

    def __init__(self, load: Callable[[], Model], loaded: Model) -> None:
        self._load, self._lock = load, threading.Lock()
        self._loaded: Model | None = loaded
        self._metered = loaded.usage is not None
        for fact in _FACTS:  # the defaults of a model may be set as attributes
            setattr(self, fact, getattr(loaded, fact))

    name: str
    labels: Sequence[str]
    preprocessing: Preprocessing | None
    digest: str

    @property
    def model(self) -> Model:
        """The model itself, loaded where it was released."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def release(self) -> None:
        """Forget the weights; an endpoint, which counts what was asked, stays."""
        with self._lock:
            self._loaded = self._loaded if self._metered else None

    @property
    def held_parameters(self) -> int:
        """The parameters in memory; none where the weights were released."""
        return 0 if self._loaded is None else self.parameters or UNKNOWN_PARAMETERS

    @property
    def note(self) -> str:
        """The loaded model's note; empty where it was released."""
        return "" if self._loaded is None else self._loaded.note

    @property
    def usage(self) -> Usage | None:
        """The usage of an endpoint."""
        return None if self._loaded is None else self._loaded.usage

    @property
    def base(self) -> Model:
        """The model whose columns are those of the network."""
        return self.model.base

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        return self.model(images)

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """One prediction per variant, in order."""
        return self.model.predict(variants, images)

    def regroup(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """As the model regroups them."""
        return self.model.regroup(scores)

    def try_preprocessing(
        self, images: Sequence[NDArray[np.uint8]], preprocessing: Preprocessing
    ) -> NDArray[np.float32] | None:
        """As the model does."""
        return self.model.try_preprocessing(images, preprocessing)

    def among(self, labels: Sequence[str]) -> Model:
        """The model for photos of these labels, no longer reloadable."""
        return self.model.among(labels)

    def offering(self, distractors: Mapping[str, str]) -> Model:
        """The model with these distractors, no longer reloadable."""
        return self.model.offering(distractors)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_loaded": None, "_lock": None}  # weights do not travel

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()


def release_beyond_group(models: Sequence[Model]) -> None:
    """Forget the weights of all models where they are more than a worker holds at once."""
    held = [model for model in models if isinstance(model, ReloadableModel)]
    if sum(model.held_parameters for model in held) > MOST_PARAMETERS:
        for model in held:
            model.release()
