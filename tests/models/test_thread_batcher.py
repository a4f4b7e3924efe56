"""Pictures of many threads in shared batches: nothing lost, nothing twice, nothing in another's place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.models.model_protocol import ModelBase
from counterfoil.models.onnx_classifier import ComparedClassifier
from counterfoil.models.thread_batcher import Batcher, TooLarge

Block = NDArray[Any]


class Device:
    """Answers each number with its double; has room for so many at once."""

    def __init__(self, room: int = 10_000) -> None:
        self.room, self.sizes = room, list[int]()
        self.free = threading.Event()
        self.free.set()

    def __call__(self, blocks: Sequence[Block]) -> Callable[[], NDArray[np.float32]]:
        numbers = np.concatenate(blocks)
        if len(numbers) > self.room:
            raise TooLarge(f"room for {self.room}")
        if (numbers == 13).any():
            raise ArithmeticError("thirteen")
        self.sizes.append(len(numbers))

        def answers() -> NDArray[np.float32]:
            self.free.wait()
            return np.asarray(2 * numbers[:, None], np.float32)

        return answers


def asked_by_threads(gathering: Batcher, calls: int, per_call: int) -> None:
    def ask(call: int) -> None:
        numbers = np.arange(per_call) + 100 * call + 20
        np.testing.assert_array_equal(gathering(numbers)[:, 0], 2 * numbers)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(calls)))


@pytest.mark.parametrize(("batch_size", "per_call"), [(1, 5), (7, 5), (16, 16), (64, 3), (8, 40)])
def test_every_thread_gets_its_own_answers(batch_size: int, per_call: int) -> None:
    device = Device()
    asked_by_threads(Batcher(device, batch_size), 60, per_call)
    assert sum(device.sizes) == 60 * per_call
    assert max(device.sizes) <= batch_size


def test_threads_share_batches_while_the_device_is_busy() -> None:
    device = Device()
    gathering = Batcher(device, 64)
    device.free.clear()
    there = threading.Semaphore(0)

    def ask() -> NDArray[np.float32]:
        there.release()
        return gathering(np.arange(4) + 20)

    with ThreadPoolExecutor(16) as pool:
        waiting = [pool.submit(ask) for _ in range(16)]
        for _ in waiting:
            there.acquire()
        device.free.set()
        assert all(len(future.result()) == 4 for future in waiting)
    assert len(device.sizes) < 16


def test_a_batch_that_does_not_fit_is_halved_and_nothing_is_lost() -> None:
    device = Device(room=5)
    gathering = Batcher(device, 64)
    asked_by_threads(gathering, 30, 11)
    assert sum(device.sizes) == 330
    assert gathering.batch_size <= 5


def test_a_device_without_room_for_one_picture_says_so() -> None:
    with pytest.raises(UserError, match="no room for a single picture"):
        Batcher(Device(room=0), 8)(np.arange(3))


def test_a_fault_reaches_the_thread_that_asked_and_others_go_on() -> None:
    gathering = Batcher(Device(), 8)
    with pytest.raises(ArithmeticError, match="thirteen"):
        gathering(np.array([13]))
    np.testing.assert_array_equal(gathering(np.array([4, 5]))[:, 0], [8, 10])


class Rounded(ModelBase):
    """Prefers the brighter half of a picture; the rounded one cannot tell small differences."""

    name, labels, digest, preprocessing = "python:rounded", ("left", "right"), "0", None

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        halves = np.array([[image[:, :4].mean(), image[:, 4:].mean()] for image in images])
        rounded = np.floor(halves / self.step) * self.step + 1
        return np.asarray(rounded / rounded.sum(axis=1, keepdims=True), np.float32)


def test_reduced_precision_says_how_many_answers_it_changed() -> None:
    model = ComparedClassifier(Rounded(50), Rounded(1), "bf16")
    clear = np.zeros((8, 8, 3), np.uint8)
    clear[:, 4:] = 200
    close = np.full((8, 8, 3), 10, np.uint8)
    close[:, 4:] = 12
    model([clear, close])
    model([clear, clear])
    assert model.note == "bf16 changed 1 of 4 top-1 answers against f32"
    assert model.name == "python:rounded (bf16)"
