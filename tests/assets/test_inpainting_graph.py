"""The rewritten graph of the inpainting network gives the same bits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from counterfoil.assets.inpainting_graph import fuse_scaling, open_inpainting_session
from counterfoil.assets.onnx_session import open_onnx_session

CHANNELS = 32


def make_network(mode: str = "constant") -> bytes:
    """Two convolutions with a scaled, clipped activation and a padding between them, as MI-GAN has them."""
    rng = np.random.default_rng(0)
    tensors = {
        "first": rng.standard_normal((CHANNELS, 3, 3, 3)).astype(np.float32),
        "second": rng.standard_normal((CHANNELS, 1, 4, 4)).astype(np.float32),
        "gain": np.array(np.sqrt(2), np.float32), "low": np.array(-2, np.float32), "high": np.array(2, np.float32),
        "pads": np.array([0, 0, 2, 2, 0, 0, 1, 1], np.int64),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["image", "first"], ["a"], name="one", pads=[1, 1, 1, 1]),
        helper.make_node("LeakyRelu", ["a"], ["b"], name="activation", alpha=0.2),
        helper.make_node("Mul", ["b", "gain"], ["c"], name="scale"),
        helper.make_node("Clip", ["c", "low", "high"], ["d"], name="clip"),
        helper.make_node("Pad", ["d", "pads"], ["e"], name="pad", mode=mode),
        helper.make_node("Conv", ["e", "second"], ["result"], name="two", group=CHANNELS),
    ]
    shape = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "small", [shape("image", onnx.TensorProto.FLOAT, [1, 3, 40, 56])],
        [shape("result", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def count_kinds(model: bytes) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load_from_string(model).graph.node)


@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_a_rewritten_network_gives_the_same_bits(mode: str) -> None:
    plain = make_network(mode)
    fused = fuse_scaling(plain)
    kinds = count_kinds(fused)
    assert kinds["Mul"] == 0
    assert kinds["Pad"] == (0 if mode == "constant" else 1)  # a reflection is no padding of a convolution
    image = np.random.default_rng(1).standard_normal((1, 3, 40, 56)).astype(np.float32)
    before, after = (open_onnx_session(model).run(None, {"image": image})[0] for model in (plain, fused))
    assert before.tobytes() == after.tobytes()


def test_the_rewritten_graph_is_kept_and_a_damaged_one_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    weights = tmp_path / "small.onnx"
    weights.write_bytes(make_network())
    image = {"image": np.ones((1, 3, 40, 56), np.float32)}
    expected = open_onnx_session(weights).run(None, image)[0]
    for _ in range(2):
        assert np.array_equal(open_inpainting_session(weights).run(None, image)[0], expected)
    (kept,) = (tmp_path / "cache").rglob("*.onnx")
    kept.write_bytes(kept.read_bytes()[:1000])
    assert np.array_equal(open_inpainting_session(weights).run(None, image)[0], expected)
