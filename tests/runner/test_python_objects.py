"""A run over objects: pictures as arrays, a function as the model, edits as objects and functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import counterfoil as cf
from command_line import counterfoil
from planted import LABELS, AnswersByBackground, Planted, write_photos

Photos = list[tuple[NDArray[np.uint8], str, NDArray[np.uint8]]]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    images, masks = write_photos(tmp_path_factory.mktemp("photos"), 12)
    files = sorted(images.rglob("*.png"))
    return [
        (np.asarray(Image.open(file)), file.parent.name, np.asarray(Image.open(masks / file.relative_to(images))))
        for file in files
    ]


@cf.edit(attribute="background")
def grey_behind(image: Any, mask: Any, rng: Any) -> Any:
    """The background in one grey."""
    image[mask == 0] = 128
    return image


def by_background(images: Sequence[NDArray[np.uint8]]) -> list[str]:
    scores = AnswersByBackground()(images)
    return [LABELS[column] for column in scores.argmax(axis=1)]


def test_a_function_that_looks_at_the_background_loses_only_there(photos: Photos) -> None:
    edits = ["background-swap", grey_behind, cf.edits.ObjectGrayscale()]
    result = cf.run(photos, {"background": by_background, "honest": Planted()}, edits=edits, labels=LABELS)
    drops = {(drop.model, drop.edit): drop.drop for drop in result.drops}
    assert drops["background", "background-swap"] >= 50
    assert drops["background", "grey-behind"] >= 50
    assert drops["background", "object-grayscale"] == 0
    assert drops["honest", "grey-behind"] == 0
    assert result.plan.run.recipe == "own edits"
    assert "models={'background', 'honest'}" in result.plan.run.command


class Counted(Planted):
    """Counts the pictures that it is asked about."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        self.asked += len(images)
        return super().__call__(images)


def test_a_run_over_objects_is_resumed_by_content(photos: Photos, tmp_path: Path) -> None:
    first, again, other = Counted(), Counted(), AnswersByBackground()
    cf.run(photos, {"m": first}, edits=["object-grayscale"], out=tmp_path)
    tables = {path.name: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    cf.run(photos, {"m": again}, edits=["object-grayscale"], out=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == tables
    assert again.asked < first.asked / 2  # the fixed pictures of its identity, and no photo twice
    with pytest.raises(cf.UserError, match="it holds a run with another model"):
        cf.run(photos, {"m": other}, edits=["object-grayscale"], out=tmp_path)


def test_the_classes_of_a_data_set_name_the_columns_of_a_function(photos: Photos) -> None:
    datasets = pytest.importorskip("datasets")
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=LABELS), "mask": datasets.Image()}
    rows = [
        {"image": Image.fromarray(image), "label": LABELS.index(label), "mask": Image.fromarray(mask)}
        for image, label, mask in photos
    ]
    dataset = datasets.Dataset.from_list(rows, features=datasets.Features(features))
    result = cf.run(dataset, {"honest": lambda images: Planted()(images)}, edits=["object-grayscale"])
    assert {drop.accuracy_original for drop in result.drops} == {100}


def test_a_stream_of_variants_is_shown_in_a_line(photos: Photos) -> None:
    stream = cf.variants(photos, edits=["object-grayscale"])
    assert repr(stream) == "VariantStream(12 photos, 2 edits); iterate over it"


def test_the_order_of_the_pictures_changes_no_variant(photos: Photos) -> None:
    def ids(given: Photos) -> set[str]:
        return {variant.id for variant, _ in cf.variants(given, edits=["object-hue", "background-swap"])}

    assert ids(photos) == ids(photos[::-1])


def test_bad_input_says_the_same_line_in_python_and_on_the_command_line(tmp_path: Path) -> None:
    missing = str(tmp_path / "photos")
    cases = [
        ({"images": missing}, ["--images", missing, "--model", "embedded:efficientnet-lite0"]),
        ({"images": "demo:", "recipe": "atributes"},
         ["--images", "demo:", "--recipe", "atributes", "--model", "embedded:efficientnet-lite0"]),
        ({"images": "demo:", "limit": 0},
         ["--images", "demo:", "--limit", "0", "--model", "embedded:efficientnet-lite0"]),
    ]  # fmt: skip
    for arguments, typed in cases:
        with pytest.raises(cf.UserError) as error:
            cf.run(models=["embedded:efficientnet-lite0"], **arguments)  # type: ignore[arg-type]
        done = counterfoil("run", *typed, "--out", tmp_path / "out")
        assert done.returncode == 2
        assert str(error.value) in done.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"edits": ["size"], "recipe": "attributes"}, "expected edits= or recipe=, got both"),
        ({"models": []}, "expected at least one model, got none"),
        ({"models": [None]}, "expected a model: an address"),
        ({"labels": "dark"}, "expected labels as a list of names"),
        ({"labels": ["a", "a"]}, "expected each label once, got 'a' more than once"),
        ({"masks": "masks"}, "expected masks= beside a folder only"),
    ],
)
def test_what_objects_lack_is_said_in_one_line(photos: Photos, arguments: dict[str, Any], line: str) -> None:
    with pytest.raises(cf.UserError, match=line):
        cf.run(**{"images": photos, "models": [Planted()], **arguments})
