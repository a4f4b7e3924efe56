"""A computation on the GPU recorded once and replayed as a whole."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

Compute = Callable[[Any], Any]
Recording = Callable[[Any], Any]  # a batch of at most the recorded size to its scores

_WARM_UP_RUNS = 3  # libraries choose and load their kernels on the first runs, which cannot be recorded


def recorded(torch: Any, compute: Compute, example: Any, size: int) -> Recording:
    """The computation for batches of up to `size`; as it is where it cannot be recorded."""
    held = torch.zeros((size, *example.shape[1:]), dtype=example.dtype, device=example.device)
    for _ in range(_WARM_UP_RUNS):
        compute(held)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        # other threads may work on the device meanwhile, for another model
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
            answer = compute(held)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        line = " ".join(str(error).split())[:120]
        warnings.warn(f"the network cannot be recorded and runs kernel by kernel: {line}", stacklevel=2)
        return compute

    def replay(batch: Any) -> Any:
        held[: len(batch)].copy_(batch)  # rows behind are those of an earlier batch; their answers are not read
        graph.replay()
        return answer[: len(batch)]

    return replay
