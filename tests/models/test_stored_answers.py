"""Answers that are stored: those of ONNX networks on the CPU alone, the same as when they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.models import onnx_classifier
from counterfoil.models.model_loaders import load_model
from counterfoil.models.setup_trials import TrialPhoto
from counterfoil.models.stored_answers import check_setups_once, gives_same_bits, predict_once
from counterfoil.rendered_pictures import measure
from counterfoil.store.result_cache import NO_CACHE, ResultCache
from counterfoil.types import Picture, Sample, Variant

NETWORK = "embedded:efficientnet-lite0"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One member for each picture that a network was asked about."""
    calls: list[int] = []
    plain = onnx_classifier._run_session

    def count(session: Any, name: str, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        calls.append(len(pictures))
        return plain(session, name, pictures)

    monkeypatch.setattr(onnx_classifier, "_run_session", count)
    return calls


def make_pictures(count: int, label: str) -> tuple[list[Any], list[NDArray[np.uint8]]]:
    images = [np.random.default_rng(seed).integers(0, 256, (40, 50, 3), np.uint8) for seed in range(count)]
    variants = [
        Variant(
            id=f"v{place}", sample_id="a", label=label, attribute="original", edit="original", level="none",
            settings="{}", seed=0,
        )
        for place in range(count)
    ]  # fmt: skip
    masks = np.full((40, 50), 255, np.uint8)
    return [measure(one, Picture(image, masks)) for one, image in zip(variants, images, strict=True)], images


def test_stored_answers_are_those_that_were_given(tmp_path: Path, asked: list[int]) -> None:
    model = load_model(NETWORK)
    shown, images = make_pictures(3, model.labels[7])
    expected = predict_once(model, shown, images, 2, NO_CACHE)
    assert predict_once(model, shown, images, 2, ResultCache(tmp_path)) == expected
    asked.clear()
    assert predict_once(model, shown, images, 2, ResultCache(tmp_path)) == expected
    assert not asked
    renamed = [replace(one, variant=replace(one.variant, id=f"w{one.variant.id}")) for one in shown]
    again = predict_once(model, renamed, images, 2, ResultCache(tmp_path))
    assert [row.variant_id for row in again] == ["wv0", "wv1", "wv2"]


def test_other_pictures_labels_and_models_are_asked(tmp_path: Path, asked: list[int]) -> None:
    model, cache = load_model(NETWORK), ResultCache(tmp_path)
    shown, images = make_pictures(3, model.labels[7])
    predict_once(model, shown, images, 4, cache)
    for other, rows, pictures in (
        (model, shown[:2], images[:2]),
        (model, *make_pictures(3, model.labels[8])),
        (load_model("embedded:pp-lcnetv2"), shown, images),
    ):
        asked.clear()
        predict_once(other, rows, pictures, 4, cache)
        assert sum(asked) == len(pictures)


def test_only_networks_that_answer_alike_are_stored(tmp_path: Path) -> None:
    asked: list[int] = []

    def answer(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        asked.append(len(images))
        return np.full((len(images), 2), 0.5, np.float32)

    from counterfoil.models.model_objects import wrap_model

    model = wrap_model(answer, labels=["a", "b"])
    shown, images = make_pictures(2, "a")
    asked.clear()
    for _ in range(2):
        predict_once(model, shown, images, 4, ResultCache(tmp_path))
    assert sum(asked) == 4
    assert not gives_same_bits(model)
    assert gives_same_bits(load_model(NETWORK))


def test_a_cache_of_one_run_stores_no_answers(tmp_path: Path, asked: list[int]) -> None:
    model, cache = load_model(NETWORK), ResultCache()
    cache.open_for_run(tmp_path)
    shown, images = make_pictures(1, model.labels[7])
    for _ in range(2):
        asked.clear()
        predict_once(model, shown, images, 4, cache)
        assert sum(asked) == 1


def test_trials_of_set_ups_are_stored_with_the_photos_that_they_saw(tmp_path: Path, asked: list[int]) -> None:
    model = load_model(NETWORK)
    images = [np.random.default_rng(seed).integers(0, 256, (40, 50, 3), np.uint8) for seed in range(2)]
    photos = [TrialPhoto(model.labels[3], lambda image=image: image) for image in images]  # type: ignore[misc]
    samples = [Sample(id=f"{n}", label=model.labels[3], image="", mask=None, digest=f"{n}") for n in range(2)]
    tried = check_setups_once([model], photos, samples, NO_CACHE)
    assert check_setups_once([model], photos, samples, ResultCache(tmp_path)) == tried
    asked.clear()
    assert check_setups_once([model], photos, samples, ResultCache(tmp_path)) == tried
    assert not asked
    check_setups_once([model], photos, [replace(samples[0], digest="other"), samples[1]], ResultCache(tmp_path))
    assert asked
