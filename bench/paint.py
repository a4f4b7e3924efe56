"""What painting a background costs: on the CPU as a multiple of one network pass, on a GPU in pictures per second.

    python bench/paint.py [--steps 10] [--batch 64]

The CPU part times the steps that an edit adds around the network: schedule, blending, complexity guidance. The GPU
part runs where torch sees one, and gives the share of the card's own speed at a large matrix product.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from counterfoil.paint.background_model import background_model
from counterfoil.paint.complexity_guide import complexity_guide
from counterfoil.paint.sampler import Scene, painted, ratios

SIDE = 256
STRENGTH, GUIDANCE = 0.3, 20.0


def scene(count: int) -> Scene:
    """Pictures of noise; what a network costs does not depend on what it sees."""
    rng = np.random.default_rng(0)
    background, colours, noise = (rng.standard_normal((count, 3, SIDE, SIDE), np.float32).clip(-1, 1) for _ in range(3))
    known = (rng.random((count, 1, SIDE, SIDE)) < 0.3).astype(np.float32)
    return Scene(background, colours, known, noise)


def best_seconds(work: Callable[[], object], times: int) -> float:
    """The fastest of several tries: other work on the machine only ever adds."""
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        spent.append(time.perf_counter() - started)
    return min(spent)


def cpu(steps: int) -> None:
    model, one = background_model(), scene(1)
    planes = np.concatenate([one.background, one.colours, one.known], 1)
    guide = complexity_guide(GUIDANCE, STRENGTH)
    one_pass = best_seconds(lambda: model(planes, 0.0), 8)
    whole = best_seconds(lambda: painted(model, one, ratios(STRENGTH, steps), guide), 3)
    passes = whole / one_pass
    print(f"| CPU, one thread | one pass {one_pass:.3f} s | {steps} steps {whole:.2f} s = {passes:.2f} passes |")


def gpu(steps: int, batch: int) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from counterfoil.paint.background_network import BackgroundNetwork
    from counterfoil.paint.background_torch import painted_on, torch_model

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        BackgroundNetwork()(torch.zeros(1, 7, SIDE, SIDE), torch.zeros(1))
    operations = counter.get_total_flops()
    peak, guide = _peak(torch), complexity_guide(GUIDANCE, STRENGTH)
    for half in (False, True):
        model = torch_model("cuda", half)
        for count in (1, batch):
            work = partial(painted_on, "cuda", model, scene(count), ratios(STRENGTH, steps), guide)
            work()
            speed = count / best_seconds(work, 3)
            share = speed * steps * operations / peak
            kind = "bf16" if half else "f32"
            print(f"| GPU, {kind}, {count} at a time | {speed:.1f} pictures/s | {share:.1%} of the bf16 matrix peak |")
    print(f"one pass: {operations / 1e9:.1f} GFLOP a picture; measured peak {peak / 1e12:.0f} TFLOP/s")


def _peak(torch: Any) -> float:
    """Operations per second of a large bf16 matrix product on this card."""
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def product() -> None:
        for _ in range(10):
            left @ right
        torch.cuda.synchronize()

    product()
    return float(10 * 2 * 8192**3 / best_seconds(product, 3))


def main() -> None:
    """Print one row per way of working."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    asked = parser.parse_args()
    cpu(asked.steps)
    try:
        import torch
    except ModuleNotFoundError:
        return
    if torch.cuda.is_available():
        gpu(asked.steps, asked.batch)


if __name__ == "__main__":
    main()
