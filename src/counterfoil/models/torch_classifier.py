"""Torch networks as classifiers, on the CPU or in batches on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.models.gpu_batches import DeviceBatches, find_batch_size
from counterfoil.models.model_options import ModelOptions, Request, suggest_labels
from counterfoil.models.model_protocol import ModelBase
from counterfoil.models.onnx_classifier import ComparedClassifier
from counterfoil.models.onnx_export import export_classifier
from counterfoil.models.preprocessing import Preparation, prepare_input, resize_with_torch, verify_faster_resize
from counterfoil.models.shared_device import DeviceService
from counterfoil.models.thread_batcher import Batcher
from counterfoil.models.torch_network import TorchNetwork
from counterfoil.plugins import import_extra
from counterfoil.types import Model, Preprocessing

_COMPARED_AT_ONCE = 64  # the comparison in full precision is short, so its batch size is not tuned

Ask = Callable[[Sequence[NDArray[np.uint8]]], NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True)
class TorchClassifier(ModelBase):
    """A network that runs in torch."""

    name: str
    labels: tuple[str, ...]
    preparation: Preparation
    digest: str
    ask: Ask
    batches: DeviceBatches
    parameters: int = 0
    device: str = "cpu"
    batch_size: int = 1

    @property
    def preprocessing(self) -> Preprocessing:
        """What is done to a picture before the network sees it."""
        return self.preparation.preprocessing

    @property
    def prepared_by(self) -> str:
        """Which code prepares the pictures, in words."""
        return self.preparation.how

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        if not images:
            return np.zeros((0, len(self.labels)), np.float32)
        return self.ask(images)

    def try_preprocessing(
        self, images: Sequence[NDArray[np.uint8]], preprocessing: Preprocessing
    ) -> NDArray[np.float32] | None:
        """The probabilities with another preprocessing; None where the library's own transform prepares."""
        if self.preparation.transform is not None:
            return None
        pictures = [self.batches.score_prepared(prepare_input(image, preprocessing)[None]) for image in images]
        return np.concatenate(pictures)


def build_classifier(request: Request, network: TorchNetwork) -> Model:
    """The classifier in the runtime, device and precision of the options."""
    options, device = request.options, choose_device(request.options.device)
    check_output_columns(request.address, network)
    if options.runtime != "own" or (device == "cpu" and options.precision != "f32"):
        return export_classifier(request, network)
    if device == "cpu":
        return _on_cpu(request.address, network)
    classifier = _on_device(request.address, network, options, device)
    if options.precision == "f32":
        return classifier
    full = replace(options, precision="f32", batch_size=_COMPARED_AT_ONCE)
    return ComparedClassifier(classifier, _on_device(request.address, network, full, device), options.precision)


def choose_device(wanted: str) -> str:
    """The device for torch; raises `UserError` where it is missing."""
    torch = import_extra("torch", "torch")
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = wanted.partition(":")
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    known = kind == "cpu" or (kind == "cuda" and (number or "0").isdigit() and int(number or 0) < there)
    if not known:
        raise UserError(f"expected a device as auto, cpu, cuda or cuda:NUMBER, got '{wanted}'; torch sees {there} GPUs")
    return wanted


def check_output_columns(address: str, network: TorchNetwork) -> None:
    """Refuse a layout other than NCHW, and a number of columns that is not the number of labels."""
    torch = import_extra("torch", "torch")
    if network.preparation.preprocessing.layout != "NCHW":
        raise UserError(f"expected the layout NCHW, as torch networks have it, got NHWC for {address}")
    height, width = network.preparation.preprocessing.size
    grey = network.preparation.picture(np.full((height, width, 3), 127, np.uint8))
    with torch.inference_mode():
        output = network.module(torch.from_numpy(grey)[None])
    columns = tuple(getattr(output, "shape", ()))
    if columns != (1, len(network.labels)):
        raise UserError(
            f"expected {len(network.labels)} output columns, one per label, got an output of shape {columns} from"
            f" {address}; {suggest_labels(len(network.labels), columns[-1] if columns else 0)}"
        )


def _on_cpu(name: str, network: TorchNetwork) -> TorchClassifier:
    # There is a worker thread per core already; more threads inside each call would slow one another.
    import_extra("torch", "torch").set_num_threads(1)
    batches = DeviceBatches(network, "cpu")

    def ask(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        # One picture at a time, as in ONNX, so that answers cannot depend on the batch.
        return np.concatenate([batches([batches.ready([image])])() for image in images])

    batches([batches.ready([np.zeros((*network.preparation.preprocessing.size, 3), np.uint8)])])()
    return _classifier(name, batches, ask)


def _on_device(name: str, network: TorchNetwork, options: ModelOptions, device: str) -> TorchClassifier:
    faster = replace(network, preparation=verify_faster_resize(network.preparation, resize_with_torch, "torch"))
    batches = DeviceBatches(faster, device, options.precision)
    # Resizing runs on the worker threads, one per core.
    import_extra("torch", "torch").set_num_threads(1)
    batcher = Batcher(batches, options.batch_size or find_batch_size(batches))
    example = batches.ready([np.zeros((*network.preparation.preprocessing.size, 3), np.uint8)])
    service = DeviceService(batcher, example, len(network.labels))

    def ask(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return service(batches.ready(images))

    return _classifier(name, batches, ask, batcher.batch_size)


def _classifier(name: str, batches: DeviceBatches, ask: Ask, batch_size: int = 1) -> TorchClassifier:
    network = batches.network
    return TorchClassifier(
        name=name,
        labels=network.labels,
        preparation=network.preparation,
        digest=network.digest,
        ask=ask,
        batches=batches,
        parameters=network.parameters,
        device=batches.device,
        batch_size=batch_size,
    )
