"""Wrong set-ups of a real network: each is found, and the right one is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from counterfoil.errors import Unusable
from counterfoil.models.model_loaders import load_model
from counterfoil.models.setup_trials import TrialPhoto, check_setups, list_label_orders
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.study.judgements import judge_record
from counterfoil.types import SanityRecord
from planted import LABELS, write_colour_network, write_photos


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), 48)[0]


def trial_photos(images: Path) -> list[TrialPhoto]:
    files = sorted(images.rglob("*.png"), key=lambda file: file.name)  # the labels in turn
    return [TrialPhoto(file.parent.name, lambda file=file: np.asarray(Image.open(file))) for file in files]  # type: ignore[misc]


def check(images: Path, folder: Path, **description: Any) -> SanityRecord:
    address = write_colour_network(folder / "mine.onnx", images, **description)
    return check_setups([load_model(address)], trial_photos(images))[address]


def test_a_network_that_is_set_up_rightly_is_judged(images: Path, tmp_path: Path) -> None:
    record = check(images, tmp_path)
    assert (record.photos, record.right, record.classes) == (48, 48, 4)
    assert judge_record(record).verdict == "judged"
    assert judge_record(record).sentence == ""


@pytest.mark.parametrize(
    ("description", "change", "remedy"),
    [
        ({"labels": (*LABELS[1:], LABELS[0])}, "columns one place later", "put the last label first"),
        ({"labels": (LABELS[3], *LABELS[:3])}, "columns one place earlier", "put the first label last"),
        ({"colour_order": "BGR"}, "the colours in the order RGB", '"colour_order": "RGB"'),
        ({"mean": (0, 0, 0), "std": (1, 1, 1)}, "levels from -1 to 1", '"mean": [127.5, 127.5, 127.5]'),
        ({"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}, "mean and deviation times 255", '"std": [127.5'),
    ],
)
def test_a_wrong_set_up_is_named_with_the_key_that_puts_it_right(
    images: Path, tmp_path: Path, description: dict[str, Any], change: str, remedy: str
) -> None:
    judgement = judge_record(check(images, tmp_path, **description))
    assert judgement.verdict == "not judged"
    assert change in judgement.reason
    assert remedy in judgement.remedy
    assert "mine.json" in judgement.remedy


def test_two_mistakes_at_once_are_found_together(images: Path, tmp_path: Path) -> None:
    judgement = judge_record(check(images, tmp_path, labels=(*LABELS[1:], LABELS[0]), colour_order="BGR"))
    assert judgement.verdict == "not judged"
    assert "RGB and columns one place later" in judgement.reason


def test_the_set_up_that_the_remedy_names_is_right(images: Path, tmp_path: Path) -> None:
    record = check(images, tmp_path, mean=(0, 0, 0), std=(1, 1, 1))
    best = record.trials[0]
    assert record.right < best.right
    assert check(images, tmp_path, mean=(127.5, 127.5, 127.5), std=(127.5, 127.5, 127.5)).right == best.right


def test_photos_that_cannot_be_read_are_left_out(images: Path, tmp_path: Path) -> None:
    def broken() -> Any:
        raise Unusable("it is no picture")

    address = write_colour_network(tmp_path / "mine.onnx", images)
    photos = [TrialPhoto("azure", broken), *trial_photos(images)[:12]]
    assert check_setups([load_model(address)], photos)[address].photos == 12


def test_an_embedded_network_has_orders_of_labels_tried_alone() -> None:
    address = "embedded:efficientnet-lite0"
    source = DemoSource()
    samples = source.samples()[0][:4]
    photos = [TrialPhoto(one.label, lambda one=one: source.read(one)[0]) for one in samples]  # type: ignore[misc]
    record = check_setups([load_model(address)], photos)[address]
    assert record.photos == 4
    assert record.trials
    assert all(trial.change.startswith("columns") for trial in record.trials)


def test_several_threads_find_the_same(images: Path, tmp_path: Path) -> None:
    address = write_colour_network(tmp_path / "mine.onnx", images, colour_order="BGR")
    model, photos = load_model(address), trial_photos(images)
    assert check_setups([model], photos, threads=4) == check_setups([model], photos)


def test_a_python_model_has_its_orders_of_labels_tried(images: Path) -> None:
    address = "python:planted:mislabelled"
    judgement = judge_record(check_setups([load_model(address)], trial_photos(images))[address])
    assert judgement.verdict == "not judged"
    assert "`labels` of python:planted:mislabelled" in judgement.remedy


def test_numbers_as_labels_are_tried_in_the_order_of_text_and_of_numbers() -> None:
    as_text = sorted(str(number) for number in range(12))
    orders = {order.change: order.labels for order in list_label_orders(as_text)}
    assert orders["columns sorted by number"] == tuple(str(number) for number in range(12))
    as_numbers = [str(number) for number in range(12)]
    orders = {order.change: order.labels for order in list_label_orders(as_numbers)}
    assert orders["columns sorted as text"] == tuple(as_text)
