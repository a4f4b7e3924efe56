"""The background model in bfloat16 on a GPU: its weights rearranged, compiled, and whole paintings as CUDA graphs.

Fast, and not exact: sums are rounded to eight bits, so that a few of 1,000 levels differ by one from the picture that
32 bits give. Full precision is the default of every edit that paints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch._dynamo.exc import TorchDynamoException
from torch.nn import functional

from counterfoil.errors import UserError
from counterfoil.painters.background_batches import (
    Finish,
    Guides,
    batch_guide,
    join_scenes,
    planes_of,
    sample_on_device,
)
from counterfoil.painters.background_model import GROUPS, HEADS
from counterfoil.painters.background_network import Attention, BackgroundNetwork
from counterfoil.painters.guidance import guide_complexity
from counterfoil.painters.sampler import Scene, StepWeights, add_first_noise, advance, find_clean, step_weights

_LANES = 8  # the fused attention takes heads of a multiple of so many numbers
_MOST_RECORDINGS = 8  # picture sizes and schedules; each holds gigabytes of the device's memory
_WARM_UP_RUNS = 3  # libraries choose their kernels on the first runs, which cannot be recorded


class ChannelNorm(nn.Module):  # type: ignore[misc]
    """A group norm of 16-bit numbers with channels last: sums of each channel in 32 bits, then one pass."""

    def __init__(self, norm: nn.GroupNorm) -> None:
        super().__init__()
        self.weight, self.bias, self.epsilon = norm.weight, norm.bias, norm.eps

    def forward(self, value: Tensor) -> Tensor:
        """`value` is (n, channels, height, width)."""
        count, channels, height, width = value.shape
        wide = value.float()
        sums = torch.stack([wide.sum((2, 3)), wide.square().sum((2, 3))])
        size = channels // GROUPS * height * width
        mean, square = sums.view(2, count, GROUPS, -1).sum(-1) / size
        factor = (square - mean.square()).clamp(min=0).add(self.epsilon).rsqrt()
        gain = self.weight.float().view(1, GROUPS, -1) * factor[..., None]
        offset = self.bias.float().view(1, GROUPS, -1) - mean[..., None] * gain
        gain, offset = (each.reshape(count, channels, 1, 1) for each in (gain, offset))
        return (wide * gain + offset).to(value.dtype)


class PaddedAttention(nn.Module):  # type: ignore[misc]
    """Self-attention whose heads are padded with zeros, so that the fused kernel takes them."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        channels = attention.norm.num_channels
        self.width = channels // HEADS
        spare = -self.width % _LANES
        ask = attention.questions.weight.detach().view(3, HEADS, self.width, channels)
        offset = attention.questions.bias.detach().view(3, HEADS, self.width)
        reply = attention.answer.weight.detach().view(channels, HEADS, self.width)
        self.norm = ChannelNorm(attention.norm)
        self.ask = nn.Parameter(functional.pad(ask, (0, 0, 0, spare)).reshape(-1, channels))
        self.offset = nn.Parameter(functional.pad(offset, (0, spare)).reshape(-1))
        self.reply = nn.Parameter(functional.pad(reply, (0, spare)).reshape(channels, -1))
        self.answer_offset = nn.Parameter(attention.answer.bias.detach())

    def forward(self, value: Tensor) -> Tensor:
        """`value` is (n, channels, height, width)."""
        count, channels, height, width = value.shape
        tokens = self.norm(value).permute(0, 2, 3, 1).reshape(count, height * width, channels)
        heads = functional.linear(tokens, self.ask, self.offset).view(count, height * width, 3, HEADS, -1)
        query, key, content = heads.permute(2, 0, 3, 1, 4).unbind(0)
        seen = functional.scaled_dot_product_attention(query, key, content, scale=self.width**-0.5)
        answer = functional.linear(seen.transpose(1, 2).flatten(2), self.reply, self.answer_offset)
        return value + answer.view(count, height, width, channels).permute(0, 3, 1, 2)


def rearrange(network: BackgroundNetwork) -> BackgroundNetwork:
    """The network with parts that suit 16 bits and channels last; it computes the same function."""
    for parent in list(network.modules()):
        for name, part in list(parent.named_children()):
            if isinstance(part, Attention):
                setattr(parent, name, PaddedAttention(part))
            elif isinstance(part, nn.GroupNorm):
                setattr(parent, name, ChannelNorm(part))
    return network


