"""The small diffusion model in torch: the same pictures as in ONNX Runtime, and gradients of a surrogate."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_background_model import part, scene

from counterfoil.assets.embedded_networks import NETWORKS, build_onnx_file
from counterfoil.errors import UserError
from counterfoil.models.model_loaders import load_model
from counterfoil.models.onnx_classifier import OnnxClassifier
from counterfoil.painters.background_batches import ROWS, ExactPainter, GpuBatcher, Guides
from counterfoil.painters.background_model import load_background_model
from counterfoil.painters.guidance import complexity_guide
from counterfoil.painters.sampler import Predict, Scene, ratios, sample_background
from counterfoil.types import Preprocessing
from edit_pictures import cat

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def model() -> Predict:
    """The shipped model in torch."""
    from counterfoil.painters.background_batches import load_torch_model

    return load_torch_model("cpu")


def test_torch_and_onnx_runtime_predict_the_same(model: Predict) -> None:
    import torch

    planes = np.random.default_rng(2).standard_normal((2, 7, 64, 96)).astype(np.float32)
    for ratio in (-6.0, 0.0, 5.0):
        theirs = model(torch.from_numpy(planes), ratio).numpy()
        np.testing.assert_allclose(load_background_model()(planes, ratio), theirs, atol=1e-4)
    assert not torch.backends.cudnn.allow_tf32  # which would be felt on a GPU alone


def test_a_gpu_that_is_not_there_is_said() -> None:
    import torch

    from counterfoil.edits.painted import PaintedComplexity

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(UserError, match="expected a GPU for device: cuda, but torch sees none; use device: cpu"):
        PaintedComplexity(device="cuda")(cat(), np.random.default_rng(0))


def test_torch_and_onnx_runtime_paint_the_same_picture(model: Predict) -> None:
    from counterfoil.painters.background_batches import sample_on_device as painted_on

    given, schedule, guide = scene(1), ratios(0.5, 4), complexity_guide(20, 0.5)
    theirs = painted_on("cpu", model, given, schedule, guide)
    np.testing.assert_allclose(
        sample_background(load_background_model(), given, schedule, guide), theirs, atol=0.5 / 127.5
    )


def guided(place: int) -> Guides:
    return Guides(complexity_guide(20 * place - 20, 0.5))


def scenes(count: int) -> list[Scene]:
    return [part(scene(count), slice(place, place + 1)) for place in range(count)]


class Watched:
    """A network that predicts nothing, or another one; knows the sizes of the batches that it was given."""

    def __init__(self, model: Predict = lambda planes, ratio: 0 * planes[:, :3]) -> None:
        self.model, self.sizes = model, list[int]()

    def __call__(self, planes: Any, ratio: float) -> Any:
        self.sizes.append(len(planes))
        return self.model(planes, ratio)


def batcher_of(network: Predict, rows: int = ROWS) -> GpuBatcher:
    return GpuBatcher("cpu", ExactPainter("cpu", network, rows))


def test_pictures_painted_together_are_those_painted_alone_to_the_bit(model: Predict) -> None:
    network, schedule = Watched(model), ratios(0.5, 2)
    batcher = batcher_of(network, 2)
    together = batcher.paint(scene(3), schedule, guided(2))
    assert network.sizes == [2, 2, 2, 2]  # two steps of two batches, the second filled up
    alone = [batcher.paint(each, schedule, guided(2)) for each in scenes(3)]
    np.testing.assert_array_equal(np.concatenate(alone), together)
    expected = sample_background(load_background_model(), scene(3), schedule, guided(2).complexity)
    np.testing.assert_allclose(together, expected, atol=0.5 / 127.5)


def test_threads_that_wait_share_a_batch_and_each_gets_its_own_picture() -> None:
    network, schedule, free = Watched(), ratios(0.5, 2), threading.Event()
    batcher = batcher_of(network, 4)
    alone = [batcher.paint(each, schedule, guided(place)) for place, each in enumerate(scenes(4))]
    network.sizes.clear()

    def holding(clean: Any, noise: float) -> Any:
        assert free.wait(60)
        return clean

    with ThreadPoolExecutor(5) as threads:
        holder = threads.submit(batcher.paint, scene(1), schedule, Guides(guided(0).complexity, holding))
        while not network.sizes:  # until the device is taken
            threading.Event().wait(0.01)
        asked = [threads.submit(batcher.paint, each, schedule, guided(n)) for n, each in enumerate(scenes(4))]
        while sum(map(len, batcher._waiting.values())) < 4:
            threading.Event().wait(0.01)
        free.set()
        for mine, expected in zip(asked, alone, strict=True):
            np.testing.assert_array_equal(mine.result(), expected)
        holder.result()
    assert network.sizes == [4] * 4  # two steps of one batch for the one that held the device, and one for all others


def test_a_batch_that_does_not_fit_is_halved_and_later_ones_begin_there() -> None:
    import torch

    network, schedule, refusals = Watched(), ratios(0.5, 1), [1]
    batcher = batcher_of(network, 4)

    def crowded(clean: Any, noise: float) -> Any:
        if refusals:
            raise torch.OutOfMemoryError(f"refused {refusals.pop()}")
        return clean

    first = batcher.paint(scene(3), schedule, Guides(guided(1).complexity, crowded))
    second = batcher.paint(scene(3), schedule, guided(1))
    assert network.sizes == [4, 2, 2, 2, 2]
    np.testing.assert_array_equal(first, second)


def test_a_device_without_room_says_so_and_is_left_to_others() -> None:
    import torch

    batcher, schedule = batcher_of(Watched(), 2), ratios(0.5, 1)

    def full(clean: Any, noise: float) -> Any:
        raise torch.OutOfMemoryError("full")

    with pytest.raises(UserError, match="background-256 has no room for a single picture on cpu: give a smaller"):
        batcher.paint(scene(1), schedule, Guides(guided(1).complexity, full))
    assert batcher.paint(scene(1), schedule, guided(1)).shape == (1, 3, 64, 64)


def test_a_picture_whose_guide_fails_leaves_the_others_of_its_batch_alone() -> None:
    network, schedule, free = Watched(), ratios(0.5, 1), threading.Event()
    batcher = batcher_of(network, 4)
    alone = batcher.paint(scene(1), schedule, guided(1))
    network.sizes.clear()

    def holding(clean: Any, noise: float) -> Any:
        assert free.wait(60)
        return clean

    def failing(clean: Any, noise: float) -> Any:
        raise ValueError("no gradient")

    with ThreadPoolExecutor(3) as threads:
        holder = threads.submit(batcher.paint, scene(1), schedule, Guides(guided(0).complexity, holding))
        while not network.sizes:
            threading.Event().wait(0.01)
        bad = threads.submit(batcher.paint, scene(1), schedule, Guides(guided(0).complexity, failing))
        good = threads.submit(batcher.paint, scene(1), schedule, guided(1))
        while sum(map(len, batcher._waiting.values())) < 2:
            threading.Event().wait(0.01)
        free.set()
        np.testing.assert_array_equal(good.result(), alone)
        with pytest.raises(ValueError, match="no gradient"):
            bad.result()
        holder.result()


@pytest.mark.parametrize(("side", "rows"), [(64, 16), (256, 16), (512, 4)])
def test_larger_pictures_come_fewer_at_a_time(side: int, rows: int) -> None:
    network = Watched()
    batcher_of(network).paint(scene(1, side), ratios(0.5, 1), guided(1))
    assert network.sizes == [rows]


def test_an_onnx_surrogate_has_in_torch_the_probabilities_that_it_has_in_its_runtime() -> None:
    import torch

    from counterfoil.painters.guidance import log_probability

    surrogate = load_model("embedded:efficientnet-lite0")
    assert isinstance(surrogate, OnnxClassifier)
    image = cat().image
    probabilities = surrogate([image])[0]
    best = int(probabilities.argmax())
    levels = torch.from_numpy(image.astype(np.float32).transpose(2, 0, 1)[None])
    found = float(log_probability(surrogate.path, best, surrogate.preprocessing)(levels).exp())
    assert found == pytest.approx(float(probabilities[best]), abs=0.03)  # the resizing differs by a level or two


def logits_file(folder: Path, kind: type[np.floating[Any]] = np.float32) -> Path:
    """A network that ends in logits: one convolution, pooling, a matrix; `kind` is that of its weights."""
    rng = np.random.default_rng(3)
    shapes = {"kernel": (4, 3, 3, 3), "bias": (4,), "matrix": (5, 4), "offset": (5,)}
    weights = [numpy_helper.from_array(rng.normal(size=shape).astype(kind), name) for name, shape in shapes.items()]
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

    from counterfoil.painters.guidance import log_probability

    wanted = Preprocessing(size=(16, 16), resize=None, colour_order="BGR")
    surrogate = OnnxClassifier(name="logits", path=logits_file(tmp_path), labels=tuple("abcde"), preprocessing=wanted)
    image = np.random.default_rng(4).integers(0, 256, (16, 16, 3), np.uint8)
    levels = torch.from_numpy(image.astype(np.float32).transpose(2, 0, 1)[None])
    found = [float(log_probability(surrogate.path, column, wanted)(levels).exp()) for column in range(5)]
    np.testing.assert_allclose(found, surrogate([image])[0], atol=1e-4)


def test_weights_that_are_not_32_bit_numbers_in_the_file_itself_are_refused(tmp_path: Path) -> None:
    from counterfoil.painters.guidance import log_probability

    wanted = Preprocessing(size=(16, 16), resize=None)
    with pytest.raises(UserError, match=r"^expected a network whose file holds its weights as 32-bit .* in 'kernel'$"):
        log_probability(logits_file(tmp_path, np.float16), 0, wanted)
    network = onnx.load(logits_file(tmp_path))
    onnx.save(network, tmp_path / "apart.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    with pytest.raises(UserError, match=r"^expected a network whose file holds its weights as 32-bit .* in 'kernel'$"):
        log_probability(tmp_path / "apart.onnx", 0, wanted)


def test_a_surrogate_without_a_gradient_chooses_among_candidates() -> None:
    from counterfoil.edits.painted import PaintedAdversarial

    with_it, without = (load_model(f"embedded:{name}") for name in ("efficientnet-lite0", "pp-lcnetv2"))
    assert PaintedAdversarial().by_gradient(with_it)
    assert not PaintedAdversarial().by_gradient(without)
    with pytest.raises(UserError, match="with BatchNormalization; use by: candidates"):
        PaintedAdversarial(by="gradient").by_gradient(without)


def test_a_gradient_guide_lowers_the_probability_of_the_truth() -> None:
    import torch

    from counterfoil.painters.guidance import gradient_guide

    weights = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 64, 64)).astype(np.float32))
    asked: Callable[..., object] = lambda levels: (levels / 255 * weights).mean((1, 2, 3))  # noqa: E731
    clean = scene(1).background
    stepped = gradient_guide(asked)(clean, 1.0)
    before, after = (float(((each + 1) / 2 * weights.numpy()).mean()) for each in (clean, stepped))
    assert after < before
    assert isinstance(stepped, np.ndarray)
    assert np.sqrt(np.mean((stepped - clean) ** 2)) == pytest.approx(0.2, rel=0.01)


def test_a_surrogates_guide_is_the_same_in_another_process() -> None:
    from counterfoil.painters.guidance import SurrogateGuide, gradient_guide, log_probability

    surrogate = load_model("embedded:efficientnet-lite0")
    assert isinstance(surrogate, OnnxClassifier)
    guide = SurrogateGuide(surrogate.path, 3, surrogate.preprocessing)
    clean = scene(1).background
    stepped = pickle.loads(pickle.dumps(guide))(clean, 0.5)
    expected = gradient_guide(log_probability(surrogate.path, 3, surrogate.preprocessing))(clean, 0.5)
    np.testing.assert_array_equal(stepped, expected)


def test_a_network_of_other_operators_is_refused_by_name(assets: Callable[[str], Path], tmp_path: Path) -> None:
    from counterfoil.assets.cache import cache_folder
    from counterfoil.painters.guidance import log_probability

    file = build_onnx_file("pp-lcnetv2", assets, cache_folder())
    with pytest.raises(UserError, match="expected a network of Conv"):
        log_probability(file, 0, NETWORKS["pp-lcnetv2"].preprocessing)
