"""The small diffusion model in torch: the same pictures as in ONNX Runtime, and gradients of a surrogate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from counterfoil.embedded.networks import NETWORKS, onnx_file
from counterfoil.models import load_model
from counterfoil.models.onnx import OnnxClassifier
from counterfoil.paint.background_model import background_model, read_weights, weights_file
from counterfoil.paint.complexity_guide import complexity_guide
from counterfoil.paint.sampler import painted, ratios
from counterfoil.types import Preprocessing
from edit_pictures import cat
from test_paint_background import scene

pytestmark = pytest.mark.torch


def test_the_weights_read_as_the_library_reads_them() -> None:
    from safetensors.numpy import load

    data = weights_file()
    ours, theirs = read_weights(data), load(data)
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name].astype(np.float32))


def test_torch_and_onnx_runtime_predict_the_same() -> None:
    import torch

    from counterfoil.paint.background_torch import torch_model

    planes = np.random.default_rng(2).standard_normal((2, 7, 64, 96)).astype(np.float32)
    model = torch_model("cpu")
    for ratio in (-6.0, 0.0, 5.0):
        theirs = model(torch.from_numpy(planes), ratio).numpy()
        np.testing.assert_allclose(background_model()(planes, ratio), theirs, atol=1e-4)
    assert not torch.backends.cudnn.allow_tf32  # which would be felt on a GPU alone


def test_a_gpu_that_is_not_there_is_said() -> None:
    import torch

    from counterfoil.edit.painted import PaintedComplexity
    from counterfoil.errors import UserError

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(UserError, match="expected a GPU for device: cuda, but torch sees none; use device: cpu"):
        PaintedComplexity(device="cuda")(cat(), np.random.default_rng(0))


def test_torch_and_onnx_runtime_paint_the_same_picture() -> None:
    from counterfoil.paint.background_torch import painted_on, torch_model

    given, schedule, guide = scene(1), ratios(0.5, 4), complexity_guide(20, 0.5)
    theirs = painted_on("cpu", torch_model("cpu"), given, schedule, guide)
    np.testing.assert_allclose(painted(background_model(), given, schedule, guide), theirs, atol=0.5 / 127.5)


def test_an_onnx_surrogate_has_in_torch_the_probabilities_that_it_has_in_its_runtime() -> None:
    import torch

    from counterfoil.paint.onnx_gradient import log_probability

    surrogate = load_model("embedded:efficientnet-lite0")
    assert isinstance(surrogate, OnnxClassifier)
    image = cat().image
    probabilities = surrogate([image])[0]
    best = int(probabilities.argmax())
    levels = torch.from_numpy(image.astype(np.float32).transpose(2, 0, 1)[None])
    found = float(log_probability(surrogate.path, best, surrogate.preprocessing)(levels).exp())
    assert found == pytest.approx(float(probabilities[best]), abs=0.03)  # the resizing differs by a level or two


def logits_file(folder: Path) -> Path:
    """A network that ends in logits: one convolution, pooling, a matrix."""
    rng = np.random.default_rng(3)
    shapes = {"kernel": (4, 3, 3, 3), "bias": (4,), "matrix": (5, 4), "offset": (5,)}
    weights = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name) for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["pictures", "kernel", "bias"], ["a"], pads=[1] * 4, strides=[1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "matrix", "offset"], ["e"], transB=1),
    ]
    floats = TensorProto.FLOAT
    given = helper.make_tensor_value_info("pictures", floats, ["n", 3, 16, 16])
    graph = helper.make_graph(nodes, "g", [given], [helper.make_tensor_value_info("e", floats, ["n", 5])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (folder / "logits.onnx").write_bytes(model.SerializeToString())
    return folder / "logits.onnx"


def test_logits_and_another_order_of_colours_are_read_as_the_surrogate_reads_them(tmp_path: Path) -> None:
    import torch

    from counterfoil.paint.onnx_gradient import log_probability

    wanted = Preprocessing((16, 16), None, colour_order="BGR")
    surrogate = OnnxClassifier("logits", logits_file(tmp_path), tuple("abcde"), wanted)
    image = np.random.default_rng(4).integers(0, 256, (16, 16, 3), np.uint8)
    levels = torch.from_numpy(image.astype(np.float32).transpose(2, 0, 1)[None])
    found = [float(log_probability(surrogate.path, column, wanted)(levels).exp()) for column in range(5)]
    np.testing.assert_allclose(found, surrogate([image])[0], atol=1e-4)


def test_a_surrogate_without_a_gradient_chooses_among_candidates() -> None:
    from counterfoil.edit.painted import PaintedAdversarial
    from counterfoil.errors import UserError
    from counterfoil.pipeline.attacking import by_gradient

    with_it, without = (load_model(f"embedded:{name}") for name in ("efficientnet-lite0", "pp-lcnetv2"))
    assert by_gradient(PaintedAdversarial(), with_it)
    assert not by_gradient(PaintedAdversarial(), without)
    with pytest.raises(UserError, match="with BatchNormalization; use by: candidates"):
        by_gradient(PaintedAdversarial(by="gradient"), without)


def test_a_gradient_guide_lowers_the_probability_of_the_truth() -> None:
    import torch

    from counterfoil.paint.adversarial import gradient_guide

    weights = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 64, 64)).astype(np.float32))
    asked: Callable[..., object] = lambda levels: (levels / 255 * weights).mean((1, 2, 3))  # noqa: E731
    clean = scene(1).background
    stepped = gradient_guide(asked)(clean, 1.0)
    before, after = (float(((each + 1) / 2 * weights.numpy()).mean()) for each in (clean, stepped))
    assert after < before
    assert isinstance(stepped, np.ndarray)
    assert np.sqrt(np.mean((stepped - clean) ** 2)) == pytest.approx(0.2, rel=0.01)


def test_a_network_of_other_operators_is_refused_by_name(assets: Callable[[str], Path], tmp_path: Path) -> None:
    from counterfoil.embedded.fetch import cache_folder
    from counterfoil.errors import UserError
    from counterfoil.paint.onnx_gradient import log_probability

    file = onnx_file("pp-lcnetv2", assets, cache_folder())
    with pytest.raises(UserError, match="expected a network of Conv"):
        log_probability(file, 0, NETWORKS["pp-lcnetv2"].preprocessing)