class StepState(NamedTuple):
    """What one step leaves to the next."""

    noisy: Tensor
    clean: Tensor


@dataclass(frozen=True)
class CompiledBackground:
    """The network and the solver's step on one device, in bfloat16."""

    device: str
    velocity: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # noisy, kept colours, known, ratios
    step: Callable[..., StepState]

    def predict(self, planes: Tensor, log_ratio: float) -> Tensor:
        """The network's answer to planes as the sampler has them."""
        noisy, kept, known = planes.float().split([3, 3, 1], 1)
        with torch.no_grad():
            return self.velocity(noisy, kept, known, torch.full((len(planes),), log_ratio, device=self.device))

    def list_numbers(self, schedule: Sequence[float]) -> Tensor:
        """The numbers of each step of a schedule, a row each, on the device."""
        rows = [step_weights(schedule, place, place > 0) for place in range(len(schedule))]
        return torch.tensor(rows, dtype=torch.float32, device=self.device)

    def paint(self, scene: Scene, schedule: Sequence[float], totals: Tensor, numbers: Tensor) -> Tensor:
        """The clean pictures of a schedule without repeated steps; `totals` are those of the complexity guides."""
        planes = (scene.background, scene.colours, scene.known, scene.noise)
        with torch.no_grad():
            kept, noisy = scene.known * scene.colours, add_first_noise(scene, schedule)
            state = StepState(noisy, torch.zeros_like(noisy))
            for ratio, row in zip(schedule, numbers, strict=True):
                ratios = torch.full((len(noisy),), ratio, device=self.device)
                velocity = self.velocity(state.noisy, kept, scene.known, ratios)
                state = self.step(planes, state, velocity, totals, row)
        return state.clean


class FastPainter:
    """Paints batches by the compiled model; one is copied to the device while another is painted."""

    rows, depth = 64, 2

    def __init__(self, model: CompiledBackground) -> None:
        self._model = model
        self._recordings: dict[tuple[Any, ...], _Recording] = {}

    def start(self, scenes: Sequence[Scene], schedule: Sequence[float], guides: Sequence[Guides]) -> Finish:
        """Start a batch; with a surrogate's guide, and with repeated steps, it is painted at once."""
        model, device = self._model, self._model.device
        repeats = any(after < before for before, after in pairwise(schedule))
        if repeats or any(each.other is not None for each in guides):
            given, guide = join_scenes(scenes), batch_guide(device, guides)
            images = sample_on_device(device, model.predict, given, schedule, guide)
            return lambda: images
        totals = np.array([each.complexity.total for each in guides], np.float32).reshape(-1, 1, 1, 1)
        if not device.startswith("cuda"):
            there = Scene(*(torch.from_numpy(plane).to(device) for plane in planes_of(join_scenes(scenes))))
            painted = model.paint(there, schedule, torch.from_numpy(totals), model.list_numbers(schedule))
            return lambda: np.asarray(painted.numpy(), np.float32)
        key = (sum(len(each.noise) for each in scenes), *scenes[0].noise.shape[1:], *schedule)
        if key not in self._recordings:
            if len(self._recordings) == _MOST_RECORDINGS:
                torch.cuda.synchronize(device)  # it may be painting
                del self._recordings[next(iter(self._recordings))]
            self._recordings[key] = _Recording(model, join_scenes(scenes), schedule)
        return self._recordings[key].start(scenes, totals)


