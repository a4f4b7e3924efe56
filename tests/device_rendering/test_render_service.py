"""One device for threads and forked processes, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from counterfoil.device_rendering.render_service import RenderClient, RenderService, check_device, open_render_service
from counterfoil.device_rendering.torch_renderer import PictureRequest
from counterfoil.edits.composition import Composition, Grey, Plane
from counterfoil.errors import UserError
from counterfoil.models.preprocessing import InputGeometry
from counterfoil.worker_pool import ForkedEngine
from torch_setup import library

pytestmark = pytest.mark.torch

NO_OBJECT = Composition(Plane(np.zeros((4, 4, 3), np.uint8)))  # wrong: nothing was moved, so there is no alpha
GEOMETRY = InputGeometry((16, 16), None, "bilinear")


def request_of(number: int, side: int = 40) -> PictureRequest:
    image = np.random.default_rng(number).integers(0, 256, (side, side + 5, 3), np.uint8)
    return PictureRequest(composition=Composition(Grey(Plane(image)), image[..., 0]), before=(image,))


@pytest.fixture
def service() -> RenderService:
    library("torch")
    return open_render_service("cpu")


def test_threads_and_forked_processes_get_the_pictures_of_a_single_call(service: RenderService) -> None:
    def work(number: int) -> tuple[int, list[np.ndarray]]:
        here = PictureRequest(composition=Composition.of(request_of(10 + number).composition.draw()))
        pictures = service.make([request_of(number), here, request_of(20 + number)], [GEOMETRY])
        parts: list[np.ndarray] = []
        for made in pictures:
            parts += [made.image, made.rows, np.array(made.changed), *made.inputs]
        return number, parts

    alone = dict(map(work, range(6)))
    with ThreadPoolExecutor(4) as pool:
        threads = dict(pool.map(work, range(6)))
    for told in (threads, dict(ForkedEngine(2).map(work, range(6)))):
        for number, parts in told.items():
            for part, expected in zip(parts, alone[number], strict=True):
                np.testing.assert_array_equal(part, expected)


def test_threads_of_one_forked_process_get_their_own_pictures(service: RenderService) -> None:
    def ask(side: int) -> bool:
        grey = request_of(side, side)
        made = [service.make([grey], [GEOMETRY])[0].image for _ in range(20)]
        return all(np.array_equal(image, grey.composition.draw().image) for image in made)

    def work(number: int) -> list[bool]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(ask, (40, 41, 42, 43)))

    assert list(ForkedEngine(1).map(work, [0])) == [[True] * 4]


def test_a_fault_in_the_parent_is_raised_in_the_process_that_asked(service: RenderService) -> None:
    def work(number: int) -> str:
        try:
            service.make([PictureRequest(composition=NO_OBJECT)], ())
        except KeyError as error:
            return type(error).__name__
        return ""

    assert all(ForkedEngine(1).map(work, range(2)))


def test_a_fault_that_cannot_be_pickled_reaches_the_process_that_asked(
    service: RenderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LocalError(Exception):
        """Known in this function alone."""

    def fail(*asked: object) -> None:
        raise LocalError("out of memory")

    monkeypatch.setattr(service, "_renderer", fail)

    def work(number: int) -> str:
        try:
            service.make([request_of(number)], ())
        except RuntimeError as error:
            return str(error)
        return ""

    assert list(ForkedEngine(1).map(work, range(2))) == ["LocalError: out of memory"] * 2


def test_pictures_beyond_the_shared_memory_go_through_the_pipe() -> None:
    client = RenderClient.open(room=1000)
    wide = request_of(0, side=60)
    client.child.send(([wide], [GEOMETRY]))
    ((asked,), geometries) = client.parent.receive()
    np.testing.assert_array_equal(asked.composition.draw().image, wide.composition.draw().image)
    assert geometries == [GEOMETRY]


def test_a_device_that_is_not_there_is_refused_in_one_line() -> None:
    library("torch")
    with pytest.raises(UserError, match=r"got 'cuda:99'; torch sees \d+ GPUs"):
        check_device("cuda:99")
    with pytest.raises(UserError, match="expected --render-device cpu, cuda or cuda:NUMBER, got 'auto'"):
        check_device("auto")
