"""One process owns the GPU and paints for the worker processes of a run.

Threads that cut out, blend and encode pictures wait for one interpreter lock, which leaves a GPU idle; processes do
not. A worker process hands a picture over in memory that it shares with the owner, and waits; the owner gathers what
all of them ask into batches. The memory has no name, and a connection ends with either process: nothing stays behind
one that is killed.
"""

from __future__ import annotations

import mmap
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.reduction import recv_handle, send_handle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError, make_portable
from counterfoil.painters.background_batches import Guides, planes_of, shared_batcher
from counterfoil.painters.painter_protocol import PaintPrecision
from counterfoil.painters.sampler import Scene

_CONNECTIONS_WAITING = 1024  # of workers that all start at once
_PAUSE = 0.01  # seconds after a connection that failed: no more may be open, and one may end
_CHANNELS = (3, 3, 1, 3, 3)  # of the scene's planes in their order, and of the image
_CLIENT_THREAD = "counterfoil-paint-client"
CAN_SHARE = hasattr(os, "memfd_create")  # memory without a name: on Linux

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ServiceAddress:
    """Where the process that owns the device is asked."""

    place: str
    key: bytes
    owner: int  # the number of its process


class _Memory(NamedTuple):
    """Announces the shared memory of a connection; its handle follows."""

    size: int


class _PaintOrder(NamedTuple):
    """What to paint: the scene lies in the shared memory, the image is expected behind it."""

    device: str
    precision: PaintPrecision
    shape: tuple[int, int, int]  # pictures, height and width
    schedule: tuple[float, ...]
    guides: Guides


class PaintService:
    """Paints on this process's device for other processes, until it is closed."""

    def __init__(self) -> None:
        key = secrets.token_bytes(32)
        place = f"\0counterfoil-{os.getpid()}-{secrets.token_hex(8)}"  # a name of Linux's own, which is no file
        self._listener = Listener(place, "AF_UNIX", _CONNECTIONS_WAITING, key)
        self._is_open = True
        self.address = ServiceAddress(place, key, os.getpid())
        threading.Thread(target=self._accept, name="counterfoil-paint-service", daemon=True).start()

    def _accept(self) -> None:
        with self._listener:
            while self._is_open:
                try:
                    connection = self._listener.accept()
                except (AuthenticationError, EOFError, OSError):  # it died meanwhile, or is none of ours
                    time.sleep(_PAUSE)
                    continue
                threading.Thread(target=_serve, args=(connection,), name=_CLIENT_THREAD, daemon=True).start()

    def close(self) -> None:
        """Take no further connection."""
        self._is_open = False
        with socket.socket(socket.AF_UNIX) as waker, suppress(OSError):  # the thread waits for a connection
            waker.connect(self.address.place)


def _serve(connection: Connection) -> None:
    """Paint for one thread of a worker process until it ends."""
    memory: mmap.mmap | None = None
    try:
        while True:
            message = connection.recv()
            if isinstance(message, _Memory):
                memory = _map_memory(recv_handle(connection), message.size)
            elif memory is not None:
                connection.send(_paint(message, memory))
    except (EOFError, OSError):  # the worker ended, or was killed
        connection.close()


def _map_memory(handle: int, size: int) -> mmap.mmap:
    try:
        return mmap.mmap(handle, size)
    finally:
        os.close(handle)


def _paint(order: _PaintOrder, memory: mmap.mmap) -> BaseException | None:
    """Paint an order into its memory; the error, if there is one, as the worker can raise it."""
    *planes, image = _lay_out(memory, order.shape)
    try:
        batcher = shared_batcher(order.device, order.precision)
        image[:] = batcher.paint(Scene(*planes), order.schedule, order.guides)
    except BaseException as fault:  # noqa: BLE001  sent to the process that waits, which raises it
        return make_portable(fault)
    return None


def _lay_out(memory: mmap.mmap, shape: tuple[int, int, int]) -> Iterator[Floats]:
    """The planes of a scene one after another in the memory, (n, c, height, width), and the image."""
    count, height, width = shape
    start = 0
    for channels in _CHANNELS:
        values = count * channels * height * width
        yield np.frombuffer(memory, np.float32, values, start).reshape(count, channels, height, width)
        start += 4 * values


class _Channel:
    """The connection of one thread and the memory that it shares with the owner of the device."""

    def __init__(self, address: ServiceAddress) -> None:
        self._connection = Client(address.place, "AF_UNIX", address.key)
        self._memory: mmap.mmap | None = None

    def paint(self, order: _PaintOrder, scene: Scene) -> Floats:
        """Have an order painted; raises what the owner's painter raised."""
        size = 4 * sum(_CHANNELS) * int(np.prod(order.shape))
        if self._memory is None or len(self._memory) < size:
            self._memory = self._share_memory(size)
        *planes, image = _lay_out(self._memory, order.shape)
        for there, plane in zip(planes, planes_of(scene), strict=True):
            np.copyto(there, plane)
        self._connection.send(order)
        fault: BaseException | None = self._connection.recv()
        if fault is not None:
            raise fault
        return np.array(image)

    def _share_memory(self, size: int) -> mmap.mmap:
        handle = os.memfd_create("counterfoil-paint")
        os.ftruncate(handle, size)
        self._connection.send(_Memory(size))
        send_handle(self._connection, handle, None)
        return _map_memory(handle, size)


@dataclass(frozen=True)
class PaintClient:
    """Asks the process that owns the device; any number of threads may."""

    address: ServiceAddress
    # made at once: two threads that each made one on first use would lose a channel
    _of_thread: threading.local = field(default_factory=threading.local, init=False, repr=False, compare=False)

    def paint(
        self, device: str, precision: PaintPrecision, scene: Scene, schedule: list[float], guides: Guides
    ) -> Floats:
        """The painted pictures, (n, 3, height, width), as `GpuBatcher.paint` gives them there."""
        count, _, height, width = scene.noise.shape
        order = _PaintOrder(device, precision, (count, height, width), tuple(schedule), guides)
        try:
            if not hasattr(self._of_thread, "channel"):
                self._of_thread.channel = _Channel(self.address)
            channel: _Channel = self._of_thread.channel
            return channel.paint(order, scene)
        except (EOFError, ConnectionError) as error:
            raise UserError(
                "expected the process that paints on the GPU to live, and it ended; what is finished is kept: run the"
                " same command to go on"
            ) from error


_CLIENT: list[PaintClient] = []  # of the process, where another one owns the device


def use_service(address: ServiceAddress) -> None:
    """From now on, this process paints through the owner of the device."""
    _CLIENT[:] = [PaintClient(address)]


@contextmanager
def serve_forked(address: ServiceAddress) -> Iterator[None]:
    """Processes that the owner forks meanwhile paint through it."""
    use_service(address)
    try:
        yield
    finally:
        _CLIENT.clear()


def find_client() -> PaintClient | None:
    """Asks the owner of the device; None in the process that owns it, and where none was named."""
    return next((client for client in _CLIENT if client.address.owner != os.getpid()), None)
