"""Batches on a GPU: copied through pinned memory, computed as a recorded CUDA graph.

Each batch is one replay of a recorded graph. Launching the hundreds of kernels of a network one by one would take
the GIL each time, and the threads that decode and edit pictures hold it most of the time.
"""

from __future__ import annotations

import copy
import gc
import itertools
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.models.model_options import Precision
from counterfoil.models.thread_batcher import Block, TooLarge
from counterfoil.models.torch_network import TorchNetwork
from counterfoil.plugins import import_extra

Compute = Callable[[Any], Any]
Recording = Callable[[Any], Any]  # a batch of at most the recorded size to its scores

_WARM_UP_RUNS = 3  # libraries choose and load their kernels on the first runs, which cannot be recorded


def record_cuda_graph(torch: Any, compute: Compute, example: Any, size: int) -> Recording:
    """The computation recorded for batches of up to `size`; the computation itself where recording fails."""
    padded = torch.zeros((size, *example.shape[1:]), dtype=example.dtype, device=example.device)
    for _ in range(_WARM_UP_RUNS):
        compute(padded)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        # other threads may work on the device meanwhile, for another model
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
            answer = compute(padded)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        line = " ".join(str(error).split())[:120]
        warnings.warn(f"the network cannot be recorded and runs kernel by kernel: {line}", stacklevel=2)
        return compute

    def replay(batch: Any) -> Any:
        padded[: len(batch)].copy_(batch)  # later rows are those of an earlier batch; their scores are not read
        graph.replay()
        return answer[: len(batch)]

    return replay


_BUFFERS = 4  # more than the batches that can be under way at once
_SMALLEST_BATCH, _LARGEST_BATCH = 16, 512
_GAIN = 1.05  # a batch twice as large must be faster by this much to be worth its memory

Answers = Callable[[], NDArray[np.float32]]


