"""The small diffusion model in torch: the same pictures as in ONNX Runtime, and gradients of a surrogate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from counterfoil.embedded.networks import NETWORKS, onnx_file
from counterfoil.models import load_model
from counterfoil.models.onnx import OnnxClassifier
from counterfoil.paint.background_model import background_model, read_weights, weights_file
from counterfoil.paint.complexity_guide import complexity_guide
from counterfoil.paint.sampler import painted, ratios
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
    for ratio in (-6.0, 0.0, 5.0):
        theirs = torch_model("cpu")(torch.from_numpy(planes), ratio).numpy()
        np.testing.assert_allclose(background_model()(planes, ratio), theirs, atol=1e-4)


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
