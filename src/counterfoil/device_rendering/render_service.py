"""One device that makes pictures for all workers: threads take turns, forked processes ask through shared memory."""

from __future__ import annotations

import itertools
import mmap
import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.device_rendering.torch_renderer import MadePicture, PictureRequest, TorchRenderer
from counterfoil.edits.composition import Plane
from counterfoil.errors import UserError, make_portable
from counterfoil.models.preprocessing import InputGeometry
from counterfoil.models.shared_device import ForkedService
from counterfoil.models.torch_classifier import choose_device
from counterfoil.plugins import import_extra

_ARENA = 256 * 2**20  # bytes shared with each forked process; memory is taken where they are used

Requests = tuple[Sequence[PictureRequest], Sequence[InputGeometry]]
Render = Callable[[Requests], list[MadePicture]]


@dataclass(frozen=True)
class ArrayPipe:
    """One end of a pipe whose arrays go through shared memory, as far as they fit; each direction has its own."""

    outgoing: NDArray[np.uint8]
    incoming: NDArray[np.uint8]
    connection: Connection

    def send(self, thing: object) -> None:
        """Send anything that can be pickled."""
        buffers: list[pickle.PickleBuffer] = []
        body = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
        raw = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        if sum(map(len, raw)) > len(self.outgoing):
            self.connection.send((pickle.dumps(thing, protocol=5), ()))
            return
        start = 0
        for each in raw:
            self.outgoing[start : start + len(each)] = each
            start += len(each)
        self.connection.send((body, tuple(map(len, raw))))

    def receive(self) -> Any:
        """What the other end sent; its arrays lie in the shared memory until the next message."""
        body, sizes = self.connection.recv()
        ends = np.cumsum((0, *sizes)).tolist()
        parts = [self.incoming[first:last] for first, last in itertools.pairwise(ends)]
        return pickle.loads(body, buffers=parts)


@dataclass(frozen=True)
class RenderClient:
    """The memory and pipe that one forked process shares with its parent."""

    parent: ArrayPipe
    child: ArrayPipe
    lock: threading.Lock = field(default_factory=threading.Lock)  # threads of the child take turns

    @classmethod
    def open(cls, room: int = _ARENA) -> RenderClient:
        """A client for the next process."""
        asked, answered = (np.frombuffer(mmap.mmap(-1, room), np.uint8) for _ in range(2))
        parent, child = Pipe()
        return cls(ArrayPipe(answered, asked, parent), ArrayPipe(asked, answered, child))

    def ask(self, requests: Requests) -> list[MadePicture]:
        """In the child: have the parent make the pictures."""
        with self.lock:
            self.child.send(requests)
            answer = self.child.receive()
            if isinstance(answer, BaseException):
                raise answer
            return [_take(request, made) for request, made in zip(requests[0], answer, strict=True)]

    def serve(self, render: Render) -> None:
        """In the parent: serve requests until the child ends."""
        while True:
            try:
                requests = self.parent.receive()
            except (EOFError, OSError):
                return
            self.parent.send(_try(render, requests))

    def close_parent(self) -> None:
        """In the child."""
        self.parent.connection.close()

    def close_child(self) -> None:
        """In the parent: the pipe then closes when the child ends."""
        self.child.connection.close()


def _try(render: Render, requests: Requests) -> list[MadePicture] | BaseException:
    try:
        return [_leave_out(request, made) for request, made in zip(requests[0], render(requests), strict=True)]
    except BaseException as fault:  # noqa: BLE001  sent to the process that waits, which raises it
        return make_portable(fault)


_NO_PIXELS = np.zeros((0, 0, 3), np.uint8)


def _leave_out(request: PictureRequest, made: MadePicture) -> MadePicture:
    """Without pixels that the process which asked has already."""
    return made._replace(image=_NO_PIXELS) if isinstance(request.composition.image, Plane) else made


def _take(request: PictureRequest, made: MadePicture) -> MadePicture:
    """The picture in memory of its own."""
    stored, inputs = request.composition.image, tuple(levels.copy() for levels in made.inputs)
    image = stored.pixels if isinstance(stored, Plane) else made.image.copy()
    return made._replace(image=image, rows=made.rows.copy(), columns=made.columns.copy(), inputs=inputs)


class RenderService(ForkedService[Requests, "list[MadePicture]"]):
    """Makes pictures on one device, for this process's threads and for the processes forked from it."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._renderer, self._turn = TorchRenderer(device), threading.Lock()
        super().__init__(self._render, RenderClient.open)

    def _render(self, requests: Requests) -> list[MadePicture]:
        with self._turn:
            return self._renderer(*requests)

    def make(self, requests: Sequence[PictureRequest], geometries: Sequence[InputGeometry]) -> list[MadePicture]:
        """The pictures in order, measured, with the inputs that networks of these geometries take."""
        return self((requests, geometries))


@lru_cache(maxsize=8)
def open_render_service(device: str) -> RenderService:
    """The service of a device of torch; one in a process, since a fork serves all that there are."""
    check_device(device)
    torch = import_extra("torch", "torch")
    torch.set_num_threads(1)  # there is a worker for every core already
    torch.backends.cuda.matmul.allow_tf32 = False  # sums of levels must be exact
    return RenderService(device)


def check_device(device: str) -> None:
    """Raises `UserError` where torch or the device is missing."""
    if device == "auto":  # torch on the CPU is slower than OpenCV, so nobody gets it without asking
        raise UserError("expected --render-device cpu, cuda or cuda:NUMBER, got 'auto'")
    choose_device(device)
