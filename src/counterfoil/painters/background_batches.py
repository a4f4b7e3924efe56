"""The background model in torch on a GPU, with the pictures of many threads in one batch.

Each thread of a run asks for one background and waits; a GPU needs many at once. So a thread that finds the device
free paints for all that wait. All batches of one picture size have the same number of rows, padded where fewer wait:
a device's arithmetic depends on the shape, and a picture must not depend on its batch.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.painters.background_model import read_background_weights, read_weights_file
from counterfoil.painters.guidance import SIDE, ComplexityGuide
from counterfoil.painters.painter_protocol import PaintOptions, PaintPrecision, run_in_batches
from counterfoil.painters.sampler import Array, Guide, Predict, Scene, sample_background
from counterfoil.plugins import import_extra

ROWS = 16  # pictures of 256 x 256 at a time in full precision, fewer of larger ones

Floats = NDArray[np.float32]


def check_gpu() -> None:
    """Raises `UserError` where torch sees no GPU."""
    if not import_extra("torch", "diffusion").cuda.is_available():
        raise UserError("expected a GPU for device: cuda, but torch sees none; use device: cpu")


def load_torch_model(device: str, weights: bytes | None = None) -> Predict:
    """The model on this device in full precision."""
    torch: Any = import_extra("torch", "diffusion")
    if device.startswith("cuda"):
        check_gpu()
    from counterfoil.painters.background_network import BackgroundNetwork

    torch.backends.cudnn.allow_tf32 = False  # as in ONNX Runtime; TF32 is cuDNN's default
    torch.backends.cudnn.deterministic = True  # else a surrogate's gradient would differ each time
    network: Any = BackgroundNetwork().eval().to(device)
    tensors = read_background_weights(weights if weights is not None else read_weights_file())
    network.load_state_dict({name: torch.from_numpy(array) for name, array in tensors.items()})
    network.requires_grad_(False)

    def predict(planes: Array, log_ratio: float) -> Array:
        given = torch.full((len(planes),), log_ratio, device=device)
        with torch.no_grad():
            return network(planes.float(), given).float()

    return predict


def sample_on_device(
    device: str, predict: Predict, scene: Scene, schedule: Sequence[float], guide: Guide | None = None
) -> NDArray[np.float32]:
    """Paint a scene of NumPy arrays on a device; the noise comes from the pictures' seeds."""
    torch: Any = import_extra("torch", "diffusion")
    there = Scene(*(torch.from_numpy(plane).to(device) for plane in planes_of(scene)))
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
    taken: bool = False  # by a batch that is being painted


Finish: TypeAlias = Callable[[], Floats]  # waits for the images of a batch, (n, 3, height, width)


class DevicePainter(Protocol):
    """Starts batches of pictures on a device."""

    @property
    def rows(self) -> int:
        """Pictures of 256 x 256 at a time."""

    @property
    def depth(self) -> int:
        """Batches under way at once: one is copied while another is painted."""

    def start(self, scene: Scene, schedule: Sequence[float], guides: Sequence[Guides]) -> Finish:
        """Start a batch of scenes of NumPy arrays; returns a function that waits for its images."""


@dataclass(frozen=True)
class ExactPainter:
    """Paints in full precision, one batch after another."""

    device: str
    predict: Predict
    rows: int = ROWS
    depth: int = 1

    def start(self, scene: Scene, schedule: Sequence[float], guides: Sequence[Guides]) -> Finish:
        """Paint the batch at once."""
        images = sample_on_device(self.device, self.predict, scene, schedule, batch_guide(self.device, guides))
        return lambda: images


