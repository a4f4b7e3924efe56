"""How close an evaluation comes to the GPU's own speed, and how it compares with timm's loader.

`python bench/gpu.py FOLDER`: photos in a folder of class folders; random weights. Prints pictures per second: the model
alone on data already on the device, the evaluation with its pictures in memory, the evaluation from JPEG files, and
the same files through timm's loader with as many workers. With `--masks`, whole runs with edits too: their pictures
made by OpenCV and by the device; `bench/device_edits.py` says what of it is left to the workers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import timm  # type: ignore[import-not-found, unused-ignore]
import torch
from numpy.typing import NDArray

from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.model_objects import wrap_model
from counterfoil.models.model_options import ModelOptions, Precision, Request
from counterfoil.models.preprocessing import verify_preparation
from counterfoil.models.timm_torchvision import read_timm_preprocessing
from counterfoil.models.torch_classifier import build_classifier
from counterfoil.models.torch_network import TensorTransform, TorchNetwork
from counterfoil.sources.pixels import read_photo
from counterfoil.types import Engine, Model
from counterfoil.worker_pool import ForkedEngine, LocalEngine, cores
from device_edits import rate_run
from photos import jpeg_files

ARCHITECTURES = ("resnet50.a1_in1k", "vit_base_patch16_224.augreg2_in21k_ft_in1k")
WORKING_SIZE = 256  # the shorter side of the pictures that edits make
PER_CALL = 16  # pictures that the pipeline gives to a model at once


@dataclass(frozen=True)
class Contest:
    """One network in one precision over the same pictures."""

    architecture: str
    precision: Precision
    workers: int
    pictures: int

    @cached_property
    def module(self) -> Any:
        """The network with random weights."""
        torch.manual_seed(0)
        return timm.create_model(self.architecture, pretrained=False).eval()

    @cached_property
    def model(self) -> Any:
        """The network as our classifier."""
        transform, guess = read_timm_preprocessing(self.module)
        preparation = verify_preparation(TensorTransform(transform), guess, "timm")
        network = TorchNetwork(self.module, imagenet1k().labels, preparation)
        found = build_classifier(
            Request(self.architecture, "", ModelOptions(device="cuda", precision=self.precision)), network
        )
        return getattr(found, "reduced", found)  # the comparison with f32 is not part of the contest

    @property
    def dtype(self) -> Any:
        """The precision as torch names it."""
        return {"f32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[self.precision]


def rate_alone(contest: Contest, batch_size: int) -> float:
    """The model on a batch that already lies on the device."""
    torch.backends.cudnn.allow_tf32 = False
    height, width = contest.model.preprocessing.size
    module = contest.module.to("cuda", contest.dtype, memory_format=torch.channels_last)
    batch = torch.randn(batch_size, 3, height, width, device="cuda", dtype=contest.dtype)
    batch = batch.to(memory_format=torch.channels_last)
    rounds = max(10, contest.pictures // batch_size // 2)
    with torch.inference_mode():
        for _ in range(5):
            module(batch)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(rounds):
            module(batch)
        torch.cuda.synchronize()
    return rounds * batch_size / (time.perf_counter() - start)


def rate_ours(contest: Contest, read: Callable[[int], NDArray[np.uint8]], engine: Engine) -> tuple[float, list[int]]:
    """The evaluation as the pipeline does it: workers that each ask about a few pictures and wait."""
    found = [0] * contest.pictures
    classifier: Model = contest.model

    def work(start: int) -> tuple[int, list[int]]:
        places = range(start, min(start + PER_CALL, contest.pictures))
        return start, classifier([read(place) for place in places]).argmax(1).tolist()

    list(engine.map(work, range(0, min(contest.pictures, 2048), PER_CALL)))
    begun = time.perf_counter()
    for start, answers in engine.map(work, range(0, contest.pictures, PER_CALL)):
        found[start : start + len(answers)] = answers
    return contest.pictures / (time.perf_counter() - begun), found


class Files(torch.utils.data.Dataset):  # type: ignore[misc, type-arg, name-defined, unused-ignore]
    """JPEG files as timm's loader takes them."""

    transform: Any = None

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, place: int) -> tuple[Any, int]:
        from PIL import Image

        with Image.open(self.paths[place]) as opened:
            return self.transform(opened.convert("RGB")), 0


