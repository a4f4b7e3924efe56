"""What a picture of an edit costs where torch makes it: the CPU time that is left to the workers, and the device's.

`python bench/device_edits.py FOLDER --masks MASKS [--device cuda]`: photos in a folder of class folders. Every photo is
read, masked, cut out and filled before the clock starts, as its other pictures pay for that once. Printed is the CPU
time per picture by OpenCV, the same of a worker when a device makes it (choices, places, random numbers, what is still
made here, hash and checks), part by part, and apart from it the device's own. `bench/gpu.py` times whole runs with it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2

import counterfoil as cf
from counterfoil.device_rendering.render_service import open_render_service
from counterfoil.device_rendering.torch_renderer import MadePicture, PictureRequest
from counterfoil.errors import Unusable
from counterfoil.models.preprocessing import InputGeometry
from counterfoil.rendered_pictures import describe_object, measure
from counterfoil.run_config import RunPlan, prepare
from counterfoil.run_request import make_run_config
from counterfoil.types import Sample, Variant

GEOMETRY = InputGeometry((224, 224), 256, "bicubic")  # of a ResNet-50


@dataclass
class Clock:
    """CPU time by the name of what was done."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def count(self, name: str) -> Iterator[None]:
        """Add what is spent inside."""
        begun = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] += time.process_time() - begun


def measure_photo(plan: RunPlan, sample: Sample, render: Callable[..., list[MadePicture]], clock: Clock) -> int:
    """One photo's pictures in both ways; how many there are."""
    renderer, planned = plan.renderer, plan.variant_plans.plan(sample).variants
    made = [pair for variant in planned if (pair := _make_exactly(plan, variant, None))]  # fills and cut-outs are there
    for variant in planned:
        _make_exactly(plan, variant, clock)
    asked: list[tuple[Variant, PictureRequest]] = []
    for variant in planned:
        with clock.count("device way: choices, places, random numbers, what is made here"):
            try:
                asked.append(renderer.make_request(variant))
            except Unusable:
                continue
    with clock.count("on the device"):
        pictures = render([request for _, request in asked], [GEOMETRY])
    for (variant, _), picture in zip(asked, pictures, strict=True):
        with clock.count("device way: checks and trace"):
            try:
                renderer.check_made(variant, picture)
            except Unusable:
                continue
            trace = renderer.trace(variant)
        with clock.count("device way: hash"):
            describe_object(variant, picture.image, (picture.rows, picture.columns), trace)
    return len(made)


def _make_exactly(plan: RunPlan, planned: Variant, clock: Clock | None) -> tuple[Variant, Any] | None:
    with (clock or Clock()).count("OpenCV's way"):
        try:
            variant, picture = plan.renderer.make(planned)
        except Unusable:
            return None
        return variant, measure(variant, picture, plan.renderer.trace(variant))


def measure_workers(images: Path, masks: Path, recipe: str, limit: int, device: str) -> None:
    """Print the CPU time per picture, part by part."""
    plan = prepare(make_run_config(str(images), masks=str(masks), recipe=recipe, limit=limit))
    service, clock, count = open_render_service(device), Clock(), 0
    for sample in plan.samples:
        try:
            plan.renderer.subject(sample.id)
        except Unusable:
            continue
        count += measure_photo(plan, sample, service.make, clock)
        plan.renderer.finish(sample.id, may_lend=plan.takes_donors)
    print(f"{recipe}, {len(plan.samples)} photos, {count} pictures; ms of CPU per picture")
    for name, seconds in clock.seconds.items():
        print(f"  {1000 * seconds / count:6.2f}  {name}")
    left = sum(seconds for name, seconds in clock.seconds.items() if name.startswith("device way"))
    print(f"  {1000 * left / count:6.2f}  device way, all that is left to a worker")


def rate_run(model: Any, images: Path, masks: Path, device: str, recipe: str = "attributes") -> tuple[int, float]:
    """Pictures and seconds of a whole run, its report left out; run it twice, so that the fills are there."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = cf.run(
            str(images), model, masks=str(masks), recipe=recipe, out=Path(folder) / "run", render_device=device
        )
        seconds = time.perf_counter() - begun
        return len(result.study.manifest["id"]), seconds


def main() -> None:
    """Measure the workers' share, and whole runs where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="photos as <label>/<name>.jpg")
    parser.add_argument("--masks", type=Path, required=True, help="masks as <label>/<name>.png")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:NUMBER")
    parser.add_argument("--limit", type=int, default=12)
    parser.add_argument("--recipes", nargs="+", default=("attributes", "imagenet-c"))
    given = parser.parse_args()
    cv2.setNumThreads(1)  # a worker has one core
    for recipe in given.recipes:
        measure_workers(given.folder, given.masks, recipe, given.limit, given.device)


if __name__ == "__main__":
    main()
