"""The background model in torch on a GPU, with the pictures of many threads in one batch.

Each thread of a run asks for one background and waits; a GPU needs many at once. So a thread that finds the device
free paints for all that wait. All batches of one picture size have the same number of rows, padded where fewer wait:
a device's arithmetic depends on the shape, and a picture must not depend on its batch.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.painters.background_model import read_background_weights, read_weights_file
from counterfoil.painters.guidance import ComplexityGuide
from counterfoil.painters.painter_protocol import PaintOptions, run_in_batches
from counterfoil.painters.sampler import Array, Guide, Predict, Scene, sample_background
from counterfoil.plugins import import_extra

ROWS = 16  # pictures of 256 x 256 at a time, fewer of larger ones
PIXELS = ROWS * 256**2  # of a batch

Floats = NDArray[np.float32]


def check_gpu() -> None:
    """Raises `UserError` where torch sees no GPU."""
    if not import_extra("torch", "diffusion").cuda.is_available():
        raise UserError("expected a GPU for device: cuda, but torch sees none; use device: cpu")


def load_torch_model(device: str, half: bool = False, weights: bytes | None = None) -> Predict:
    """The model on this device; `half` computes in bfloat16, which is faster but less exact."""
    torch: Any = import_extra("torch", "diffusion")
    if device.startswith("cuda"):
        check_gpu()
    from counterfoil.painters.background_network import BackgroundNetwork

    if not half:  # full precision as in ONNX Runtime, not TF32, which is cuDNN's default
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = True  # else a surrogate's gradient would differ each time
    network: Any = BackgroundNetwork().eval().to(device)
    tensors = read_background_weights(weights if weights is not None else read_weights_file())
    network.load_state_dict({name: torch.from_numpy(array) for name, array in tensors.items()})
    network.requires_grad_(False)

    def predict(planes: Array, log_ratio: float) -> Array:
        given = torch.full((len(planes),), log_ratio, device=device)
        with torch.no_grad(), torch.autocast(torch.device(device).type, torch.bfloat16, enabled=half):
            return network(planes.float(), given).float()

    return predict


def sample_on_device(
    device: str, predict: Predict, scene: Scene, schedule: Sequence[float], guide: Guide | None = None
) -> NDArray[np.float32]:
    """Paint a scene of NumPy arrays on a device; the noise comes from the pictures' seeds."""
    torch: Any = import_extra("torch", "diffusion")
    there = Scene(*(torch.from_numpy(plane).to(device) for plane in _planes(scene)))
    return np.asarray(sample_background(predict, there, schedule, guide).cpu().numpy(), np.float32)


class Guides(NamedTuple):
    """The guides of a picture: complexity, then another one where given."""

    complexity: ComplexityGuide
    other: Guide | None = None


class _Kind(NamedTuple):
    """The properties that pictures of one batch share."""

    height: int
    width: int
    schedule: tuple[float, ...]


@dataclass(eq=False)
class _Row:
    """One waiting picture, and its image once painted."""

    scene: Scene  # of one picture
    guides: Guides
    image: Floats | None = None  # (3, height, width)


class GpuBatcher:
    """The background model on one device, for any number of threads at once."""

    name = "background-256"

    def __init__(self, device: str, predict: Predict, rows: int = ROWS) -> None:
        self.device, self.options = device, PaintOptions(device=device, batch_size=rows)
        self._predict = predict
        self._waiting: defaultdict[_Kind, deque[_Row]] = defaultdict(deque)
        self._fitting: dict[tuple[int, int], list[int]] = {}  # rows by picture size; the last entry is the current one
        self._changed, self._busy = threading.Condition(), False

    def paint(self, scene: Scene, schedule: Sequence[float], guides: Guides) -> Floats:
        """The painted pictures, (n, 3, height, width); threads that wait at the same time share batches."""
        height, width = scene.noise.shape[-2:]
        kind = _Kind(height, width, tuple(schedule))
        mine = [_Row(_take_row(scene, place), guides) for place in range(len(scene.noise))]
        with self._changed:
            self._waiting[kind].extend(mine)
        while batch := self._take_batch(kind, mine):
            self._paint_batch(kind, batch, mine)
        return np.stack([row.image for row in mine if row.image is not None])

    def _take_batch(self, kind: _Kind, mine: Sequence[_Row]) -> list[_Row]:
        """The rows for this thread to paint now, for itself or others; empty once its own are done."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy or _are_painted(mine))
            if _are_painted(mine):
                return []
            self._busy, waiting = True, self._waiting[kind]
            return [waiting.popleft() for _ in range(min(len(waiting), self._rows(kind)[-1]))]

    def _rows(self, kind: _Kind) -> list[int]:
        most = max(1, min(self.options.batch_size, PIXELS // (kind.height * kind.width)))
        return self._fitting.setdefault(kind[:2], [1 << (most.bit_length() - 1)])  # halved at the end of the list

    def _paint_batch(self, kind: _Kind, batch: list[_Row], mine: Sequence[_Row]) -> None:
        """Paint a batch; on failure, the rows of other threads are put back in the queue."""
        try:
            fitting = self._rows(kind)
            sample = partial(self._sample_rows, kind.schedule)
            done = run_in_batches(_pad_batch(batch, fitting[-1]), sample, self, fitting)
            for row, picture in zip(batch, done, strict=False):
                row.image = picture
        except BaseException:
            with self._changed:
                waiting = [*batch, *self._waiting[kind]]
                self._waiting[kind] = deque(row for row in waiting if row not in mine)
            raise
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _sample_rows(self, schedule: Sequence[float], rows: Sequence[_Row]) -> list[Floats]:
        planes = zip(*(_planes(row.scene) for row in rows), strict=True)
        scene = Scene(*(np.concatenate(plane) for plane in planes))
        return list(sample_on_device(self.device, self._predict, scene, schedule, _batch_guide(self.device, rows)))


def _pad_batch(batch: Sequence[_Row], count: int) -> list[_Row]:
    """The batch padded to `count` with its last picture; the padding has only the complexity guide."""
    spare = _Row(batch[-1].scene, Guides(batch[-1].guides.complexity))
    return [*batch, *[spare] * (count - len(batch))]


def _are_painted(rows: Sequence[_Row]) -> bool:
    return all(row.image is not None for row in rows)


def _planes(scene: Scene) -> tuple[Array, ...]:
    return scene.background, scene.colours, scene.known, scene.noise


def _take_row(scene: Scene, place: int) -> Scene:
    return Scene(*(plane[place : place + 1] for plane in _planes(scene)))


def _batch_guide(device: str, rows: Sequence[_Row]) -> Guide:
    """A guide for the batch: all complexities at once, other guides picture by picture."""
    torch: Any = import_extra("torch", "diffusion")
    totals = torch.tensor([row.guides.complexity.total for row in rows], dtype=torch.float32, device=device)
    complexity = ComplexityGuide(totals.view(-1, 1, 1, 1))
    others = [(place, row.guides.other) for place, row in enumerate(rows) if row.guides.other is not None]

    def guide(clean: Array, noise: float) -> Array:
        clean = complexity(clean, noise)
        for place, other in others:
            clean[place : place + 1] = other(clean[place : place + 1], noise)
        return clean

    return guide


_LOAD_LOCK = threading.Lock()  # many threads arrive at once, but the model is loaded once


def shared_batcher(device: str) -> GpuBatcher:
    """The batcher that all threads share on this device."""
    with _LOAD_LOCK:
        return _load_batcher(device)


@lru_cache(maxsize=1)
def _load_batcher(device: str) -> GpuBatcher:
    return GpuBatcher(device, load_torch_model(device))
