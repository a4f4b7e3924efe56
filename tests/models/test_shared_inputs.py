"""A picture is prepared once for all models of a batch that take it alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterfoil.models.preprocessing import prepare_input, share_inputs
from counterfoil.types import Preprocessing

WANTED = Preprocessing(size=(32, 32), resize=40)


def test_a_picture_of_a_batch_is_prepared_once_for_each_preprocessing() -> None:
    picture, other = np.random.default_rng(0).integers(0, 255, (2, 60, 50, 3), np.uint8)
    alone = prepare_input(picture, WANTED)
    with share_inputs([picture]):
        first = prepare_input(picture, WANTED)
        assert prepare_input(picture, replace(WANTED)) is first
        assert prepare_input(picture, replace(WANTED, colour_order="BGR")) is not first
        assert prepare_input(other, WANTED) is not prepare_input(other, WANTED)
    assert (first == alone).all()
    assert prepare_input(picture, WANTED) is not prepare_input(picture, WANTED)


def test_preprocessings_of_one_size_share_the_resize_and_give_what_each_gives_alone() -> None:
    picture = np.random.default_rng(1).integers(0, 255, (60, 50, 3), np.uint8)
    others = [
        WANTED, replace(WANTED, mean=(0.0, 1.0, 2.0)), replace(WANTED, colour_order="BGR"),
        replace(WANTED, interpolation="bicubic"), replace(WANTED, resize=None),
    ]  # fmt: skip
    alone = [prepare_input(picture, other) for other in others]
    with share_inputs([picture]):
        shared = [prepare_input(picture, other) for other in others]
    assert all(np.array_equal(first, second) for first, second in zip(alone, shared, strict=True))
