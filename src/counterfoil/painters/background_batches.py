"""The background model in torch on a GPU, with the pictures of many threads in one batch.

Each thread of a run asks for one background and waits; a GPU needs many at once. So one thread paints for all that
wait. All batches of one picture size have the same number of rows, padded where fewer wait: a device's arithmetic
depends on the shape, and a picture must not depend on its batch. Worker processes ask through `paint_service`.
"""

from __future__ import annotations

import queue
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
_MOST_WAITS = 8  # batches of other sizes that a picture lets go first, where its own size does not fill one

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
    """One waiting picture, and who takes its image."""

    scene: Scene  # of one picture
    guides: Guides
    call: _Call
    place: int  # in its call
    since: int  # batches that were begun before it came
    alone: bool = False  # painted without pictures of other calls, since a batch with them failed


class _Call:
    """The pictures of one call, and their images so far; several threads may give it images."""

    def __init__(self, count: int) -> None:
        self.images: list[Floats | None] = [None] * count
        self.fault: BaseException | None = None
        self._missing, self._lock, self._ended = count, threading.Lock(), threading.Event()

    def take(self, place: int, image: Floats) -> None:
        """One image."""
        with self._lock:
            self.images[place] = image
            self._missing -= 1
            if not self._missing:
                self._ended.set()

    def fail(self, fault: BaseException) -> None:
        """The error that the thread that waits raises."""
        self.fault = fault
        self._ended.set()

    def wait(self) -> Floats:
        """The images, once all are there."""
        self._ended.wait()
        if self.fault is not None:
            raise self.fault
        images = [image for image in self.images if image is not None]
        return images[0][None] if len(images) == 1 else np.stack(images)  # one, as usual, is not copied


Finish: TypeAlias = Callable[[], Floats]  # waits for the images of a batch, (n, 3, height, width)


class DevicePainter(Protocol):
    """Starts batches of pictures on a device."""

    @property
    def rows(self) -> int:
        """Pictures of 256 x 256 at a time."""

    @property
    def depth(self) -> int:
        """Batches under way at once: one is copied while another is painted."""

    def start(self, scenes: Sequence[Scene], schedule: Sequence[float], guides: Sequence[Guides]) -> Finish:
        """Start a batch of scenes of NumPy arrays, side by side; returns a function that waits for its images."""


@dataclass(frozen=True)
class ExactPainter:
    """Paints in full precision, one batch after another."""

    device: str
    predict: Predict
    rows: int = ROWS
    depth: int = 1

    def start(self, scenes: Sequence[Scene], schedule: Sequence[float], guides: Sequence[Guides]) -> Finish:
        """Paint the batch at once."""
        scene, guide = join_scenes(scenes), batch_guide(self.device, guides)
        images = sample_on_device(self.device, self.predict, scene, schedule, guide)
        return lambda: images


class _Batch(NamedTuple):
    """Pictures that were started together."""

    kind: _Kind
    rows: list[_Row]
    started: list[Finish]  # a function for each row that waits for its image


