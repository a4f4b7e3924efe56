"""The small diffusion model: what it promises of objects, seeds, complexity and its two runtimes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save
from skimage import data

from counterfoil.edits.complexity import complexity
from counterfoil.edits.fill import find_hole
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.painters.background_model import (
    build_background_graph,
    load_background_model,
    read_background_weights,
    read_weights_file,
)
from counterfoil.painters.guidance import complexity_guide, raise_complexity
from counterfoil.painters.sampler import Scene, levels, ratios, repeat_steps, sample_background
from counterfoil.types import Picture
from edit_pictures import PICTURES, cat, cup, ellipse

Floats = NDArray[np.float32]


def applied(name: str, picture: Picture, seed: int = 1, **settings: object) -> Picture:
    made = edit_named(name, settings)(picture, np.random.default_rng(seed))
    assert isinstance(made, Picture)
    return made


def scene(count: int, side: int = 64) -> Scene:
    rng = np.random.default_rng(5)
    background, colours, noise = (rng.standard_normal((count, 3, side, side)).astype(np.float32) for _ in range(3))
    known = np.zeros((count, 1, side, side), np.float32)
    known[..., 16:40, 20:50] = 1
    return Scene(np.tanh(background), np.tanh(colours), known, noise)


def part(whole: Scene, rows: slice) -> Scene:
    return Scene(whole.background[rows], whole.colours[rows], whole.known[rows], whole.noise[rows])


def test_the_weights_are_small_and_make_a_model_that_onnx_accepts() -> None:
    data = read_weights_file()
    assert 25e6 < len(data) < 32e6
    onnx.checker.check_model(
        onnx.load_from_string(build_background_graph(read_background_weights(data))), full_check=True
    )


def test_weights_of_another_precision_or_damaged_ones_are_refused() -> None:
    with pytest.raises(UserError, match="expected weights of 16 bits, got bias as float32"):
        read_background_weights(save({"bias": np.zeros(3, np.float32)}))
    whole = save({"bias": np.zeros(3, np.float16)})
    for damaged in (b"", whole[:5], whole[:-1], whole + b"0", b"<html>" * 10):
        with pytest.raises(UserError, match=r"^expected a whole safetensors file, got other or damaged bytes[^\n]*$"):
            read_background_weights(damaged)


@pytest.mark.parametrize("name", ["painted-complexity", "painted-adversarial", "painted-random"])
def test_object_pixels_are_the_photos_own_to_the_bit_and_the_background_is_new(name: str) -> None:
    for picture in (cat(), cup()):
        made, alpha = applied(name, picture, steps=2), Subject(picture).cutout.alpha
        inside, outside = alpha == 255, alpha == 0
        np.testing.assert_array_equal(made.image[inside], picture.image[inside])
        assert (made.image[outside] != picture.image[outside]).any(axis=1).mean() > 0.5


def test_a_photo_larger_than_it_is_painted_keeps_its_size_its_object_and_its_fine_detail() -> None:
    small = cat()
    image, alpha = (
        cv2.resize(plane, (300, 200), interpolation=cv2.INTER_LINEAR) for plane in (small.image, small.alpha)
    )
    rng = np.random.default_rng(0)
    grain = np.clip(image.astype(np.int16) + rng.integers(-20, 21, image.shape), 0, 255).astype(np.uint8)
    picture = Picture(grain, np.where(np.asarray(alpha) > 200, 255, 0).astype(np.uint8))
    made = applied("painted-complexity", picture, guidance=0, strength=0.15, steps=1, size=128)
    assert made.image.shape == picture.image.shape
    inside = Subject(picture).cutout.alpha == 255
    np.testing.assert_array_equal(made.image[inside], picture.image[inside])
    away = made.alpha == 0
    old, new = (float(cv2.Laplacian(each.image, cv2.CV_32F)[away].std()) for each in (picture, made))
    assert new > 0.4 * old


def cup_of(side: int) -> Picture:
    """Scikit-image's coffee cup in a square, the cup as a disc."""
    image = np.asarray(cv2.resize(data.coffee()[:, 100:500], (side, side), interpolation=cv2.INTER_AREA), np.uint8)
    return Picture(image, ellipse((side, side), (side * 0.5, side * 0.5), (side * 0.3, side * 0.3)))


def test_a_photo_up_to_the_size_is_painted_as_it_is_and_gets_detail_of_its_own() -> None:
    whole, same, coarse = (
        applied("painted-complexity", cup_of(288), guidance=20, strength=0.5, steps=1, size=size).image
        for size in (512, 288, 144)
    )
    np.testing.assert_array_equal(whole, same)
    detail = [float(cv2.Laplacian(each[:40], cv2.CV_32F).std()) for each in (whole, coarse)]
    assert detail[0] > 1.5 * detail[1]