class _Recording:
    """The painting of one batch by one schedule, recorded as a CUDA graph."""

    def __init__(self, model: CompiledBackground, scene: Scene, schedule: Sequence[float]) -> None:
        shapes = [plane.shape for plane in planes_of(scene)] + [(len(scene.noise), 1, 1, 1)]
        self._given = [torch.zeros(shape, device=model.device) for shape in shapes]
        self._streams = [torch.cuda.Stream(model.device) for _ in range(3)]
        numbers = model.list_numbers(schedule)  # before the recording, in which nothing can be copied from the host
        torch.cuda.synchronize(model.device)
        work = partial(model.paint, Scene(*self._given[:4]), schedule, self._given[4], numbers)
        with torch.cuda.stream(self._streams[1]):
            _warm_up(work)
            torch.cuda.synchronize(model.device)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=self._streams[1], capture_error_mode="thread_local"):
                self._images = work()
        self._slots = cycle([_Slot(self._given, self._images) for _ in range(FastPainter.depth)])

    def start(self, scenes: Sequence[Scene], totals: NDArray[np.float32]) -> Finish:
        """Copy a batch to the device, paint it, copy it back; nothing waits but the function that is returned."""
        slot, (sending, painting, fetching) = next(self._slots), self._streams
        *hosts, host_totals = (host.numpy() for host in slot.sent)
        for host, planes in zip(hosts, zip(*map(planes_of, scenes), strict=True), strict=True):
            np.concatenate(planes, out=host)  # straight into page-locked memory
        np.copyto(host_totals, totals)
        with torch.cuda.stream(sending):
            for there, host in zip(slot.there, slot.sent, strict=True):
                there.copy_(host, non_blocking=True)
        painting.wait_stream(sending)
        with torch.cuda.stream(painting):
            for given, there in zip(self._given, slot.there, strict=True):
                given.copy_(there)
            self._graph.replay()
            slot.painted.copy_(self._images)
        fetching.wait_stream(painting)
        with torch.cuda.stream(fetching):
            slot.images.copy_(slot.painted, non_blocking=True)
            slot.done.record()

        def finish() -> NDArray[np.float32]:
            slot.done.synchronize()
            return np.array(slot.images.numpy())  # the slot is used again

        return finish


def _warm_up(work: Callable[[], object]) -> None:
    """Compile and choose kernels; raises `UserError` where there is no compiler."""
    try:
        for _ in range(_WARM_UP_RUNS):
            work()
    except TorchDynamoException as error:
        line = " ".join(str(error).split())[:160]
        raise UserError(f"expected torch to compile the painter for precision: bf16; use f32, or: {line}") from error


class _Slot:
    """The memory of one batch: page-locked on the host, and on the device."""

    def __init__(self, given: Sequence[Tensor], images: Tensor) -> None:
        self.sent = [torch.empty(plane.shape, pin_memory=True) for plane in given]
        self.there = [torch.empty_like(plane) for plane in given]
        self.painted = torch.empty_like(images)
        self.images = torch.empty(images.shape, pin_memory=True)
        self.done = torch.cuda.Event()


def load_fast_painter(device: str, weights: dict[str, NDArray[np.float32]]) -> FastPainter:
    """The painter with these weights on a device."""
    return FastPainter(load_compiled(device, weights, compiles=device.startswith("cuda")))


def load_compiled(device: str, weights: dict[str, NDArray[np.float32]], compiles: bool) -> CompiledBackground:
    """The model with these weights, compiled or as it is."""
    network = BackgroundNetwork().eval()
    network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    frequencies = network.frequencies
    network = rearrange(network).requires_grad_(False).to(device, torch.bfloat16, memory_format=torch.channels_last)
    network.frequencies = frequencies.to(device)  # its waves are fine, and need 32 bits

    def velocity(noisy: Tensor, kept: Tensor, known: Tensor, ratios: Tensor) -> Tensor:
        planes = torch.cat([noisy, kept, known], 1).to(torch.bfloat16, memory_format=torch.channels_last)
        return network(planes, ratios).float()

    if not compiles:
        return CompiledBackground(device, velocity, _take_step)
    return CompiledBackground(device, torch.compile(velocity), torch.compile(_take_step))


def _take_step(
    planes: tuple[Tensor, Tensor, Tensor, Tensor], state: StepState, velocity: Tensor, totals: Tensor, row: Tensor
) -> StepState:
    """One step of the solver, its numbers in a row of a tensor, so that every step is the same code."""
    scene, weights = Scene(*planes), StepWeights(*row.unbind())

    def guide(clean: Tensor, noise: Tensor) -> Tensor:
        return guide_complexity(clean, totals, noise)

    clean = find_clean(scene, state.noisy, velocity, guide, weights)
    return StepState(advance(scene, state.noisy, clean, state.clean, weights), clean)
