"""Embeddings of pictures by an embedded network, and the diversity of the pictures of a class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import cache_folder, fetch_asset
from counterfoil.assets.embedded_networks import NETWORKS, build_onnx_file
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.models.preprocessing import prepare_input
from counterfoil.statistics.intervals import Estimate
from counterfoil.types import Item
from counterfoil.worker_pool import cores

_QUANTILE = NormalDist().inv_cdf(0.975)
_FEWEST = 3  # pictures of a class; the jackknife needs a pair after leaving one out


def mean_pairwise_distance(embeddings: NDArray[np.float64]) -> tuple[float, float]:
    """Mean of 1 - cosine over all pairs of rows of length 1, and its variance by the jackknife.

    The cosines of all pairs add up to the squared length of the rows' sum less one for each row, so no pair is formed.
    """
    n = len(embeddings)
    total = embeddings.sum(axis=0)
    left_out = total - embeddings
    lengths = np.einsum("ij,ij->i", left_out, left_out)
    without = 1 - (lengths - (n - 1)) / ((n - 1) * (n - 2))
    value = 1 - (float(total @ total) - n) / (n * (n - 1))
    return value, float((n - 1) / n * ((without - without.mean()) ** 2).sum())


def diversity(embeddings: NDArray[np.float32], labels: Sequence[str]) -> Estimate:
    """The mean over classes of the mean distance within a class, with its 95 % interval; small classes are left out."""
    rows = embeddings.astype(np.float64)
    names = np.asarray(labels, object)
    groups = [rows[names == label] for label in sorted(set(labels))]
    classes = [mean_pairwise_distance(group) for group in groups if len(group) >= _FEWEST]
    used = sum(len(group) for group in groups if len(group) >= _FEWEST)
    if not classes:
        return Estimate(math.nan, math.nan, math.nan, 0)
    value = math.fsum(mean for mean, _ in classes) / len(classes)
    error = math.sqrt(math.fsum(variance for _, variance in classes)) / len(classes)
    return Estimate(value, value - _QUANTILE * error, value + _QUANTILE * error, used)


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
        return open_onnx_session(
            add_features_output(build_onnx_file(self.network, fetch_asset, cache_folder()).read_bytes())
        )

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return one picture's embedding."""
        wanted = NETWORKS[self.network].preprocessing
        *_, features = self._session.run(None, {"pictures": prepare_input(image, wanted)[None]})
        values = np.asarray(features, np.float32).ravel()
        return np.asarray(values / max(float(np.linalg.norm(values)), 1e-12), np.float32)

    def embed_all(self, items: Iterable[Item], read: Callable[[Item], NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Return the embeddings of many pictures, (n, width), read and computed on all cores."""
        self._session  # noqa: B018  opened once, before the threads ask for it
        with ThreadPoolExecutor(cores()) as pool:
            rows = list(pool.map(lambda item: self(read(item)), items))
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def add_features_output(model: bytes) -> bytes:
    """Return the network with one more output: the input of its last matrix product."""
    import onnx  # here, because most commands need no embedding

    network = onnx.load_from_string(model)
    products = [node for node in network.graph.node if node.op_type in ("Gemm", "MatMul")]
    network.graph.output.append(onnx.ValueInfoProto(name=products[-1].input[0]))
    extended: bytes = network.SerializeToString()
    return extended
