"""Where the time of the background network goes on a GPU, which variants are faster, and which outputs stay the same.

    python bench/paint_ways.py [--batch 64] [--profile 16 64] [--torch cuda] [--out FOLDER]

Three parts: variants of one pass (arithmetic, memory order, compilation, a captured graph), each with its time, its
share of the matrix peak and its largest difference from f32; the kernels of one pass and of one whole painting by
torch's profiler; and whether a picture depends on its batch, to the bit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from counterfoil.painters.background_batches import ROWS, ExactPainter, GpuBatcher, Guides, load_torch_model
from counterfoil.painters.background_model import read_background_weights, read_weights_file
from counterfoil.painters.background_network import BackgroundNetwork
from counterfoil.painters.guidance import complexity_guide
from counterfoil.painters.sampler import Scene, ratios
from paint import (
    GUIDANCE,
    SIDE,
    STEPS,
    STRENGTH,
    best_seconds,
    fast_painter,
    matrix_peak,
    pass_operations,
    scene,
)

Pass = Callable[[Any, Any], Any]


def network(device: str) -> Any:
    """The shipped network."""
    made = BackgroundNetwork().eval().to(device)
    made.load_state_dict(
        {name: torch.from_numpy(array) for name, array in read_background_weights(read_weights_file()).items()}
    )
    return made.requires_grad_(False)


def autocast(device: str) -> Pass:
    """Weights of 32 bits, arithmetic of 16 where torch thinks it safe: torch's own way."""
    made = network(device)

    def run(planes: Any, ratio: Any) -> Any:
        with torch.autocast(device, torch.bfloat16):
            return made(planes, ratio)

    return run


def whole(device: str, kind: Any, order: Any = torch.contiguous_format) -> Pass:
    """Weights and arithmetic of one kind; the noise level is read in 32 bits, since its waves are fine."""
    made = network(device).to(kind).to(memory_format=order)
    made.frequencies.data = network(device).frequencies
    return lambda planes, ratio: made(planes.to(kind, memory_format=order), ratio)


def compiled(run: Pass, mode: str) -> Pass:
    """Kernels fused by torch; `max-autotune` and `reduce-overhead` also capture a graph."""
    made: Pass = torch.compile(run, mode=mode, dynamic=False)
    return made


def captured(run: Pass, planes: Any, ratio: Any) -> Pass:
    """The kernels of one pass recorded once and started as one."""
    held = [planes.clone(), ratio.clone()]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run(*held)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run(*held)

    def again(planes: Any, ratio: Any) -> Any:
        held[0].copy_(planes)
        held[1].copy_(ratio)
        graph.replay()
        return result

    return again


def ways(device: str, planes: Any, ratio: Any) -> dict[str, Callable[[], Pass]]:
    """Every way by name, made only when its turn comes."""
    bf16, last = torch.bfloat16, torch.channels_last
    found: dict[str, Callable[[], Pass]] = {
        "f32": partial(whole, device, torch.float32),
        "f32, channels last": partial(whole, device, torch.float32, last),
        "TF32": partial(whole, device, torch.float32),
        "TF32, channels last": partial(whole, device, torch.float32, last),
        "bf16 by autocast": partial(autocast, device),
        "bf16": partial(whole, device, bf16),
        "bf16, channels last": partial(whole, device, bf16, last),
        "f32, compiled": lambda: compiled(whole(device, torch.float32), "default"),
        "bf16, compiled": lambda: compiled(whole(device, bf16), "default"),
        "bf16, channels last, compiled": lambda: compiled(whole(device, bf16, last), "default"),
    }
    if device == "cuda":
        found |= {
            "f32, captured": lambda: captured(whole(device, torch.float32), planes, ratio),
            "bf16, captured": lambda: captured(whole(device, bf16), planes, ratio),
            "bf16, compiled, max-autotune": lambda: compiled(whole(device, bf16), "max-autotune"),
        }
    return found


