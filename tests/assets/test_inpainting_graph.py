"""The network that is taken out of MI-GAN's file paints what the file paints, at any size."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from counterfoil.assets.inpainting_graph import (
    FULL,
    PAINTED,
    PLANES,
    NetworkEnds,
    extract_network,
    open_inpainting_session,
)
from counterfoil.assets.onnx_session import open_onnx_session

CHANNELS = 16
WHOLE = NetworkEnds("input", "output")


def make_file(noise: float = 0.1, bound: float = 256.0, mode: str = "constant") -> bytes:
    """A network as MI-GAN's: scaled activations, bounds, noise, planes with zeros between pixels, resized before."""
    rng = np.random.default_rng(0)
    between = np.zeros((1, 1, FULL, FULL), np.float32)
    between[..., ::2, ::2] = 1
    tensors = {
        "first": rng.standard_normal((CHANNELS, 4, 1, 1)).astype(np.float32),
        "offsets": rng.standard_normal(CHANNELS).astype(np.float32),
        "noise": (noise * rng.standard_normal((FULL // 2, FULL // 2))).astype(np.float32),
        "gain": np.array(np.sqrt(2), np.float32), "low": np.array(-bound, np.float32),
        "high": np.array(bound, np.float32), "twice": np.array([1, 1, 2, 2], np.float32), "between": between,
        "pads": np.array([0, 0, 2, 2, 0, 0, 1, 1], np.int64),
        "second": rng.standard_normal((CHANNELS, 1, 4, 4)).astype(np.float32),
        "third": rng.standard_normal((3, CHANNELS, 1, 1)).astype(np.float32), "half": np.array(0.5, np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Mul", ["image", "half"], ["input"], name="before"),
        helper.make_node("Conv", ["input", "first", "offsets"], ["a"], name="one", strides=[2, 2]),
        helper.make_node("Add", ["a", "noise"], ["b"], name="noisy"),
        helper.make_node("LeakyRelu", ["b"], ["c"], name="activation", alpha=0.2),
        helper.make_node("Mul", ["c", "gain"], ["d"], name="scale"),
        helper.make_node("Clip", ["d", "low", "high"], ["e"], name="clip"),
        helper.make_node("Resize", ["e", "", "twice"], ["f"], name="enlarge", mode="nearest",
                         coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        helper.make_node("Mul", ["f", "between"], ["g"], name="space"),
        helper.make_node("Pad", ["g", "pads"], ["h"], name="pad", mode=mode),
        helper.make_node("Conv", ["h", "second"], ["i"], name="two", group=CHANNELS),
        helper.make_node("Conv", ["i", "third"], ["output"], name="three"),
        helper.make_node("Mul", ["output", "half"], ["result"], name="after"),
    ]  # fmt: skip
    shape = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "small", [shape("image", onnx.TensorProto.FLOAT, [1, 4, FULL, FULL])],
        [shape("result", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def count_kinds(model: bytes) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load_from_string(model).graph.node)


def make_planes(height: int, width: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((1, 4, height, width)).astype(np.float32)


def run_file(file: bytes, planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """What the whole file gives, without the halving before and after the network."""
    return np.asarray(open_onnx_session(file).run(None, {"image": 2 * planes})[0] * 2, np.float32)


def run_network(network: bytes, planes: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(open_onnx_session(network).run([PAINTED], {PLANES: planes})[0], np.float32)


def test_the_network_gives_what_the_file_gives() -> None:
    file, planes = make_file(), make_planes(FULL, FULL)
    network = extract_network(file, WHOLE)
    kinds = count_kinds(network)
    assert (kinds["Clip"], kinds["Pad"], kinds["Mul"], kinds["Add"]) == (0, 0, 1, 1)
    np.testing.assert_allclose(run_network(network, planes), run_file(file, planes), rtol=1e-4, atol=1e-4)


def test_the_network_takes_smaller_planes_of_other_shapes() -> None:
    file, planes = make_file(), make_planes(FULL, FULL)
    part = np.ascontiguousarray(planes[:, :, :128, :256])
    painted = run_network(extract_network(file, WHOLE), part)
    assert painted.shape == (1, 3, 128, 256)
    # A filter of four pixels sees two beyond the part's lower and right borders.
    np.testing.assert_allclose(painted[..., :-2, :-2], run_file(file, planes)[..., :126, :254], rtol=1e-4, atol=1e-4)


def test_faint_noise_is_left_out_and_changes_next_to_nothing() -> None:
    file, planes = make_file(noise=1e-5), make_planes(FULL, FULL)
    network = extract_network(file, WHOLE)
    assert count_kinds(network)["Add"] == 0
    assert np.abs(run_network(network, planes) - run_file(file, planes)).max() < 0.01


def test_other_bounds_and_paddings_stay() -> None:
    kinds = count_kinds(extract_network(make_file(bound=2.0, mode="reflect"), WHOLE))
    assert (kinds["Clip"], kinds["Pad"]) == (1, 1)


def test_the_network_is_kept_and_a_damaged_one_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    weights = tmp_path / "small.onnx"
    names = {"input": "/Concat_23_output_0", "output": "/model/synthesis/b512/Add_1_output_0"}
    model = onnx.load_from_string(make_file())
    for node in model.graph.node:
        for values in (node.input, node.output):
            for place, name in enumerate(values):
                values[place] = names.get(name, name)
    weights.write_bytes(model.SerializeToString())
    planes = make_planes(128, 128)
    expected = run_network(extract_network(weights.read_bytes()), planes)
    for _ in range(2):
        assert np.array_equal(open_inpainting_session(weights).run([PAINTED], {PLANES: planes})[0], expected)
    (kept,) = (tmp_path / "cache").rglob("*.onnx")
    kept.write_bytes(kept.read_bytes()[:1000])
    assert np.array_equal(open_inpainting_session(weights).run([PAINTED], {PLANES: planes})[0], expected)
