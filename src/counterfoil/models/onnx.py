"""Networks in ONNX, run on the CPU with one thread per call, by ONNX Runtime or by OpenVINO.

The engine's threads call one session at the same time, so every core works on its own pictures: faster than
many threads on one picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as faults

from counterfoil.embedded.session import read_graph, session
from counterfoil.errors import UserError
from counterfoil.evaluate import ModelBase
from counterfoil.models.openvino import open_request
from counterfoil.models.options import Precision, Runtime
from counterfoil.models.preparation import Preparation
from counterfoil.models.preparing import prepared
from counterfoil.models.weights import check_file, file_digest
from counterfoil.types import Preprocessing

_FAULTS = (faults.Fail, faults.InvalidArgument, faults.InvalidGraph, faults.InvalidProtobuf, faults.NoSuchFile,
           faults.NotImplemented, faults.RuntimeException)  # fmt: skip


Run = Callable[[NDArray[np.float32]], NDArray[np.float32]]  # prepared pictures to scores


def open_session(path: Path) -> Any:
    """A session with one thread; several threads may run it at once."""
    check_file(path, "an ONNX network")
    try:
        return session(path)
    except _FAULTS as error:
        line = " ".join(str(error).split())
        raise UserError(f"expected an ONNX network, got {path}, which ONNX Runtime refuses: {line[:200]}") from error


def softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logits to probabilities, row by row."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), np.float32)


@dataclass(frozen=True)
class OnnxRun:
    """Where and how an ONNX network runs."""

    runtime: Runtime = "onnx"
    precision: Precision = "f32"

    def open(self, path: Path) -> Run:
        """The network as a function; several threads may call it at once."""
        if self.runtime == "openvino" or self.precision != "f32":
            return open_request(path, self.precision)
        session = open_session(path)
        return partial(_answer, session, session.get_inputs()[0].name)


def _answer(session: Any, name: str, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(session.run(None, {name: pictures})[0], np.float32)


@dataclass(frozen=True)
class Original:
    """What an exported network keeps of the one it was made from."""

    digest: str
    preparation: Preparation


@dataclass(frozen=True)
class OnnxClassifier(ModelBase):
    """A network in an ONNX file with one input and one output."""

    name: str
    path: Path
    labels: tuple[str, ...]
    preprocessing: Preprocessing
    scores: Literal["logits", "probabilities", "detect"] = "detect"
    how: OnnxRun = OnnxRun()
    original: Original | None = None  # where the file was exported from another network

    def __post_init__(self) -> None:
        width = self._probe.shape[-1]
        if width != len(self.labels):
            raise UserError(
                f"expected {len(self.labels)} output columns, one per label, got {width} from {self.name};"
                f" give the labels this network was trained on"
            )

    @cached_property
    def _network(self) -> Run:
        return self.how.open(self.path)

    @cached_property
    def _probe(self) -> NDArray[np.float32]:
        """What the network answers to a grey picture: shows its width and whether it gives probabilities."""
        height, width = self.preprocessing.size
        grey = np.full((height, width, 3), 127, np.uint8)
        try:
            found = self._run([grey])
        except _FAULTS as error:
            line = " ".join(str(error).split())
            raise UserError(f"{self.name} does not take the input {self.preprocessing.size}: {line[:200]}") from error
        return found

    @property
    def details(self) -> tuple[object, ...]:
        """Whether the file gives probabilities, and where and how it runs."""
        return (self.scores, self.how)

    @cached_property
    def digest(self) -> str:
        """Hash of the file, or of the weights it was exported from."""
        return self.original.digest if self.original else file_digest(self.path)

    @cached_property
    def parameters(self) -> int:
        """How many numbers the file holds as constants, nearly all of them learnt."""
        return sum(math.prod(tensor.dims) for tensor in read_graph(self.path).initializer)

    @cached_property
    def _gives_logits(self) -> bool:
        if self.scores != "detect":
            return self.scores == "logits"
        return bool(self._probe.min() < 0 or abs(float(self._probe.sum()) - 1) > 1e-3)

    def _picture(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        return self.original.preparation.picture(image) if self.original else prepared(image, self.preprocessing)

    def _run(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        # One picture at a time: as fast on a CPU as a batch, and the answers cannot depend on the batch.
        answers = [self._network(self._picture(image)[None]).reshape(1, -1) for image in images]
        return np.concatenate(answers).astype(np.float32, copy=False)

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        if not images:
            return np.zeros((0, len(self.labels)), np.float32)
        scores = self._run(images)
        return softmax(scores) if self._gives_logits else scores