@dataclass(frozen=True)
class DeviceBatches:
    """Starts batches of prepared pictures on a device; a call returns a function that waits for the scores."""

    network: TorchNetwork
    device: str
    precision: Precision = "f32"
    _recordings: dict[int, Recording] = field(default_factory=dict, repr=False, compare=False)

    @property
    def sends_levels(self) -> bool:
        """Whether pictures are copied as bytes, a quarter of the size, and normalised on the device."""
        return self.network.preparation.transform is None

    def ready(self, images: Sequence[NDArray[np.uint8]]) -> Block:
        """Pictures as they are copied: (n, height, width, 3) bytes, or (n, 3, height, width) floats."""
        preparation = self.network.preparation
        if self.sends_levels:
            return preparation.levels(images)
        return np.stack([preparation.picture(image) for image in images])

    @cached_property
    def _torch(self) -> Any:
        return import_extra("torch", "torch")

    @cached_property
    def _module(self) -> Any:
        torch = self._torch
        if self.device != "cpu" and self.precision == "f32":  # full precision means no TF32
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        module = copy.deepcopy(self.network.module).eval()
        return module.to(self.device, self._dtype, memory_format=torch.channels_last)

    @cached_property
    def _dtype(self) -> Any:
        names = {"f32": "float32", "bf16": "bfloat16", "fp16": "float16"}
        return getattr(self._torch, names[self.precision])

    @cached_property
    def _levels(self) -> tuple[Any, ...]:
        """Mean and deviation, on the device."""
        wanted = self.network.preparation.preprocessing
        return tuple(
            self._torch.tensor(values, device=self.device).view(1, 3, 1, 1) for values in (wanted.mean, wanted.std)
        )

    @cached_property
    def _streams(self) -> tuple[Any, Any]:
        cuda = self._torch.cuda
        return cuda.Stream(self.device), cuda.Stream(self.device)

    @cached_property
    def _buffers(self) -> Any:
        """Pinned memory, used in turn; a buffer grows when a larger batch comes."""
        return itertools.cycle([_Buffer(self._torch) for _ in range(_BUFFERS)])

    def __call__(self, blocks: Sequence[Block]) -> Answers:
        """Start a batch; raises `TooLarge` where it does not fit into the device's memory."""
        torch = self._torch
        try:
            with torch.inference_mode():
                return self._on_cpu(blocks) if self.device == "cpu" else self._on_gpu(blocks)
        except torch.OutOfMemoryError as error:
            fault = " ".join(str(error).split())[:160]
        # Outside the handler: the error's traceback keeps the failed batch in memory.
        gc.collect()
        if self.device != "cpu":
            torch.cuda.empty_cache()
        raise TooLarge(fault)

    def _on_cpu(self, blocks: Sequence[Block]) -> Answers:
        scores = self._scores(self._torch.from_numpy(np.concatenate(blocks)))
        return lambda: np.asarray(scores.numpy(), np.float32)

    def _on_gpu(self, blocks: Sequence[Block]) -> Answers:
        cuda = self._torch.cuda
        copying, computing = self._streams
        host = next(self._buffers).filled(blocks)
        with cuda.stream(copying):
            batch = host.to(self.device, non_blocking=True)
        computing.wait_stream(copying)
        with cuda.stream(computing):
            batch.record_stream(computing)  # else its memory could be reused while this stream reads it
            scores = self._recording(batch)(batch).to("cpu", non_blocking=True)
            done = cuda.Event()
            done.record()

        def answers() -> NDArray[np.float32]:
            done.synchronize()
            return np.asarray(scores.numpy(), np.float32)

        return answers

    def _recording(self, batch: Any) -> Recording:
        """The network recorded for batches of this size, rounded up to a power of two."""
        size = max(_SMALLEST_BATCH, 1 << (len(batch) - 1).bit_length())
        if size not in self._recordings:
            self._recordings[size] = record_cuda_graph(self._torch, self._scores, batch, size)
        return self._recordings[size]

    def score_prepared(self, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        """Probabilities of pictures that are normalised already, (n, 3, height, width); waits for them."""
        torch = self._torch
        with torch.inference_mode():
            batch = torch.from_numpy(pictures).to(self.device, self._dtype, memory_format=torch.channels_last)
            return np.asarray(self._probabilities(batch).cpu().numpy(), np.float32)

    def _scores(self, batch: Any) -> Any:
        """Probabilities in full precision."""
        if self.sends_levels:
            mean, std = self._levels
            if self.network.preparation.preprocessing.colour_order == "BGR":
                batch = batch.flip(3)
            batch = (batch.permute(0, 3, 1, 2).float() - mean) / std
        return self._probabilities(batch.to(self._dtype, memory_format=self._torch.channels_last))

    def _probabilities(self, pictures: Any) -> Any:
        outputs = self._module(pictures).float()
        return outputs.softmax(1) if self.network.scores == "logits" else outputs


class _Buffer:
    """Page-locked memory for one batch."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._memory: Any = None

    def filled(self, blocks: Sequence[Block]) -> Any:
        """The pictures of all blocks side by side."""
        shape = (sum(map(len, blocks)), *blocks[0].shape[1:])
        if self._memory is None or len(self._memory) < shape[0]:
            kind = self._torch.uint8 if blocks[0].dtype == np.uint8 else self._torch.float32
            self._memory = self._torch.empty(shape, dtype=kind, pin_memory=True)
        part = self._memory[: shape[0]]
        np.concatenate(blocks, out=part.numpy())
        return part


def find_batch_size(batches: DeviceBatches) -> int:
    """The best batch size: doubled as long as that is faster and fits into memory."""
    height, width = batches.network.preparation.preprocessing.size
    grey = batches.ready([np.full((height, width, 3), 127, np.uint8)])
    best, rate, size = 1, 0.0, _SMALLEST_BATCH
    while size <= _LARGEST_BATCH:
        try:
            measured = _measure_rate(batches, np.repeat(grey, size, axis=0))
        except TooLarge:
            break
        if measured < _GAIN * rate:
            break
        best, rate, size = size, measured, 2 * size
    return best


def _measure_rate(batches: DeviceBatches, block: Block) -> float:
    """Pictures per second on a warm device, with one batch copied while another computes."""
    batches([block])()
    rounds = max(6, _LARGEST_BATCH // len(block))
    start = time.perf_counter()
    running = deque([batches([block])])
    for _ in range(rounds - 1):
        running.append(batches([block]))
        running.popleft()()
    running.popleft()()
    return rounds * len(block) / (time.perf_counter() - start)
