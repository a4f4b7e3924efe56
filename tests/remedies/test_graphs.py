"""The graphs that remedies write: views as Pillow makes them, class maps, boxes; the last layer's fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from skimage import data

from colour_network import mean_colour_network
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.errors import UserError
from counterfoil.models.model_loaders import load_model
from counterfoil.models.onnx_classifier import OnnxClassifier
from counterfoil.remedies.candidates import select_methods
from counterfoil.remedies.class_map import UnknownStructureError, find_class_map
from counterfoil.remedies.fixed_views import PREPROCESSING, CropSettings, FixedView, build_views
from counterfoil.remedies.last_layer import (
    Features,
    LastLayerSettings,
    Rows,
    fit_rows,
    old_rows,
    open_features,
    write_rows,
)
from counterfoil.remedies.layer_folds import LayerFitter, fit_folds
from counterfoil.remedies.network_file import NetworkFile, read_network
from counterfoil.remedies.picture_answers import PhotoAnswers
from counterfoil.remedies.repair_config import LAST_LAYER, RepairConfig
from counterfoil.remedies.zoom import ZoomSettings, build_zoom
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.statistics.answers import Condition
from counterfoil.types import PhotoInput, Preprocessing
from repairable import HEADS, SIDE, write_small_object_network

LABELS = ("ant", "bee", "cat")


def open_network(path: Path, **changes: object) -> NetworkFile:
    settings: dict[str, object] = {"size": (32, 32), "resize": 40, "interpolation": "bicubic", **changes}
    model = OnnxClassifier(
        name="test", path=mean_colour_network(path / "colours.onnx"), labels=LABELS,
        preprocessing=Preprocessing(**settings),  # type: ignore[arg-type]
    )  # fmt: skip
    return read_network(model)


@pytest.mark.parametrize("changes", [{}, {"resize": None}, {"interpolation": "bilinear"}, {"colour_order": "BGR"}])
@pytest.mark.parametrize("photo", [data.chelsea(), data.coffee()[:, :333], data.astronaut()[::8, ::8]])
def test_the_whole_view_inside_the_graph_is_the_network_s_own(
    tmp_path: Path, photo: NDArray[np.uint8], changes: dict[str, object]
) -> None:
    network = open_network(tmp_path, **changes)
    plain = OnnxClassifier(
        name="plain", path=tmp_path / "colours.onnx", labels=LABELS, preprocessing=network.preprocessing
    )
    inside = build_views(network, [FixedView()], "same").write(tmp_path / "same.onnx")
    assert isinstance(inside.preprocessing, PhotoInput)
    photo = np.ascontiguousarray(photo)
    assert np.abs(inside([photo]) - plain([photo])).max() < 2e-3


def test_a_mirrored_view_and_its_mirrored_photo_give_the_same(tmp_path: Path) -> None:
    network = open_network(tmp_path)
    mirrored = build_views(network, [FixedView(mirrored=True)], "mirror").write(tmp_path / "mirror.onnx")
    plain = build_views(network, [FixedView()], "plain").write(tmp_path / "plain.onnx")
    photo = data.chelsea()
    assert np.allclose(mirrored([photo]), plain([np.ascontiguousarray(photo[:, ::-1])]), atol=2e-3)


def test_the_mean_over_views_is_the_mean_of_each_view(tmp_path: Path) -> None:
    network = open_network(tmp_path)
    views = CropSettings(scales=(0.6,), places=((0.0, 0.0), (1.0, 1.0))).views
    together = build_views(network, views, "crops").write(tmp_path / "crops.onnx")
    alone = [build_views(network, [view], "one").write(tmp_path / f"{place}.onnx") for place, view in enumerate(views)]
    photo = data.coffee()
    assert np.allclose(together([photo]), np.mean([model([photo]) for model in alone], axis=0), atol=1e-6)
    assert len(PREPROCESSING["ten-crop"]) == 10


@pytest.mark.parametrize("head", HEADS)
def test_the_box_of_the_zoom_lies_around_the_object(tmp_path: Path, head: str) -> None:
    model = load_model(write_small_object_network(tmp_path / "network.onnx", head=head))
    zoom = build_zoom(read_network(model), ZoomSettings())
    zoom.write(tmp_path / "zoom.onnx")
    photo = np.full((240, 320, 3), 128, np.uint8)
    photo[150:200, 230:270] = (20, 200, 20)
    session = open_onnx_session(tmp_path / "zoom.onnx")
    left, top, side = session.run(["box"], {"photo": photo.transpose(2, 0, 1)[None].astype(np.float32)})[0].tolist()
    assert left <= 230
    assert left + side >= 270
    assert top <= 150
    assert top + side >= 200
    assert side <= 100  # 0.3 of the shorter side is 72
    assert zoom.passes == 2


def test_a_photo_without_any_evidence_is_seen_whole(tmp_path: Path) -> None:
    model = load_model(write_small_object_network(tmp_path / "network.onnx"))
    build_zoom(read_network(model), ZoomSettings()).write(tmp_path / "zoom.onnx")
    grey = np.full((1, 3, 90, 120), 128, np.float32)
    box = open_onnx_session(tmp_path / "zoom.onnx").run(["box"], {"photo": grey})[0].tolist()
    assert box[2] == 90


def test_a_network_without_a_class_map_says_so_and_searches(tmp_path: Path) -> None:
    network = open_network(tmp_path)
    network.proto.graph.node[0].op_type = "GlobalMaxPool"
    found = NetworkFile(
        address="test", proto=network.proto, labels=LABELS, preprocessing=network.preprocessing, gives_logits=True
    )
    with pytest.raises(UnknownStructureError, match="mean over the places"):
        find_class_map(found.reader)
    made = build_zoom(found, ZoomSettings())
    assert "no class map" in made.note
    assert made.passes == 6
    assert "no class map" in made.description["note"]
    probabilities = made.write(tmp_path / "search.onnx")([data.chelsea()])
    assert probabilities.sum() == pytest.approx(1, abs=1e-4)


def test_tokens_that_form_no_grid_have_no_class_map(tmp_path: Path) -> None:
    address = write_small_object_network(tmp_path / "network.onnx", head="mean over tokens")
    network = read_network(load_model(address))
    other = replace(network, preprocessing=replace(network.preprocessing, size=(SIDE, 2 * SIDE)))
    with pytest.raises(UnknownStructureError, match=r"mean over 4096 tokens, which form no grid"):
        find_class_map(other.reader)


def test_layers_that_mix_the_places_have_no_class_map(tmp_path: Path) -> None:
    address = write_small_object_network(tmp_path / "network.onnx", head="mean over tokens, norm")
    network = read_network(load_model(address))
    (norm,) = [node for node in network.proto.graph.node if node.op_type == "LpNormalization"]
    norm.attribute[0].i = 0  # over the pictures, of which there is one, and not over the features of each
    made = build_zoom(replace(network), ZoomSettings())
    assert "cannot be applied to each place by itself" in made.note
    assert made.passes == 6


def test_a_network_with_a_graph_inside_is_refused_in_one_line(tmp_path: Path) -> None:
    network = open_network(tmp_path)
    inner = onnx.helper.make_graph([], "inner", [], [])
    network.proto.graph.node[0].attribute.append(onnx.helper.make_attribute("body", inner))
    config = RepairConfig(source=DemoSource(), model="onnx:colours.onnx", method="zoom")
    with pytest.raises(UserError, match="its operator GlobalAveragePool holds a graph of its own"):
        select_methods(config, network)


@pytest.mark.parametrize("head", [head for head in HEADS if "activation" not in head and "norm" not in head])
def test_the_last_layer_of_every_head_is_fitted_and_written(tmp_path: Path, head: str) -> None:
    network = read_network(load_model(write_small_object_network(tmp_path / "network.onnx", head=head)))
    photo = np.full((240, 320, 3), 128, np.uint8)
    photo[150:200, 230:270] = (20, 200, 20)
    features, old = open_features(network)([photo]), old_rows(network.last_layer)
    other = Rows(old.weights[::-1].copy(), old.bias + 1.0)
    write_rows(network, other, "test").write(tmp_path / "fitted.onnx")
    for path, rows in ((tmp_path / "network.onnx", old), (tmp_path / "fitted.onnx", other)):
        scores = rows.scores(features)
        wanted = np.exp(scores) / np.exp(scores).sum()
        assert np.allclose(load_model(f"onnx:{path}")([photo]), wanted, atol=1e-4)


def test_a_last_layer_before_an_activation_is_not_fitted(tmp_path: Path) -> None:
    address = write_small_object_network(tmp_path / "network.onnx", head="convolution, activation, mean")
    with pytest.raises(UnknownStructureError, match="the operator Relu lies between its last layer and the mean"):
        _ = read_network(load_model(address)).last_layer


def test_settings_outside_their_range_are_refused() -> None:
    with pytest.raises(UserError, match="share"):
        ZoomSettings(share=0)
    with pytest.raises(UserError, match="scale"):
        FixedView(scale=1.5)
    with pytest.raises(UserError, match="strengths"):
        LastLayerSettings(strengths=())


def test_the_written_last_layer_gives_the_scores_of_the_fit(tmp_path: Path) -> None:
    network = open_network(tmp_path)
    rows = Rows(np.arange(9.0).reshape(3, 3), np.zeros(3), has_bias=False)
    write_rows(network, rows, "test").write(tmp_path / "fitted.onnx")
    photo = data.chelsea()
    scores = rows.scores(open_features(network)([photo]))
    assert np.array_equal(load_model(f"onnx:{tmp_path / 'fitted.onnx'}")([photo]).argmax(axis=1), scores.argmax(axis=1))
    onnx.checker.check_model(onnx.load(tmp_path / "fitted.onnx"))


def test_the_fit_agrees_with_logistic_regression_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    columns = rng.integers(0, 3, 120)
    values = (np.eye(3)[columns] + rng.normal(0, 0.7, (120, 3))).astype(np.float32)
    strength = 0.05
    old = Rows(np.zeros((3, 3)), np.zeros(3), has_bias=False)
    features = Features(values, columns.astype(np.int64), np.full(120, 1 / 120))
    ours = fit_rows(old, features, np.arange(3), strength, LastLayerSettings(steps=600))
    theirs = LogisticRegression(C=1 / (strength * 120), fit_intercept=False, tol=1e-10, max_iter=2000)
    theirs.fit(values, columns)
    assert np.allclose(ours.weights - ours.weights.mean(axis=0), theirs.coef_ - theirs.coef_.mean(axis=0), atol=1e-3)


def make_answers(rng: np.random.Generator, label: int, name: str, *, shuffled: int | None = None) -> PhotoAnswers:
    """A photo with five pictures whose noisy features show its class; the fitted label may be another."""
    features = np.eye(4)[label] + rng.normal(0, 0.8, (5, 4))
    conditions = (Condition("original", "original", "none"), *[Condition("size", "size", "0.05")] * 4)
    none = np.zeros(5, np.int64)
    return PhotoAnswers(
        sample=name, label=label if shuffled is None else shuffled, conditions=conditions, replicates=(0,) * 5,
        answers={"before": none}, among={"before": none}, features=features.astype(np.float32),
    )  # fmt: skip


@pytest.mark.parametrize("shuffle", [False, True])
def test_shuffled_labels_in_the_fitting_part_give_no_gain(tmp_path: Path, shuffle: bool) -> None:
    from counterfoil.assets.onnx_graph import Graph

    rng, shuffling = np.random.default_rng(1), np.random.default_rng(2)  # the same photos in both cases
    graph = Graph("linear")
    flat = graph.node("Flatten", [graph.node("GlobalAveragePool", ["pictures"])])
    old = np.eye(4) + rng.normal(0, 1.0, (4, 4))
    logits = graph.node("Gemm", [flat, graph.constant("weights", old), graph.constant("bias", np.zeros(4))],
                        {"transB": 1})  # fmt: skip
    (tmp_path / "linear.onnx").write_bytes(graph.model({"pictures": (4, 8, 8)}, {"logits": (logits, (4,))}))
    network = NetworkFile(
        address="linear", proto=onnx.load(tmp_path / "linear.onnx"), labels=("a", "b", "c", "d"),
        preprocessing=Preprocessing(size=(8, 8), resize=None), gives_logits=True,
    )  # fmt: skip
    labels = [rng.integers(0, 4, 60).tolist() for _ in range(3)]
    fitting = [
        [
            make_answers(rng, label, f"{part} {place}", shuffled=int(shuffling.integers(0, 4)) if shuffle else None)
            for place, label in enumerate(row)
        ]
        for part, row in enumerate(labels)
    ]
    judged = [
        [make_answers(rng, label, f"{part} {place}") for place, label in enumerate(row)]
        for part, row in enumerate(labels)
    ]
    fits = fit_folds(LayerFitter(network, np.arange(4), LastLayerSettings(), fitting), judged)

    def accuracy(rows: list[NDArray[np.int64]]) -> float:
        truth = [photo.label for part in judged for photo in part]
        return float(np.mean([answer == label for answer, label in zip(rows, truth, strict=True)]))

    before = accuracy([
        (photo.features @ old.T.astype(np.float32)).argmax(axis=1) for part in judged for photo in part
        if photo.features is not None
    ])  # fmt: skip
    after = accuracy([photo.among[LAST_LAYER] for part in fits.judged for photo in part])
    gain = after - before
    assert gain < 0.02 if shuffle else gain > 0.1
