"""The painter of `precision: bf16`, here with torch on a CPU and not compiled: the same function in 16 bits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from test_background_model import part, scene

from counterfoil.edits.registry import edit_named, settings_of
from counterfoil.errors import UserError
from counterfoil.painters.background_batches import Finish, GpuBatcher, Guides
from counterfoil.painters.background_model import load_background_model, read_background_weights, read_weights_file
from counterfoil.painters.guidance import complexity_guide
from counterfoil.painters.sampler import Scene, ratios, repeat_steps, sample_background

pytestmark = pytest.mark.torch

GUIDES = Guides(complexity_guide(20, 0.3))


@pytest.fixture(scope="module")
def painter() -> Any:
    """The shipped weights in 16 bits."""
    from counterfoil.painters.compiled_background import load_fast_painter

    return load_fast_painter("cpu", read_background_weights(read_weights_file()))


def levels(images: Any) -> Any:
    return np.rint((np.clip(images, -1, 1) + 1) * 127.5)


@pytest.mark.parametrize("schedule", [ratios(0.3, 4), repeat_steps(ratios(0.3, 4), 2)])
def test_pictures_in_16_bits_are_those_of_onnx_runtime_within_a_few_levels(
    painter: Any, schedule: Sequence[float]
) -> None:
    given = scene(2)
    painted = painter.start([given], schedule, [GUIDES] * 2)()
    exact = sample_background(load_background_model(), given, schedule, GUIDES.complexity)
    apart = np.abs(levels(painted) - levels(exact))
    assert apart.max() <= 6
    assert 0 < apart.mean() < 1  # it is another arithmetic, and a near one


def test_each_step_with_its_numbers_in_a_tensor_is_that_of_the_sampler() -> None:
    import torch

    from counterfoil.painters.compiled_background import CompiledBackground, _take_step

    def velocity(noisy: Any, kept: Any, known: Any, ratio: Any) -> Any:
        return 0.3 * noisy + 0.2 * kept + 0.01 * ratio.view(-1, 1, 1, 1)

    def predict(planes: Any, ratio: float) -> Any:
        return 0.3 * planes[:, :3] + 0.2 * planes[:, 3:6] + 0.01 * ratio

    given, schedule = scene(2), ratios(0.5, 5)
    model = CompiledBackground("cpu", velocity, _take_step)
    planes = (given.background, given.colours, given.known, given.noise)
    there = Scene(*(torch.from_numpy(plane) for plane in planes))
    totals = torch.full((2, 1, 1, 1), float(GUIDES.complexity.total))
    painted = model.paint(there, schedule, totals, model.list_numbers(schedule))
    expected = sample_background(predict, there, schedule, GUIDES.complexity)
    np.testing.assert_allclose(painted.numpy(), expected.numpy(), atol=1e-4)


def test_the_rearranged_network_is_the_same_function_in_32_bits() -> None:
    import torch

    from counterfoil.painters.background_network import BackgroundNetwork
    from counterfoil.painters.compiled_background import rearrange

    tensors = {name: torch.from_numpy(each) for name, each in read_background_weights(read_weights_file()).items()}
    plain, rearranged = BackgroundNetwork().eval(), BackgroundNetwork().eval()
    for network in (plain, rearranged):
        network.load_state_dict(tensors)
    planes = torch.randn(2, 7, 64, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = plain(planes, torch.tensor([-2.0, 3.0]))
        found = rearrange(rearranged)(planes, torch.tensor([-2.0, 3.0]))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=2e-4)


def test_a_picture_in_16_bits_does_not_depend_on_its_batch(painter: Any) -> None:
    painter.rows = 4
    batcher, schedule, many = GpuBatcher("cpu", painter), ratios(0.3, 2), scene(3)
    together = batcher.paint(many, schedule, GUIDES)
    alone = [batcher.paint(part(many, slice(place, place + 1)), schedule, GUIDES) for place in range(3)]
    np.testing.assert_array_equal(np.concatenate(alone), together)


class Held:
    """A painter of a device that takes two batches at once, and ends them when it is told to."""

    rows, depth = 2, 2

    def __init__(self) -> None:
        self.begun, self.end = list[int](), threading.Event()

    def start(self, scenes: Sequence[Scene], schedule: Sequence[float], guides: Sequence[Guides]) -> Finish:
        self.begun.append(len(guides))

        def finish() -> Any:
            assert self.end.wait(60)
            return np.concatenate([each.background for each in scenes])

        return finish


def test_a_full_batch_is_begun_while_another_is_painted_and_a_part_of_one_waits() -> None:
    held, schedule, many = Held(), ratios(0.3, 2), scene(5)
    batcher = GpuBatcher("cpu", held)
    with ThreadPoolExecutor(5) as threads:
        asked = [threads.submit(batcher.paint, part(many, slice(0, 2)), schedule, GUIDES)]
        asked.append(threads.submit(batcher.paint, part(many, slice(2, 4)), schedule, GUIDES))
        asked.append(threads.submit(batcher.paint, part(many, slice(4, 5)), schedule, GUIDES))
        while len(held.begun) < 2:
            threading.Event().wait(0.01)
        held.end.set()
        painted = np.concatenate([each.result() for each in asked])
    assert sorted(painted.reshape(5, -1).sum(1)) == sorted(many.background.reshape(5, -1).sum(1))
    assert len(held.begun) == 3


def test_16_bits_need_a_gpu_and_are_part_of_the_seed_only_where_they_are_chosen() -> None:
    with pytest.raises(UserError, match="precision: expected f32 with device: cpu, got bf16; it needs cuda"):
        edit_named("painted-complexity", {"precision": "bf16"})
    exact, fast = (edit_named("painted-complexity", {"device": "cuda", "precision": each}) for each in ("f32", "bf16"))
    assert settings_of(fast)["precision"] == "bf16"  # as the manifest has it
    assert "precision" in type(exact).later
    assert exact != fast
