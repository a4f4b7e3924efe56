"""ONNX networks as classifiers, in ONNX Runtime or OpenVINO; reduced precision is compared with full precision.

The engine's threads share one session, each core with its own pictures: faster than many threads on one picture.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.onnx_session import RUNTIME_FAULTS, open_onnx_session, read_graph
from counterfoil.errors import UserError
from counterfoil.models.model_options import Precision, Runtime, suggest_labels
from counterfoil.models.model_protocol import ModelBase, ModelWrapper
from counterfoil.models.preprocessing import Preparation, prepare_input
from counterfoil.models.weight_files import check_file
from counterfoil.plugins import import_extra
from counterfoil.store.files import hash_file
from counterfoil.types import Model, PhotoInput, Preprocessing

COMPARED = 256  # pictures that are run twice; enough to see one percent of changed answers


@dataclass(frozen=True)
class ComparedClassifier(ModelWrapper):
    """Runs in reduced precision and counts how many top-1 answers differ from full precision."""

    model: Model  # in reduced precision
    exact: Model
    precision: str
    # pictures compared and answers changed, counted by threads and by forked processes alike
    _counted: Any = field(default_factory=partial(multiprocessing.Array, "q", 2), repr=False, compare=False)

    details = ModelBase.details
    identity = ModelBase.identity  # end of the name: the precision

    @property
    def name(self) -> str:
        """The address and the precision."""
        return f"{self.model.name} ({self.precision})"

    @property
    def note(self) -> str:
        """How many top-1 answers the reduced precision changed."""
        compared, changed = self._counted
        return f"{self.precision} changed {changed} of {compared} top-1 answers against f32"

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        scores = self.model(images)
        if images and self._counted[0] < COMPARED:
            changed = int((scores.argmax(1) != self.exact(images).argmax(1)).sum())
            with self._counted.get_lock():
                self._counted[0] += len(images)
                self._counted[1] += changed
        return scores


_EXTRA = "openvino"


def open_openvino(path: Path, precision: Precision) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """The network as a function; each calling thread has its own request."""
    openvino = import_extra("openvino", _EXTRA)
    core = openvino.Core()
    _check_precision(core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"), precision)
    check_file(path, "an ONNX network")
    threads = os.cpu_count() or 1
    settings = {"INFERENCE_PRECISION_HINT": precision, "NUM_STREAMS": threads, "INFERENCE_NUM_THREADS": threads}
    try:
        network = core.compile_model(str(path), "CPU", settings)
    except RuntimeError as error:
        line = " ".join(str(error).split())
        raise UserError(f"expected an ONNX network, got {path}, which OpenVINO refuses: {line[:200]}") from error
    own = threading.local()

    def answer(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        if not hasattr(own, "request"):
            own.request = network.create_infer_request()
        return np.array(own.request.infer([pictures])[0], np.float32)

    return answer


def _check_precision(capabilities: list[str], precision: Precision) -> None:
    """Refuse a precision that the device lacks; OpenVINO would fall back to f32 without notice."""
    if precision == "f32" or precision.upper() in capabilities:
        return
    if precision == "fp16":
        raise UserError("expected f32 or bf16 on a CPU, got fp16; --precision fp16 is for a GPU")
    raise UserError(
        "expected a processor with bf16 instructions for --precision bf16, this one has none; leave it at f32"
    )


Run = Callable[[NDArray[np.float32]], NDArray[np.float32]]  # prepared pictures to scores


def open_session(path: Path) -> Any:
    """A session with one thread; several threads may run it at once."""
    check_file(path, "an ONNX network")
    try:
        return open_onnx_session(path)
    except (*RUNTIME_FAULTS, UnicodeDecodeError) as error:  # its message quotes the damaged file's bytes
        line = " ".join(str(error).split())
        raise UserError(f"expected an ONNX network, got {path}, which ONNX Runtime refuses: {line[:200]}") from error


def softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logits to probabilities, row by row."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), np.float32)


@dataclass(frozen=True)
class OnnxRun:
    """The runtime, device and precision of an ONNX network."""

    runtime: Runtime = "onnx"
    precision: Precision = "f32"

    def open(self, path: Path) -> Run:
        """The network as a function; several threads may call it at once."""
        if self.runtime == "openvino" or self.precision != "f32":
            return open_openvino(path, self.precision)
        session = open_session(path)
        return partial(_run_session, session, session.get_inputs()[0].name)


def _run_session(session: Any, name: str, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(session.run(None, {name: pictures})[0], np.float32)


@dataclass(frozen=True)
class Original:
    """What an exported network keeps of its original."""

    digest: str
    preparation: Preparation


@dataclass(frozen=True, kw_only=True)
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
                f" {suggest_labels(len(self.labels), width)}"
            )

    @cached_property
    def _network(self) -> Run:
        return self.how.open(self.path)

    @cached_property
    def _probe(self) -> NDArray[np.float32]:
        """The network's output for a grey picture: shows the number of columns and whether they are probabilities."""
        height, width = self.preprocessing.size
        grey = np.full((height, width, 3), 127, np.uint8)
        try:
            scores = self._run([grey])
        except RUNTIME_FAULTS as error:
            line = " ".join(str(error).split())
            raise UserError(f"{self.name} does not take the input {self.preprocessing.size}: {line[:200]}") from error
        return scores

    @property
    def details(self) -> tuple[object, ...]:
        """Whether the file gives probabilities, and how it is run."""
        return (self.scores, self.how)

    @cached_property
    def digest(self) -> str:
        """Hash of the file, or of the weights it was exported from."""
        return self.original.digest if self.original else hash_file(self.path)

    @cached_property
    def parameters(self) -> int:
        """How many numbers the file holds as constants, nearly all of them learnt."""
        return sum(math.prod(tensor.dims) for tensor in read_graph(self.path).initializer)

    @cached_property
    def gives_logits(self) -> bool:
        """Whether its scores are logits, as said or else as seen on a grey picture."""
        if self.scores != "detect":
            return self.scores == "logits"
        return bool(self._probe.min() < 0 or abs(float(self._probe.sum()) - 1) > 1e-3)

    def _picture(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        return self.original.preparation.picture(image) if self.original else prepare_input(image, self.preprocessing)

    def try_preprocessing(
        self, images: Sequence[NDArray[np.uint8]], preprocessing: Preprocessing
    ) -> NDArray[np.float32] | None:
        """The probabilities with another preprocessing; None where a library or the network itself prepares."""
        if isinstance(self.preprocessing, PhotoInput):
            return None
        if self.original is not None and self.original.preparation.transform is not None:
            return None
        return self._probabilities(self._run_prepared([prepare_input(image, preprocessing) for image in images]))

    def _run(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return self._run_prepared([self._picture(image) for image in images])

    def _run_prepared(self, pictures: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        # One picture at a time: on a CPU as fast as a batch, and answers cannot depend on the batch.
        answers = [self._network(picture[None]).reshape(1, -1) for picture in pictures]
        return np.concatenate(answers).astype(np.float32, copy=False)

    def _probabilities(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        return softmax(scores) if self.gives_logits else scores

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        if not images:
            return np.zeros((0, len(self.labels)), np.float32)
        return self._probabilities(self._run(images))
