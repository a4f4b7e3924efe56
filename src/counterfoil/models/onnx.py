"""Networks in ONNX, run by ONNX Runtime on the CPU with one thread per call.

The engine's threads call one session at the same time, so every core works on its own pictures: faster than
many threads on one picture.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as faults

from counterfoil.errors import UserError
from counterfoil.models.preparing import prepared
from counterfoil.types import Preprocessing

_FAULTS = (faults.Fail, faults.InvalidArgument, faults.InvalidGraph, faults.InvalidProtobuf, faults.NoSuchFile,
           faults.NotImplemented, faults.RuntimeException)  # fmt: skip


def open_session(path: Path) -> Any:
    """A session with one thread; several threads may run it at once."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    except _FAULTS as error:
        line = " ".join(str(error).split())
        raise UserError(f"expected an ONNX network, got {path}, which ONNX Runtime refuses: {line[:200]}") from error


def softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logits to probabilities, row by row."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), np.float32)


@dataclass(frozen=True)
class OnnxClassifier:
    """A network in an ONNX file with one input and one output."""

    name: str
    path: Path
    labels: tuple[str, ...]
    preprocessing: Preprocessing
    scores: Literal["logits", "probabilities", "detect"] = "detect"

    def __post_init__(self) -> None:
        width = self._probe.shape[-1]
        if width != len(self.labels):
            raise UserError(
                f"expected {len(self.labels)} output columns, one per label, got {width} from {self.name};"
                f" give the labels this network was trained on"
            )

    @cached_property
    def _session(self) -> Any:
        return open_session(self.path)

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

    @cached_property
    def digest(self) -> str:
        """Hash of the file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    @cached_property
    def _gives_logits(self) -> bool:
        if self.scores != "detect":
            return self.scores == "logits"
        return bool(self._probe.min() < 0 or abs(float(self._probe.sum()) - 1) > 1e-3)

    def _run(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        # One picture at a time: as fast on a CPU as a batch, and the answers cannot depend on the batch.
        name = self._session.get_inputs()[0].name
        answers = [
            self._session.run(None, {name: prepared(image, self.preprocessing)[None]})[0].reshape(1, -1)
            for image in images
        ]
        return np.concatenate(answers).astype(np.float32, copy=False)

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        scores = self._run(images)
        return softmax(scores) if self._gives_logits else scores