class GpuBatcher:
    """The background model on one device, for any number of threads at once.

    One thread starts batches and one hands out their images; a thread that asks waits for its own pictures alone.
    """

    name = "background-256"

    def __init__(self, device: str, painter: DevicePainter) -> None:
        self.device, self.options = device, PaintOptions(device=device, batch_size=painter.rows)
        self._painter = painter
        self._waiting: defaultdict[_Kind, deque[_Row]] = defaultdict(deque)
        self._fitting: dict[tuple[int, int], list[int]] = {}  # rows by picture size; the last entry is the current one
        self._changed, self._running, self._begun = threading.Condition(), 0, 0
        self._started: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
        for work in (self._start_batches, self._finish_batches):
            threading.Thread(target=work, name=f"counterfoil-painter{work.__name__}", daemon=True).start()

    def paint(self, scene: Scene, schedule: Sequence[float], guides: Guides) -> Floats:
        """The painted pictures, (n, 3, height, width); threads that wait at the same time share batches."""
        height, width = scene.noise.shape[-2:]
        kind, call = _Kind(height, width, tuple(schedule)), _Call(len(scene.noise))
        rows = [_Row(_take_row(scene, place), guides, call, place, self._begun) for place in range(len(scene.noise))]
        with self._changed:
            self._waiting[kind].extend(rows)
            self._changed.notify_all()
        return call.wait()

    def _start_batches(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._find_kind() is not None)
                kind = self._find_kind()
                assert kind is not None
                rows = self._take_rows(kind)
                self._running, self._begun = self._running + 1, self._begun + 1
            try:
                self._started.put(_Batch(kind, rows, self._start_batch(kind, rows)))
            except BaseException as fault:  # noqa: BLE001  handed to the threads that wait, who raise it
                self._free_device()
                self._fail(kind, rows, fault)

    def _finish_batches(self) -> None:
        while True:
            batch = self._started.get()
            try:
                images = [finish() for _, finish in zip(batch.rows, batch.started, strict=False)]
            except BaseException as fault:  # noqa: BLE001  handed to the threads that wait, who raise it
                self._free_device()
                self._fail(batch.kind, batch.rows, fault)
                continue
            self._free_device()
            for row, image in zip(batch.rows, images, strict=True):
                row.call.take(row.place, image)

    def _free_device(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def _fail(self, kind: _Kind, rows: Sequence[_Row], fault: BaseException) -> None:
        """Give the error to the call whose pictures they are; those of several calls are painted again one by one."""
        calls = {id(row.call): row.call for row in rows}
        if len(calls) == 1:
            rows[0].call.fail(fault)
            return
        for row in rows:
            row.alone = True
        with self._changed:
            self._waiting[kind].extendleft(reversed(rows))
            self._changed.notify_all()

    def _find_kind(self) -> _Kind | None:
        """The kind of picture to start now: any where the device is free, else one that fills a batch or waits long."""
        if self._running >= self._painter.depth:
            return None
        there = [kind for kind, rows in self._waiting.items() if rows and self._may_start(kind, rows)]
        return min(there, key=lambda kind: self._waiting[kind][0].since, default=None)

    def _may_start(self, kind: _Kind, rows: deque[_Row]) -> bool:
        full, waited = len(rows) >= self._rows(kind)[-1], self._begun - rows[0].since
        return not self._running or full or waited > _MOST_WAITS

    def _take_rows(self, kind: _Kind) -> list[_Row]:
        waiting = self._waiting[kind]
        rows = [waiting.popleft()]
        while waiting and len(rows) < self._rows(kind)[-1] and not (rows[0].alone or waiting[0].alone):
            rows.append(waiting.popleft())
        return rows

    def _rows(self, kind: _Kind) -> list[int]:
        pixels = self.options.batch_size * SIDE**2
        most = max(1, min(self.options.batch_size, pixels // (kind.height * kind.width)))
        return self._fitting.setdefault(kind[:2], [1 << (most.bit_length() - 1)])  # halved at the end of the list

    def _start_batch(self, kind: _Kind, rows: list[_Row]) -> list[Finish]:
        """Start the batch, padded; a function for each row that waits for its image."""
        fitting = self._rows(kind)
        start = partial(self._start_rows, kind.schedule)
        return run_in_batches(_pad_batch(rows, fitting[-1]), start, self, fitting)

    def _start_rows(self, schedule: Sequence[float], rows: Sequence[_Row]) -> list[Finish]:
        started = self._painter.start([row.scene for row in rows], schedule, [row.guides for row in rows])
        finish = cache(started)
        return [partial(_take_image, finish, place) for place in range(len(rows))]


def _take_image(finish: Finish, place: int) -> Floats:
    return np.asarray(finish()[place], np.float32)


def _pad_batch(batch: Sequence[_Row], count: int) -> list[_Row]:
    """The batch padded to `count` with its last picture; the padding has only the complexity guide."""
    last = batch[-1]
    spare = _Row(last.scene, Guides(last.guides.complexity), last.call, last.place, last.since)
    return [*batch, *[spare] * (count - len(batch))]


def join_scenes(scenes: Sequence[Scene]) -> Scene:
    """The pictures of several scenes of NumPy arrays as one scene."""
    return Scene(*(np.concatenate(planes) for planes in zip(*map(planes_of, scenes), strict=True)))


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
