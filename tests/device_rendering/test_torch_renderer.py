"""Pictures that torch makes, against those of OpenCV: every edit that is a composition, over small real photos."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.device_rendering.torch_renderer import MadePicture, PictureRequest, TorchRenderer
from counterfoil.edits.composition import (
    Composition,
    HueStepped,
    LayerOfOne,
    ObjectLayer,
    Pasted,
    Placed,
    Plane,
    SmoothedObject,
)
from counterfoil.edits.edit_protocol import ComposedEdit, Edit, Supplied
from counterfoil.edits.registry import EDITS, edit_named
from counterfoil.edits.subject import Subject
from counterfoil.edits.visible_change import measure_change, share_of_region
from counterfoil.errors import Unusable
from counterfoil.models.model_loaders import load_model
from counterfoil.models.preprocessing import InputGeometry, resize_and_crop, share_inputs
from counterfoil.object_mask import hard_object
from counterfoil.types import Picture, Preprocessing
from edit_pictures import PICTURES, blob_on_grass, lender, subject_of
from torch_setup import library

pytestmark = pytest.mark.torch

# Every composed edit as it is, and other settings of some.
MORE: dict[str, tuple[str, dict[str, object]]] = {
    "size 0.08": ("size", {"rate": 0.08}),
    "size grounded": ("size", {"rate": 0.05, "grounded": True}),
    "position 0.05": ("position", {"rate": 0.05, "inside_crop": True}),
    "direction 0.05": ("direction", {"rate": 0.05}),
    "direction 90": ("direction", {"angle": 90.0}),
    "flip upside-down": ("flip", {"axis": "upside-down"}),
    "tilt back": ("tilt", {"yaw": -30, "pitch": 35}),
    "object-hue 120": ("object-hue", {"shift": 120}),
    "background-blur wide": ("background-blur", {"kernel": 41, "sigma": 8.0}),
    "object-blur wide": ("object-blur", {"kernel": 41, "sigma": 8.0}),
    "background-hue blue": ("background-hue", {"hue": "blue"}),
    "background-rainbow per pixel": ("background-rainbow", {"per_pixel": True}),
    "background-swap blended": ("background-swap", {"blend": True}),
    "silhouette photo": ("silhouette", {"ground": "photo"}),
    **{
        f"{name} {severity}": (name, {"severity": severity})
        for name in EDITS
        for severity in (1, 5)
        if name.startswith("corruption-")
    },
}
ALL = {**{name: edit_named(name, {}) for name in EDITS}, **{name: edit_named(*how) for name, how in MORE.items()}}
COMPOSED = {name: edit for name, edit in ALL.items() if isinstance(edit, ComposedEdit)}
NETWORK = Preprocessing(size=(64, 64), resize=72, interpolation="bicubic", mean=(0, 0, 0), std=(1, 1, 1))
GEOMETRY = InputGeometry.of(NETWORK)


@pytest.fixture(scope="module")
def device() -> TorchRenderer:
    library("torch").set_num_threads(1)
    return TorchRenderer("cpu")


def supplied_to(edit: Edit) -> Supplied:
    donor = lender() if edit.needs.scene else blob_on_grass((90, 70))
    return Supplied(label="cup", donors=(subject_of(donor),), donor_labels=("blob",))


def pairs_of(edit: Edit, device: TorchRenderer) -> Iterator[tuple[Subject, Picture, MadePicture]]:
    """Each photo, its picture by OpenCV, and by torch."""
    for make in PICTURES.values():
        subject = subject_of(make())
        try:
            exact = edit.apply(subject, np.random.default_rng(3), supplied_to(edit))
        except Unusable:
            continue
        composition = edit.compose(subject, np.random.default_rng(3), supplied_to(edit))
        request = PictureRequest(composition=composition, before=(subject.picture.image,))
        (made,) = device([request], [GEOMETRY])
        yield subject, exact, made


@pytest.mark.parametrize("name", COMPOSED)
def test_a_picture_of_the_device_is_within_a_level_of_the_exact_one(name: str, device: TorchRenderer) -> None:
    made = list(pairs_of(COMPOSED[name], device))
    beyond = sum(int((np.abs(exact.image.astype(int) - each.image).max(2) > 1).sum()) for _, exact, each in made)
    assert made
    assert beyond <= 0.001 * sum(exact.alpha.size for _, exact, _ in made)
    for _, exact, each in made:
        covered = hard_object(exact.alpha)
        np.testing.assert_array_equal(each.rows, covered.sum(axis=1))
        np.testing.assert_array_equal(each.columns, covered.sum(axis=0))
        assert not each.left_picture


def test_objects_of_photos_of_two_sizes_are_moved_into_pictures_of_one(device: TorchRenderer) -> None:
    behind, alpha = Plane(blob_on_grass((64, 64)).image), np.zeros((80, 80), np.uint8)
    alpha[10:30, 12:34] = 255
    matrix, requests = np.array([[1, 0, 3], [0, 1, 2]], np.float64), []
    for side in (64, 80):
        cut = ObjectLayer(Plane(blob_on_grass((side, side)).image), alpha[:side, :side], 0.8)
        requests.append(PictureRequest(composition=Composition(Placed(cut, matrix, behind))))
        requests.append(PictureRequest(composition=Composition(Pasted(cut, cut.colours), cut.alpha)))
        soft = SmoothedObject(cut, 5, 1.0)
        requests.append(PictureRequest(composition=Composition(soft, cut.alpha[cut.window])))
    for request, made in zip(requests, device(requests), strict=True):
        assert np.abs(request.composition.draw().image.astype(int) - made.image).max() <= 1


@pytest.mark.parametrize("step", [100, np.full((1, 1), 100, np.uint16)], ids=["number", "array"])
def test_hues_go_round_the_circle_here_and_on_the_device(step: int | NDArray[np.uint16], device: TorchRenderer) -> None:
    hues = np.array([[[hue, 255, 255] for hue in range(180)]], np.uint8)
    turned = HueStepped(Plane(np.asarray(cv2.cvtColor(hues, cv2.COLOR_HSV2RGB), np.uint8)), step)
    wanted = hues.copy()
    wanted[..., 0] = [(hue + 100) % 180 for hue in range(180)]
    expected = np.asarray(cv2.cvtColor(wanted, cv2.COLOR_HSV2RGB), np.uint8)
    (made,) = device([PictureRequest(composition=Composition(turned, np.full((1, 180), 255, np.uint8)))])
    for image in (turned.draw(), made.image):
        assert np.abs(image.astype(int) - expected).max() <= 1


def test_most_edits_are_made_on_the_device() -> None:
    assert len({type(edit) for edit in COMPOSED.values()}) >= 40


@pytest.mark.parametrize("name", ["background-blur", "object-hue", "object-removed", "size 0.08", "occlusion"])
def test_the_device_counts_the_change_of_its_own_picture_as_it_is_counted_here(
    name: str, device: TorchRenderer
) -> None:
    for subject, _, made in pairs_of(COMPOSED[name], device):
        here = measure_change(subject.picture, made.image, "presence")
        assert share_of_region(subject.picture, made.changed[0], "presence") == pytest.approx(here, abs=1e-12)


def test_a_dose_counts_by_level_alone(device: TorchRenderer) -> None:
    subject, edit = subject_of(PICTURES["cup"]()), edit_named("corruption-fog", {"severity": 1})
    composition = edit.compose(subject, np.random.default_rng(3), Supplied())
    asked = PictureRequest(composition=composition, before=(subject.picture.image,), by_level=True)
    (made,) = device([asked])
    here = measure_change(subject.picture, made.image, "corruption")
    assert share_of_region(subject.picture, made.changed[0], "corruption") == pytest.approx(here, abs=1e-12)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos"])
def test_inputs_of_networks_are_equal_to_the_bit_to_pillows(interpolation: str, device: TorchRenderer) -> None:
    for wanted in (GEOMETRY, InputGeometry((96, 80), None, "bilinear")):
        geometry = wanted._replace(interpolation=interpolation)  # type: ignore[arg-type]
        network = Preprocessing(
            size=geometry.size, resize=geometry.resize, interpolation=geometry.interpolation,
            mean=(0, 0, 0), std=(1, 1, 1),
        )  # fmt: skip
        requests = [PictureRequest(composition=Composition.of(make())) for make in PICTURES.values()]
        for request, made in zip(requests, device(requests, [geometry]), strict=True):
            np.testing.assert_array_equal(made.inputs[0], resize_and_crop(request.composition.draw().image, network))


def test_pictures_made_together_are_those_made_alone(device: TorchRenderer) -> None:
    requests = []
    for make in PICTURES.values():
        for edit in (COMPOSED["size 0.08"], COMPOSED["object-blur"], COMPOSED["corruption-motion-blur"]):
            composition = edit.compose(subject_of(make()), np.random.default_rng(5), supplied_to(edit))
            requests.append(PictureRequest(composition=composition))
    for request, made in zip(requests, device(requests, [GEOMETRY]), strict=True):
        (alone,) = device([request], [GEOMETRY])
        assert np.abs(alone.image.astype(int) - made.image).max() <= 1
        assert (alone.image != made.image).mean() < 1e-4
        np.testing.assert_array_equal(alone.rows, made.rows)


def test_a_real_network_gives_the_same_answer_to_every_picture_of_the_device(device: TorchRenderer) -> None:
    network = load_model("embedded:efficientnet-lite0")
    assert network.preprocessing is not None
    geometry = InputGeometry.of(network.preprocessing)
    asked = same = 0
    for name in ("control", "background-blur", "size 0.08", "tilt", "object-hue", "occlusion", "corruption-fog"):
        for _, exact, made in pairs_of(COMPOSED[name], device):
            (prepared,) = device(
                [PictureRequest(composition=Composition.of(Picture(made.image, exact.alpha)))], [geometry]
            )
            with share_inputs([made.image], {geometry: [prepared.inputs[0]]}):
                of_device = network([made.image])
            asked, same = asked + 1, same + int(of_device.argmax() == network([exact.image]).argmax())
    assert asked >= 20
    assert same >= 0.999 * asked


@dataclass(frozen=True, eq=False)
class Negative(LayerOfOne):
    """A layer of another package, of which torch is not told."""

    def draw(self) -> NDArray[np.uint8]:
        return 255 - self.of.draw()


def test_a_layer_that_torch_does_not_know_is_drawn_and_sent(device: TorchRenderer) -> None:
    subject = subject_of(PICTURES["cup"]())
    behind = Negative(Plane(subject.background))
    composition = Composition(Pasted(subject.object_layer, behind), subject.cutout.alpha)
    (made,) = device([PictureRequest(composition=composition)])
    np.testing.assert_array_equal(made.image, composition.draw().image)


def test_an_object_that_leaves_the_picture_is_told(device: TorchRenderer) -> None:
    subject = subject_of(PICTURES["cup"]())
    away = np.array([[1, 0, 5000], [0, 1, 0]], np.float64)
    composition = Composition(Placed(subject.object_layer, away, Plane(subject.background)))
    (made,) = device([PictureRequest(composition=composition)])
    assert made.left_picture
    np.testing.assert_array_equal(made.image, subject.background)
    with pytest.raises(Unusable, match="leave the picture"):
        composition.draw()


def test_a_blur_wider_than_the_object_mirrors_as_often_as_it_has_to(device: TorchRenderer) -> None:
    image = np.random.default_rng(0).integers(0, 256, (12, 9, 3), np.uint8)
    alpha = np.pad(np.full((3, 2), 255, np.uint8), ((4, 5), (3, 4)))
    cut = ObjectLayer(Plane(image), alpha, 0.9)
    layer = SmoothedObject(cut, 41, 8.0)
    (made,) = device([PictureRequest(composition=Composition(layer, alpha[cut.window]))])
    assert np.abs(made.image.astype(int) - layer.draw()).max() <= 1


def test_the_tables_of_colours_are_opencvs(device: TorchRenderer) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (1, 300, 200, 3), np.uint8)
    lab = device.tables.convert(cv2.COLOR_RGB2LAB, device.tables.upload(colours)).numpy()
    np.testing.assert_array_equal(lab[0], cv2.cvtColor(colours[0], cv2.COLOR_RGB2LAB))
