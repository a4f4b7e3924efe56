"""Pictures as points: what an embedded network holds of them before its last layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.embedded.fetch import asset, cache_folder
from counterfoil.embedded.networks import NETWORKS, onnx_file
from counterfoil.embedded.session import session
from counterfoil.engine import cores
from counterfoil.models.preparing import prepared
from counterfoil.types import Item


@dataclass(frozen=True)
class Embedding:
    """An embedded network without its last layer; rows of length 1."""

    network: str = "efficientnet-lite0"

    @property
    def name(self) -> str:
        """The network and its layer."""
        return f"embedded:{self.network}, the values before its last layer"

    @cached_property
    def _session(self) -> Any:
        return session(with_features(onnx_file(self.network, asset, cache_folder()).read_bytes()))

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """One picture's embedding."""
        wanted = NETWORKS[self.network].preprocessing
        *_, features = self._session.run(None, {"pictures": prepared(image, wanted)[None]})
        values = np.asarray(features, np.float32).ravel()
        return np.asarray(values / max(float(np.linalg.norm(values)), 1e-12), np.float32)

    def of_all(self, items: Iterable[Item], read: Callable[[Item], NDArray[np.uint8]]) -> NDArray[np.float32]:
        """The embeddings of many pictures, (n, width), read and computed on all cores."""
        self._session  # noqa: B018  opened once, before the threads ask for it
        with ThreadPoolExecutor(cores()) as pool:
            rows = list(pool.map(lambda item: self(read(item)), items))
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def with_features(model: bytes) -> bytes:
    """The network with one more output: what goes into its last matrix product."""
    import onnx  # here, because most commands need no embedding

    network = onnx.load_from_string(model)
    products = [node for node in network.graph.node if node.op_type in ("Gemm", "MatMul")]
    network.graph.output.append(onnx.ValueInfoProto(name=products[-1].input[0]))
    extended: bytes = network.SerializeToString()
    return extended