def compare_ways(device: str, count: int) -> None:
    """One row for each way, at this batch and one picture at a time."""
    operations, peak = pass_operations(), matrix_peak(torch, device)
    for size in (count, 1):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        planes = torch.randn(size, 7, SIDE, SIDE, device=device)
        ratio = torch.zeros(size, device=device)
        reference = network(device)(planes, ratio)
        for name, made in ways(device, planes, ratio).items():
            if size == 1 and "compiled" in name:
                continue  # compiling takes a minute, and one picture at a time is not how it would be used
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = name.startswith("TF32")
            try:
                run = made()
                apart = float((run(planes, ratio).float() - reference).abs().max())
                seconds = best_seconds(partial(five, run, planes, ratio), 3) / 5
            except Exception as error:  # noqa: BLE001  a way that this torch cannot go must not end the others
                print(f"| {name} | {size} | failed: {type(error).__name__}: {str(error)[:200]} |", flush=True)
                continue
            share = size * operations / seconds / peak
            print(f"| {name} | {size} at a time | {1000 * seconds:.2f} ms a pass | {share:.1%} of the bf16 peak"
                  f" | at most {apart:.4f} from f32 |", flush=True)  # fmt: skip


def five(run: Pass, planes: Any, ratio: Any) -> None:
    """Five passes, waited for."""
    with torch.no_grad():
        for _ in range(5):
            run(planes, ratio)
    if planes.is_cuda:
        torch.cuda.synchronize()


def profiled(device: str, count: int, out: Path | None) -> None:
    """The costliest kernels of one painting with its copies, in f32 and in bf16."""
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
    order = "self_device_time_total" if device == "cuda" else "self_cpu_time_total"
    for name, painter in painters(device).items():
        guides = [Guides(complexity_guide(GUIDANCE, STRENGTH))] * count
        work = partial(painter.start, scene(count), ratios(STRENGTH, STEPS), guides)
        work()()
        with profile(activities=kinds) as found:
            work()()
        table = found.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=70)
        print(f"== profile {name}-{count}\n" + "\n".join(line[:200] for line in table.splitlines()), flush=True)
        if out is not None:
            (out / f"profile-{name}-{count}.txt").write_text(table)


def painters(device: str) -> dict[str, Any]:
    """The two painters of a GPU."""
    return {"f32": ExactPainter(device, load_torch_model(device)), "bf16": fast_painter(device)}


def compare_batches(device: str) -> None:
    """The same picture alone, in full batches at every place, and in both precisions: levels that differ."""
    schedule, many, guide = ratios(STRENGTH, STEPS), scene(64), complexity_guide(GUIDANCE, STRENGTH)
    exact = None
    for name, painter in painters(device).items():
        batcher = GpuBatcher(device, painter)
        alone = [batcher.paint(rows(many, slice(n, n + 1)), schedule, Guides(guide)) for n in range(ROWS)]
        first = np.concatenate(alone)
        shared = batcher.paint(many, schedule, Guides(guide))[:ROWS]
        turned = batcher.paint(rows(many, slice(ROWS - 1, None, -1)), schedule, Guides(guide))[::-1]
        for told, other in (("among others", shared), ("at another place", turned), ("f32", exact)):
            if other is not None:
                print(f"| batcher, {name} | alone and {told} | {told_apart(first, other)} |", flush=True)
        exact = first


def rows(whole_scene: Scene, place: slice) -> Scene:
    """Some pictures of a scene, on their own."""
    planes = (whole_scene.background, whole_scene.colours, whole_scene.known, whole_scene.noise)
    return Scene(*(np.ascontiguousarray(plane[place]) for plane in planes))


def told_apart(first: Any, second: Any) -> str:
    """How far two paintings are from one another, as numbers and as levels."""
    levels = [np.rint((np.clip(each, -1, 1) + 1) * 127.5) for each in (first, second)]
    same = "the same to the bit" if np.array_equal(first, second) else "not the same"
    return f"{same}; {np.mean(levels[0] != levels[1]):.2e} of the levels differ, by {np.abs(levels[0] - levels[1]).max():.0f} at most"  # noqa: E501


def main() -> None:
    """Everything, the quickest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--profile", type=int, nargs="*", default=[ROWS, 64])
    parser.add_argument("--torch", choices=("cuda", "cpu"), default="cuda", help="cpu only tries this script out")
    parser.add_argument("--out", type=Path, help="folder for the whole tables of the profiler")
    asked = parser.parse_args()
    if asked.torch == "cuda" and not torch.cuda.is_available():
        sys.exit("expected a GPU, but torch sees none; --torch cpu tries the script out")
    compare_batches(asked.torch)
    for count in asked.profile:
        profiled(asked.torch, count, asked.out)
    compare_ways(asked.torch, asked.batch)


if __name__ == "__main__":
    main()