def rate_timm(contest: Contest, paths: Sequence[Path], batch_size: int) -> tuple[float, list[int]]:
    """timm's own loader with its prefetcher; the workers are up before the clock starts."""
    given = timm.data.resolve_model_data_config(contest.module)
    loader = timm.data.create_loader(
        Files(paths), given["input_size"], batch_size, use_prefetcher=True, num_workers=contest.workers,
        interpolation=given["interpolation"], mean=given["mean"], std=given["std"], crop_pct=given["crop_pct"],
        pin_memory=True, img_dtype=contest.dtype, device=torch.device("cuda"), persistent_workers=True,
    )  # fmt: skip
    module = contest.module.to("cuda", contest.dtype, memory_format=torch.channels_last)

    def epoch() -> list[int]:
        found: list[int] = []
        with torch.inference_mode():
            for pictures, _ in loader:
                found += module(pictures.contiguous(memory_format=torch.channels_last)).argmax(1).tolist()
        return found

    epoch()
    begun = time.perf_counter()
    found = epoch()
    return contest.pictures / (time.perf_counter() - begun), found


def main() -> None:
    """Measure every network in every precision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="photos as <label>/<name>.jpg")
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--batch-size", type=int, default=256, help="of timm's loop and of the model alone")
    parser.add_argument("--masks", type=Path, help="masks as <label>/<name>.png: run with edits too")
    parser.add_argument("--recipes", nargs="+", default=("attributes", "imagenet-c"), help="of those runs")
    parser.add_argument("--precisions", nargs="+", choices=("f32", "bf16", "fp16"), default=("f32", "bf16"))
    given = parser.parse_args()
    files = jpeg_files(given.folder)
    paths = [files[place % len(files)] for place in range(given.pictures)]
    made = [_reduced(read_photo(path)) for path in files]
    print(f"{torch.cuda.get_device_name()}, {given.workers} workers, {given.pictures} pictures; pictures a second")
    for architecture in ARCHITECTURES:
        for precision in given.precisions:
            contest = Contest(architecture, precision, given.workers, given.pictures)
            _print(contest, paths, made, given.batch_size)
            if given.masks is not None:
                _print_runs(contest, given.folder, given.masks, given.recipes)


def _print_runs(contest: Contest, images: Path, masks: Path, recipes: Sequence[str]) -> None:
    """Whole runs; a first one, which is not timed, makes the fills and keeps them in the cache."""
    model = wrap_model(contest.module, options=ModelOptions(device="cuda", precision=contest.precision))
    for recipe in recipes:
        rate_run(model, images, masks, "", recipe)
        for device in ("", "cuda"):
            pictures, seconds = rate_run(model, images, masks, device, recipe)
            way = "the device" if device else "OpenCV"
            print(f"  run, {recipe}, pictures by {way}: {pictures / seconds:.0f} ({pictures} in {seconds:.1f} s)")


def _print(contest: Contest, paths: Sequence[Path], made: Sequence[NDArray[np.uint8]], batch_size: int) -> None:
    # twice the cores: half of the workers wait for the device
    threads, processes = LocalEngine(2 * contest.workers), ForkedEngine(2 * contest.workers)
    memory, _ = rate_ours(contest, lambda place: made[place % len(made)], threads)
    threaded, _ = rate_ours(contest, lambda place: read_photo(paths[place]), threads)
    ours, answers = rate_ours(contest, lambda place: read_photo(paths[place]), processes)
    alone = rate_alone(contest, batch_size)
    usual, theirs = rate_timm(contest, paths, batch_size)
    same = sum(one == other for one, other in zip(answers, theirs, strict=True))
    print(f"{contest.architecture} {contest.precision}: {contest.model.preparation.how}")
    print(f"  model alone {alone:.0f}; edits in memory {memory:.0f} ({memory / alone:.0%} of the model alone)")
    print(f"  from files in threads {threaded:.0f}, in processes {ours:.0f}")
    print(f"  timm's loader {usual:.0f}: {ours / usual:.2f} x")
    print(f"  top-1 equal on {same} of {len(answers)}; batch size {contest.model.batch_size}")


def _reduced(photo: NDArray[np.uint8]) -> NDArray[np.uint8]:
    scale = WORKING_SIZE / min(photo.shape[:2])
    size = (round(photo.shape[1] * scale), round(photo.shape[0] * scale))
    return np.asarray(cv2.resize(photo, size, interpolation=cv2.INTER_AREA), np.uint8)


if __name__ == "__main__":
    main()
