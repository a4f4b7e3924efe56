"""Models by address, their preprocessing and their answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from skimage import data

from colour_network import mean_colour_network
from counterfoil.assets.onnx_session import read_graph
from counterfoil.errors import UserError
from counterfoil.models.model_loaders import load_model
from counterfoil.models.model_names import split_name
from counterfoil.models.onnx_classifier import OnnxClassifier
from counterfoil.models.preprocessing import prepare_input, resize_and_crop
from counterfoil.run_config import check_distinct
from counterfoil.types import Preprocessing

PHOTOS: list[NDArray[np.uint8]] = [data.chelsea(), data.coffee(), data.astronaut(), data.rocket()]


def described(path: Path, **keys: object) -> Path:
    text = json.dumps({"labels": ["red", "green", "blue"], "size": [32, 32], "resize": 40, **keys})
    path.with_suffix(".json").write_text(text)
    return path


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("size", "resize"), [(224, 256), (240, 272), (64, 73)])
def test_a_fitted_photo_is_what_pillow_resizes_and_crops(interpolation: str, size: int, resize: int) -> None:
    how = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}[interpolation]
    for photo in [*PHOTOS, PHOTOS[0].transpose(1, 0, 2).copy()]:
        height, width = photo.shape[:2]
        scale = resize / min(height, width)
        whole = (resize, int(resize * height / width)) if width <= height else (int(resize * width / height), resize)
        left, top = round((whole[0] - size) / 2), round((whole[1] - size) / 2)
        expected = Image.fromarray(photo).resize(whole, how).crop((left, top, left + size, top + size))
        wanted = Preprocessing(size=(size, size), resize=resize, interpolation=interpolation)  # type: ignore[arg-type]
        np.testing.assert_array_equal(resize_and_crop(photo, wanted), np.asarray(expected), err_msg=f"{scale}")


def test_the_graph_of_a_file_that_is_no_network_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(mean_colour_network(tmp_path / "whole.onnx").read_bytes()[:-1])
    with pytest.raises(
        UserError, match=r"^expected an ONNX network, got .*net\.onnx, which is damaged or something else$"
    ):
        read_graph(tmp_path / "net.onnx")


def test_normalisation_layout_and_colour_order_follow_the_description() -> None:
    wanted = Preprocessing(
        size=(32, 16), resize=None, mean=(10, 20, 30), std=(2, 4, 8), colour_order="BGR", layout="NHWC"
    )
    levels = resize_and_crop(PHOTOS[0], wanted)[:, :, ::-1].astype(np.float64)
    expected = (levels - np.array([10, 20, 30])) / np.array([2, 4, 8])
    np.testing.assert_allclose(prepare_input(PHOTOS[0], wanted), expected, atol=1e-4)
    channels_first = Preprocessing(size=(32, 16), resize=None, mean=(10, 20, 30), std=(2, 4, 8), colour_order="BGR")
    np.testing.assert_allclose(prepare_input(PHOTOS[0], channels_first), expected.transpose(2, 0, 1), atol=1e-4)


def test_an_onnx_network_gives_probabilities_of_its_labels(tmp_path: Path) -> None:
    path = described(mean_colour_network(tmp_path / "net.onnx"))
    model = load_model(f"onnx:{path}")
    scores = model(PHOTOS)
    assert list(model.labels) == ["red", "green", "blue"]
    assert isinstance(model, OnnxClassifier)
    assert model.parameters == 9
    assert scores.shape == (4, 3)
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)
    weights = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    means = np.stack([prepare_input(photo, model.preprocessing).mean(axis=(1, 2)) for photo in PHOTOS])
    raised = np.exp(means @ weights)
    np.testing.assert_allclose(scores, raised / raised.sum(axis=1, keepdims=True), atol=1e-4)


def test_scores_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    model = load_model(f"onnx:{described(mean_colour_network(tmp_path / 'net.onnx'))}")
    together = model(PHOTOS)
    alone = np.concatenate([model([photo]) for photo in PHOTOS])
    np.testing.assert_array_equal(together, alone)


def test_a_flag_replaces_the_json_beside_the_network(tmp_path: Path) -> None:
    path = described(mean_colour_network(tmp_path / "net.onnx"))
    model = load_model(f"onnx:{path}", '{"labels": ["a", "b", "c"], "size": [32, 32], "resize": null}')
    assert list(model.labels) == ["a", "b", "c"]
    assert model.preprocessing == Preprocessing(size=(32, 32), resize=None)


def test_labels_may_stand_in_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("ant\nbee\ncat\n\n")
    model = load_model(f"onnx:{described(mean_colour_network(tmp_path / 'net.onnx'), labels='labels.txt')}")
    assert list(model.labels) == ["ant", "bee", "cat"]


def test_the_digest_is_of_the_weights(tmp_path: Path) -> None:
    first = load_model(f"onnx:{described(mean_colour_network(tmp_path / 'a.onnx'))}")
    same = load_model(f"onnx:{described(mean_colour_network(tmp_path / 'b.onnx'))}")
    wider = described(mean_colour_network(tmp_path / "c.onnx", 4), labels=list("abcd"))
    assert first.digest == same.digest != load_model(f"onnx:{wider}").digest


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("resnet50", "got 'resnet50'"),
        ("efficientnet_lite0", "'embedded:efficientnet-lite0'"),
        ("embedded:efficientnet-lite9", "did you mean 'embedded:efficientnet-lite"),
        ("models/net.onnx", "'onnx:models/net.onnx'"),
        ("onnx:missing.onnx", "there is no file 'missing.onnx'"),
        ("python:nowhere", "expected python:module:factory"),
        ("python:no_such_module:make", "no_such_module"),
        ("python:json:no_such_factory", "no_such_factory"),
    ],
)
def test_a_wrong_address_says_what_was_expected(address: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        load_model(address)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_name_like_no_other_is_offered_none() -> None:
    with pytest.raises(UserError, match=r"got 'embedded:nothing'$"):
        load_model("embedded:nothing")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"labels": ["red", "green"]}, "expected 2 output columns, one per label, got 3"),
        ({"size": [48, 48], "resize": 30}, "resize of at least the crop"),
        ({"labels": "nowhere.txt"}, "nowhere.txt"),
        ({"mena": [1, 2, 3]}, "'mena'"),
        ({"interpolation": "cubic"}, "'interpolation'"),
    ],
)
def test_a_wrong_description_says_what_was_expected(tmp_path: Path, keys: dict[str, object], said: str) -> None:
    path = described(mean_colour_network(tmp_path / "net.onnx"), **keys)
    with pytest.raises(UserError) as error:
        load_model(f"onnx:{path}")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_network_is_named(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("<html>")
    with pytest.raises(UserError, match="expected an ONNX network"):
        load_model(f"onnx:{described(tmp_path / 'net.onnx')}")


def test_a_network_without_description_says_which_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"write net\.json beside it or give --describe"):
        load_model(f"onnx:{mean_colour_network(tmp_path / 'net.onnx')}")


def test_a_python_factory_becomes_a_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brightness_model.py").write_text(
        "import numpy as np\n"
        "class Model:\n"
        "    labels = ['dark', 'bright']\n"
        "    def __call__(self, images):\n"
        "        bright = np.array([image.mean() / 255 for image in images])\n"
        "        return np.stack([1 - bright, bright], axis=1)\n"
        "def make():\n"
        "    return Model()\n"
        "def wrong():\n"
        "    return 3\n"
        "def broken():\n"
        "    return open('no_such_weights')\n"
        "class Failing(Model):\n"
        "    def __call__(self, images):\n"
        "        return 1 / 0\n"
        "class Complex(Model):\n"
        "    def __call__(self, images):\n"
        "        return np.full((len(images), 2), 0.5 + 1j)\n"
    )
    monkeypatch.chdir(tmp_path)
    model = load_model("python:brightness_model:make")
    assert model(PHOTOS).shape == (4, 2)
    assert len(model.digest) == 64
    with pytest.raises(UserError, match="a callable with `labels`"):
        load_model("python:brightness_model:wrong")
    with pytest.raises(
        UserError, match=r"it fails: FileNotFoundError: .*no_such_weights.*brightness_model.py, line 12"
    ):
        load_model("python:brightness_model:broken")
    with pytest.raises(UserError, match=r"failed on 4 pictures: ZeroDivisionError: .* what is finished is kept"):
        load_model("python:brightness_model:Failing")(PHOTOS)
    with pytest.raises(UserError, match=r"expected probabilities from .*, got complex numbers"):
        load_model("python:brightness_model:Complex")(PHOTOS)


def test_a_label_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = described(mean_colour_network(tmp_path / "net.onnx"), labels=["crane", "tench", "crane"])
    with pytest.raises(UserError, match="'crane' more than once"):
        load_model(f"onnx:{path}")


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("onnx:v2.onnx", "", "onnx:v2.onnx"),
        ("Our v2=onnx:v2.onnx", "Our v2", "onnx:v2.onnx"),
        ("onnx:a=b.onnx", "", "onnx:a=b.onnx"),
        ("A: new=onnx:a=b.onnx", "A: new", "onnx:a=b.onnx"),
        ("a=b.onnx", "", "a=b.onnx"),  # no address after the sign: the loader says what is wrong with it
    ],
)
def test_a_name_stands_before_an_address_and_an_address_may_hold_the_sign_itself(
    text: str, name: str, address: str
) -> None:
    assert split_name(text, ["onnx", "timm"]) == (name, address)


def test_a_named_model_answers_as_the_model_does_under_its_name() -> None:
    plain, named = load_model("python:planted:honest"), load_model("Ours=python:planted:honest")
    assert (plain.name, named.name) == ("python:planted:honest", "Ours")
    assert named.labels == plain.labels
    assert named.identity != plain.identity
    photo = np.full((32, 32, 3), 90, np.uint8)
    assert np.array_equal(named([photo]), plain([photo]))
    with pytest.raises(UserError, match="expected a name before '='"):
        load_model("=python:planted:honest")
    with pytest.raises(UserError, match="expected each model once, got A, A"):
        check_distinct(["A=python:planted:honest", "A=python:planted:blind_on_the_left"])