def test_a_new_layout_is_painted_at_the_models_size_and_its_detail_at_the_photos() -> None:
    picture = cup_of(320)
    fine, coarse = (applied("painted-random", picture, steps=1, size=size).image for size in (512, 256))
    outside = cv2.resize(Subject(picture).cutout.alpha, (10, 10), interpolation=cv2.INTER_AREA) == 0
    layouts = [cv2.resize(each, (10, 10), interpolation=cv2.INTER_AREA)[outside].ravel() for each in (fine, coarse)]
    assert np.corrcoef(layouts)[0, 1] > 0.8
    assert (fine != coarse).mean() > 0.3


def test_a_very_long_photo_is_painted_coarser_so_that_it_fits_into_memory() -> None:
    grain = np.random.default_rng(0).integers(0, 256, (48, 8192, 3), np.uint8)
    alpha = np.zeros(grain.shape[:2], np.uint8)
    alpha[8:40, 100:300] = 255
    made = applied("painted-complexity", Picture(grain, alpha), guidance=100, strength=0.9, steps=1)
    np.testing.assert_array_equal(made.image[12:36, 104:296], grain[12:36, 104:296])
    waves = np.abs(np.fft.rfft(made.image[:, 1024:].astype(np.float64), axis=1)) ** 2
    assert waves[:, waves.shape[1] // 2 :].sum() < 0.01 * waves[:, 1:].sum()  # nothing finer than its 2048 pixels


def test_a_strip_one_pixel_high_is_painted() -> None:
    image = np.full((1, 2100, 3), 90, np.uint8)
    alpha = np.where(np.arange(2100) < 400, 255, 0).astype(np.uint8)[None]
    assert applied("painted-complexity", Picture(image, alpha), steps=1).image.shape == (1, 2100, 3)


@pytest.mark.parametrize("picture", ["blob", "cat", "cup", "rocket"])
def test_complexity_grows_with_guidance(picture: str) -> None:
    given = PICTURES[picture]()
    found = [complexity(applied("painted-complexity", given, guidance=g, steps=2).image) for g in (-40, -20, 20, 40)]
    assert found == sorted(found)
    assert found[-1] > 1.1 * found[0]


def test_guidance_zero_leaves_about_the_complexity_that_was_there() -> None:
    for picture in (cat(), cup()):
        made = applied("painted-complexity", picture, guidance=0, steps=6)
        assert complexity(made.image) == pytest.approx(complexity(picture.image), rel=0.15)


def test_adding_to_every_wave_adds_that_much_to_the_mean_of_their_strengths() -> None:
    image = scene(1).background
    before, after = (np.abs(np.fft.fft2(each)) for each in (image, raise_complexity(image, 3.0)))
    np.testing.assert_allclose(after[..., 1:, 1:] - before[..., 1:, 1:], 3.0, atol=1e-2)
    assert np.abs(np.fft.fft2(raise_complexity(image, -1e6)))[..., 1:, 1:].max() < 1e-2


def test_signal_and_noise_share_one_power_and_end_almost_clean() -> None:
    for ratio in ratios(0.3, 7):
        assert sum(level**2 for level in levels(ratio)) == pytest.approx(1)
    assert levels(ratios(0.3, 7)[-1])[1] < 0.06
    assert levels(ratios(1.0, 7)[0])[0] < 0.02


def test_a_network_that_knows_the_truth_is_led_to_it_by_any_number_of_steps() -> None:
    given = scene(1)
    truth = np.tanh(np.random.default_rng(9).standard_normal(given.background.shape)).astype(np.float32)

    def oracle(planes: Floats, ratio: float) -> Floats:
        signal, noise = levels(ratio)
        return np.asarray((signal * planes[:, :3] - truth) / noise, np.float32)

    for steps in (1, 2, 9):
        made = sample_background(oracle, given, ratios(0.5, steps))
        np.testing.assert_allclose(made, np.where(given.known > 0, given.colours, truth), atol=1e-4)


def test_a_picture_does_not_depend_on_its_batch_or_on_the_threads_beside_it() -> None:
    whole, model, schedule, guide = scene(3), load_background_model(), ratios(0.3, 2), complexity_guide(20, 0.3)
    together = sample_background(model, whole, schedule, guide)
    with ThreadPoolExecutor(3) as threads:
        rows = [slice(number, number + 1) for number in range(3)]
        alone = list(threads.map(lambda row: sample_background(model, part(whole, row), schedule, guide), rows))
    np.testing.assert_allclose(np.concatenate(alone), together, atol=2e-5)
    np.testing.assert_array_equal(sample_background(model, part(whole, rows[1]), schedule, guide), alone[1])


def test_another_seed_paints_another_background() -> None:
    first, again, other = (applied("painted-random", cup(), seed, steps=2).image for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.2


def test_a_removed_object_is_painted_over_and_nothing_else_changes() -> None:
    picture = cup()
    made, hole = applied("painted-removal", picture, steps=2), find_hole(Subject(picture).cutout.alpha)
    np.testing.assert_array_equal(made.image[~hole], picture.image[~hole])
    assert not made.alpha.any()
    assert (made.image[hole] != Subject(picture).background[hole]).mean() > 0.3


def test_a_removal_with_resampling_is_another_fill_of_the_same_hole_and_the_same_again_from_its_seed() -> None:
    picture = cup()
    once, twice, again = (applied("painted-removal", picture, steps=2, resample=times).image for times in (1, 2, 2))
    hole = find_hole(Subject(picture).cutout.alpha)
    np.testing.assert_array_equal(twice[~hole], picture.image[~hole])
    np.testing.assert_array_equal(twice, again)
    assert (twice[hole] != once[hole]).mean() > 0.3


def test_resampling_takes_every_step_so_many_times_and_once_is_the_plain_schedule() -> None:
    plain = [0.0, 1.0, 2.0, 3.0, 4.0]
    assert repeat_steps(plain, 1) == plain
    assert repeat_steps(plain, 2) == [0, 1, 2, 3, 0, 1, 2, 3, 4, 3, 4]
    assert repeat_steps([5.0], 3) == [5.0]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_the_network_is_asked_once_for_each_step_and_time_and_led_to_the_truth(times: int) -> None:
    given, asked, steps = scene(1), [], 8
    truth = np.tanh(np.random.default_rng(9).standard_normal(given.background.shape)).astype(np.float32)

    def oracle(planes: Floats, ratio: float) -> Floats:
        asked.append(ratio)
        signal, noise = levels(ratio)
        return np.asarray((signal * planes[:, :3] - truth) / noise, np.float32)

    made = sample_background(oracle, given, repeat_steps(ratios(0.8, steps), times))
    np.testing.assert_allclose(made, np.where(given.known > 0, given.colours, truth), atol=1e-4)
    assert len(asked) == times * (steps - 1) + 1


def test_going_back_up_in_noise_brings_the_noise_that_the_ratio_promises_and_a_new_one_each_time() -> None:
    given, seen = scene(1, 128), []

    def watcher(planes: Floats, ratio: float) -> Floats:
        signal, noise = levels(ratio)
        seen.append((ratio, (planes[:, :3] - signal * given.background) / noise))
        return np.asarray((signal * planes[:, :3] - given.background) / noise, np.float32)

    schedule = ratios(0.8, 4)
    sample_background(watcher, given, repeat_steps(schedule, 4))
    painted_part = np.broadcast_to(given.known == 0, given.background.shape)
    starts = [noise[painted_part] for ratio, noise in seen if ratio == schedule[0]]
    assert len(starts) == 4
    for noise in starts:
        assert float(noise.std()) == pytest.approx(1, rel=0.03)
    assert float(np.abs(np.corrcoef(starts) - np.eye(4)).max()) < 0.1


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("painted-complexity", {"guidance": 1e9}, "guidance: expected from -100 to 100, got 1e\\+09"),
        ("painted-complexity", {"strength": 0}, "strength: expected from 0.01 to 1, got 0"),
        ("painted-complexity", {"strength": 1.5}, "strength"),
        ("painted-complexity", {"strength": 1e-200}, "strength"),
        ("painted-complexity", {"steps": 0}, "steps: expected from 1 to 1000, got 0"),
        ("painted-complexity", {"size": 32}, "size: expected from 64 to 1024 pixels, got 32"),
        ("painted-random", {"size": 4096}, "size: expected from 64 to 1024 pixels, got 4096"),
        ("painted-complexity", {"lambda": 20}, "unknown setting 'lambda'; expected guidance"),
        ("painted-adversarial", {"candidates": 1}, "candidates: expected from 2 to 64"),
        ("painted-adversarial", {"candidate": 9}, "candidate: expected from 0 to 3, got 9"),
        ("painted-adversarial", {"by": "luck"}, "by"),
        ("painted-random", {"steps": -1}, "steps"),
        ("painted-removal", {"device": "tpu"}, "device"),
        ("painted-removal", {"resample": 0}, "resample: expected from 1 to 100 times, got 0"),
        ("painted-removal", {"resample": 3, "steps": 1}, "resample: expected 1 where steps is 1, got 3"),
    ],
)
def test_settings_that_cannot_be_painted_are_refused_at_the_door(
    name: str, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said) as error:
        edit_named(name, settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("endless", [float("nan"), float("inf"), -float("inf")])
def test_an_endless_guidance_is_refused(endless: float) -> None:
    from counterfoil.edits.painted import PaintedComplexity

    with pytest.raises(UserError, match="guidance"):
        PaintedComplexity(endless)