class GpuBatcher:
    """The background model on one device, for any number of threads at once."""

    name = "background-256"

    def __init__(self, device: str, painter: DevicePainter) -> None:
        self.device, self.options = device, PaintOptions(device=device, batch_size=painter.rows)
        self._painter = painter
        self._waiting: defaultdict[_Kind, deque[_Row]] = defaultdict(deque)
        self._fitting: dict[tuple[int, int], list[int]] = {}  # rows by picture size; the last entry is the current one
        self._changed, self._starting, self._running = threading.Condition(), False, 0

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
            self._changed.wait_for(lambda: _are_painted(mine) or self._may_start(kind, mine))
            if _are_painted(mine):
                return []
            self._starting, waiting = True, self._waiting[kind]
            self._running += 1
            batch = [waiting.popleft() for _ in range(min(len(waiting), self._rows(kind)[-1]))]
            for row in batch:
                row.taken = True
            return batch

    def _may_start(self, kind: _Kind, mine: Sequence[_Row]) -> bool:
        """Whether the device is free, or takes a further full batch; and this thread has pictures that wait."""
        if self._starting or all(row.taken for row in mine):
            return False
        full = len(self._waiting[kind]) >= self._rows(kind)[-1]
        return self._running == 0 or (self._running < self._painter.depth and full)

    def _rows(self, kind: _Kind) -> list[int]:
        pixels = self.options.batch_size * SIDE**2
        most = max(1, min(self.options.batch_size, pixels // (kind.height * kind.width)))
        return self._fitting.setdefault(kind[:2], [1 << (most.bit_length() - 1)])  # halved at the end of the list

    def _paint_batch(self, kind: _Kind, batch: list[_Row], mine: Sequence[_Row]) -> None:
        """Paint a batch; on failure, the rows of other threads are put back in the queue."""
        try:
            started = self._start_batch(kind, batch)
            for row, finish in zip(batch, started, strict=False):
                row.image = finish()
        except BaseException:
            with self._changed:
                again = [row for row in batch if row not in mine]
                for row in again:
                    row.image, row.taken = None, False
                self._waiting[kind] = deque([*again, *(row for row in self._waiting[kind] if row not in mine)])
            raise
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _start_batch(self, kind: _Kind, batch: list[_Row]) -> list[Finish]:
        """Start the batch, padded; a function for each row that waits for its image."""
        try:
            fitting = self._rows(kind)
            start = partial(self._start_rows, kind.schedule)
            return run_in_batches(_pad_batch(batch, fitting[-1]), start, self, fitting)
        finally:
            with self._changed:
                self._starting = False
                self._changed.notify_all()

    def _start_rows(self, schedule: Sequence[float], rows: Sequence[_Row]) -> list[Finish]:
        planes = zip(*(planes_of(row.scene) for row in rows), strict=True)
        scene = Scene(*(np.concatenate(plane) for plane in planes))
        finish = cache(self._painter.start(scene, schedule, [row.guides for row in rows]))
        return [partial(_take_image, finish, place) for place in range(len(rows))]


def _take_image(finish: Finish, place: int) -> Floats:
    return np.asarray(finish()[place], np.float32)


def _pad_batch(batch: Sequence[_Row], count: int) -> list[_Row]:
    """The batch padded to `count` with its last picture; the padding has only the complexity guide."""
    spare = _Row(batch[-1].scene, Guides(batch[-1].guides.complexity))
    return [*batch, *[spare] * (count - len(batch))]


def _are_painted(rows: Sequence[_Row]) -> bool:
    return all(row.image is not None for row in rows)


def planes_of(scene: Scene) -> tuple[Array, ...]:
    """The scene's planes, in the order of its fields."""
    return scene.background, scene.colours, scene.known, scene.noise


def _take_row(scene: Scene, place: int) -> Scene:
    return Scene(*(plane[place : place + 1] for plane in planes_of(scene)))


def batch_guide(device: str, guides: Sequence[Guides]) -> Guide:
    """A guide for the batch: all complexities at once, other guides picture by picture."""
    complexity = ComplexityGuide(guide_totals(device, guides))
    others = [(place, each.other) for place, each in enumerate(guides) if each.other is not None]

    def guide(clean: Array, noise: float) -> Array:
        clean = complexity(clean, noise)
        for place, other in others:
            clean[place : place + 1] = other(clean[place : place + 1], noise)
        return clean

    return guide


def guide_totals(device: str, guides: Sequence[Guides]) -> Array:
    """The numbers of the complexity guides, (n, 1, 1, 1), on the device."""
    torch: Any = import_extra("torch", "diffusion")
    totals = [each.complexity.total for each in guides]
    return torch.tensor(totals, dtype=torch.float32, device=device).view(-1, 1, 1, 1)


_LOAD_LOCK = threading.Lock()  # many threads arrive at once, but the model is loaded once


def shared_batcher(device: str, precision: PaintPrecision = "f32") -> GpuBatcher:
    """The batcher that all threads share on this device."""
    with _LOAD_LOCK:
        return _load_batcher(device, precision)


@lru_cache(maxsize=2)
def _load_batcher(device: str, precision: PaintPrecision) -> GpuBatcher:
    if precision == "f32":
        return GpuBatcher(device, ExactPainter(device, load_torch_model(device)))
    check_gpu()
    from counterfoil.painters.compiled_background import load_fast_painter  # torch is needed to import it

    return GpuBatcher(device, load_fast_painter(device, read_background_weights(read_weights_file())))
