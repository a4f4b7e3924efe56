"""The background's complexity by the published formula, in floating point."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.edits.complexity import TOLERANCE, change_complexity
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import PICTURES, ellipse

RNG = np.random.default_rng


def complexity(image: NDArray[np.uint8]) -> float:
    return float(np.mean([np.abs(np.fft.fft2(image[..., channel] / 255)) for channel in range(3)]))


@pytest.mark.parametrize("factor", [0.3, 0.5, 0.8, 1.3, 2.0, 3.0])
@pytest.mark.parametrize("name", PICTURES)
def test_the_factor_is_met(name: str, factor: float) -> None:
    image = PICTURES[name]().image
    assert complexity(change_complexity(image, factor)) / complexity(image) == pytest.approx(
        factor, rel=1.05 * TOLERANCE
    )


@pytest.mark.parametrize("shape", [(97, 131), (33, 200), (40, 7)])
def test_the_factor_is_met_at_odd_sizes(shape: tuple[int, int]) -> None:
    image = np.ascontiguousarray(PICTURES["cat"]().image[: shape[0], : shape[1]])
    for factor in (0.6, 1.7):
        made = change_complexity(image, factor)
        assert complexity(made) / complexity(image) == pytest.approx(factor, rel=1.05 * TOLERANCE)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_what_is_behind_the_object_is_what_changes(factor: float) -> None:
    picture = PICTURES["cat"]()
    made = edit_named("background-complexity", {"factor": factor})(picture, RNG(0))
    off = made.alpha == 0
    np.testing.assert_array_equal(made.image[off], change_complexity(Subject(picture).background, factor)[off])


def test_more_complexity_is_had_for_the_least_change() -> None:
    image = PICTURES["cat"]().image
    ours = change_complexity(image, 1.5)
    noise = RNG(0).normal(0, 1, image.shape)
    strength = np.linspace(1, 60, 60)
    noisy = [np.clip(image + level * noise, 0, 255) for level in strength]
    enough = next(other for other in noisy if complexity(np.asarray(other, np.uint8)) >= 1.5 * complexity(image))
    assert np.abs(ours.astype(float) - image).std() < np.abs(enough - image).std()


def test_a_raised_background_keeps_its_mean() -> None:
    picture = PICTURES["cat"]()
    made = edit_named("background-complexity", {"factor": 2.0})(picture, RNG(0))
    off = made.alpha == 0
    np.testing.assert_allclose(made.image[off].mean(axis=0), picture.image[off].mean(axis=0), atol=3)


def test_a_plain_background_says_that_it_has_nothing_to_change() -> None:
    alpha = ellipse((90, 90), (45, 45), (20, 20))
    image = np.where(alpha > 0, 200, 90).astype(np.uint8)[..., None].repeat(3, axis=2)
    for factor in (0.5, 2.0):
        with pytest.raises(Unusable, match="complexity cannot be brought"):
            edit_named("background-complexity", {"factor": factor})(Picture(image, alpha), RNG(0))


@pytest.mark.parametrize("factor", [0.0, 1.0, -2.0, 100.0])
def test_a_factor_that_changes_nothing_is_refused(factor: float) -> None:
    with pytest.raises(UserError, match="factor: expected"):
        edit_named("background-complexity", {"factor": factor})
