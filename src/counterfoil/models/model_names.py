"""Models under a name of the user's: `Our v2=onnx:v2.onnx`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.models.model_protocol import ModelWrapper, identity_hash
from counterfoil.types import Model, Prediction, Variant


@dataclass(frozen=True)
class NamedModel(ModelWrapper):
    """A model that tables, reports and comparisons call by another name."""

    model: Model
    given: str

    @property
    def name(self) -> str:
        """The name that was given."""
        return self.given

    @property
    def identity(self) -> str:
        """Of the model and its name, since tables are kept by name."""
        return identity_hash(self, [self.model.identity])

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """The model's answers."""
        return self.model.predict(variants, images)

    def among(self, labels: Sequence[str]) -> Model:
        """The model for photos of these labels, under the same name."""
        return NamedModel(self.model.among(labels), self.given)

    def offering(self, distractors: Mapping[str, str]) -> Model:
        """The model with these distractors, under the same name."""
        return NamedModel(self.model.offering(distractors), self.given)


def split_name(text: str, schemes: Collection[str]) -> tuple[str, str]:
    """Split `Our v2=onnx:v2.onnx` into name and address; the name is empty where `text` is an address alone.

    An address may hold `=` itself, in a path or a query: a name ends at the first `=` after which an address begins,
    and does not begin with the scheme of an address.
    """
    if text.partition(":")[0] in schemes:
        return "", text
    name, equals, address = text.partition("=")
    if not equals or address.partition(":")[0] not in schemes:
        return "", text
    if not name.strip():
        raise UserError(f"expected a name before '=', got none in '{text}'; say NAME={address} or {address}")
    return name.strip(), address
