"""The batches of a device, tried on the CPU: the same answers together, alone, from threads and from processes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torch_networks as networks
from counterfoil.errors import UserError
from counterfoil.models.gpu_batches import DeviceBatches
from counterfoil.models.model_loaders import load_model
from counterfoil.models.model_options import ModelOptions
from counterfoil.models.preprocessing import (
    accept_description,
    resize_and_crop,
    resize_with_torch,
    verify_faster_resize,
)
from counterfoil.models.shared_device import DeviceService
from counterfoil.models.thread_batcher import Batcher
from counterfoil.models.torch_network import TorchNetwork
from counterfoil.types import Preprocessing
from counterfoil.worker_pool import ForkedEngine
from torch_networks import PHOTOS
from torch_setup import library

pytestmark = pytest.mark.torch

WANTED = Preprocessing(size=(64, 64), resize=72, interpolation="bicubic")
COLOURS = ("red", "green", "blue")


def batches(module: Any, wanted: Preprocessing = WANTED) -> DeviceBatches:
    preparation = verify_faster_resize(accept_description(wanted), resize_with_torch, "torch")
    return DeviceBatches(TorchNetwork(module, COLOURS, preparation), "cpu")


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(("size", "resize"), [(224, 256), (64, 72), (300, 300), (96, None)])
def test_the_swift_resize_stays_within_two_levels_of_pillow(interpolation: Any, size: int, resize: int | None) -> None:
    library("torch")
    wanted = Preprocessing(size=(size, size), resize=resize, interpolation=interpolation)
    swift = resize_with_torch(PHOTOS, wanted)
    for ours, photo in zip(swift, PHOTOS, strict=True):
        difference = np.abs(ours.astype(int) - resize_and_crop(photo, wanted))
        assert difference.max() <= 2
        assert (difference > 0).mean() < 0.01


def test_pictures_of_one_size_and_of_many_are_fitted_alike() -> None:
    library("torch")
    mixed = resize_with_torch([PHOTOS[0], PHOTOS[1], PHOTOS[0]], WANTED)
    alike = resize_with_torch([PHOTOS[0], PHOTOS[0]], WANTED)
    np.testing.assert_array_equal(mixed[[0, 2]], alike)


@pytest.mark.parametrize("order", ["RGB", "BGR"])
def test_bytes_normalised_on_the_device_give_the_answers_of_prepared_pictures(order: Any) -> None:
    torch, module = library("torch"), networks.small_network()
    wanted = Preprocessing(
        size=(64, 64),
        resize=72,
        interpolation="bilinear",
        mean=(10.0, 20.0, 30.0),
        std=(50.0, 60.0, 70.0),
        colour_order=order,
    )
    device = DeviceBatches(TorchNetwork(module, COLOURS, accept_description(wanted)), "cpu")
    pictures = np.stack([accept_description(wanted).picture(photo) for photo in PHOTOS])
    with torch.inference_mode():
        expected = module(torch.from_numpy(pictures)).softmax(1).numpy()
    np.testing.assert_allclose(device([device.ready(PHOTOS)])(), expected, atol=1e-5)


def test_threads_and_forked_processes_get_the_answers_of_a_single_call() -> None:
    device = batches(networks.small_network())
    gathering = Batcher(device, 6)
    block = device.ready(PHOTOS)
    expected = device([block])()
    service = DeviceService(gathering, block, len(COLOURS))

    def work(rolled: int) -> tuple[int, Any]:
        return rolled, service(np.roll(block, rolled, axis=0))

    with ThreadPoolExecutor(4) as pool:
        from_threads = list(pool.map(work, range(12)))
    from_processes = list(ForkedEngine(3).map(work, range(12)))
    assert sorted(rolled for rolled, _ in from_processes) == list(range(12))
    for rolled, found in from_threads + from_processes:
        np.testing.assert_allclose(found, np.roll(expected, rolled, axis=0), atol=1e-5)
    for desk in [thread for thread in threading.enumerate() if thread.name == "counterfoil-desk"]:
        desk.join(timeout=300)
        assert not desk.is_alive()


def test_a_fault_at_the_device_reaches_the_forked_process() -> None:
    device = batches(networks.small_network())

    def ask(block: Any) -> Any:
        raise UserError("the device is gone")

    service = DeviceService(ask, device.ready(PHOTOS), len(COLOURS))
    with pytest.raises(UserError, match="the device is gone"):
        list(ForkedEngine(2).map(lambda _: service(device.ready(PHOTOS)), range(2)))


def test_running_out_of_memory_halves_the_batch_and_loses_nothing() -> None:
    torch = library("torch")

    class Narrow(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        """Has room for three pictures."""

        def forward(self, pictures: Any) -> Any:
            if len(pictures) > 3:
                raise torch.OutOfMemoryError("room for three")
            return pictures.mean((2, 3))

    device = batches(Narrow())
    gathering = Batcher(device, 64)
    block = np.concatenate([device.ready(PHOTOS)] * 5)
    expected = np.concatenate([device([block[place : place + 1]])() for place in range(len(block))])
    np.testing.assert_allclose(gathering(block), expected, atol=1e-5)
    assert gathering.batch_size <= 3


def test_bf16_on_a_processor_without_it_is_refused_and_with_it_counts_the_changes(tmp_path: Path) -> None:
    library("onnxscript")
    address = networks.safetensors_file(tmp_path)
    options = ModelOptions(device="cpu", precision="bf16")
    capable = "BF16" in library("openvino").Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if not capable:
        with pytest.raises(UserError, match="expected a processor with bf16 instructions"):
            load_model(address, options=options)
        return
    model: Any = load_model(address, options=options)
    model(PHOTOS)
    assert model.note.endswith(f"of {len(PHOTOS)} top-1 answers against f32")
