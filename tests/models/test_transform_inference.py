"""The preprocessing behind a transform, found by what the transform does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from counterfoil.models.preprocessing import prepare_input
from counterfoil.models.transform_inference import infer_preprocessing
from counterfoil.types import Preprocessing


@pytest.mark.parametrize(
    "wanted",
    [
        Preprocessing(size=(32, 32), resize=36, interpolation="bicubic"),
        Preprocessing(size=(24, 40), resize=None, interpolation="bilinear", mean=(0, 0, 0), std=(255, 255, 255)),
        Preprocessing(size=(32, 32), resize=32, interpolation="bilinear", colour_order="BGR"),
    ],
)
def test_a_transform_that_a_description_can_hold_is_described(wanted: Preprocessing) -> None:
    found = infer_preprocessing(lambda picture: prepare_input(np.asarray(picture), wanted))
    assert found is not None
    assert (found.size, found.resize, found.interpolation, found.colour_order) == (
        wanted.size, wanted.resize, wanted.interpolation, wanted.colour_order,
    )  # fmt: skip
    assert np.allclose([found.mean, found.std], [wanted.mean, wanted.std], atol=0.01)


def test_a_transform_that_does_something_else_has_no_description() -> None:
    wanted = Preprocessing(size=(32, 32), resize=36)

    def invert(picture: Any) -> Any:
        return -prepare_input(np.asarray(picture), wanted)

    def blur(picture: Any) -> Any:
        values = prepare_input(np.asarray(picture), wanted)
        return (values + np.roll(values, 5, axis=2)) / 2

    assert infer_preprocessing(invert) is None
    assert infer_preprocessing(blur) is None
