"""Pictures a second of `repair --method train` against a plain training loop without edits.

    python bench/train_speed.py PHOTOS MASKS [--network resnet50] [--epochs 60] [--batch 64] [--edits object-hue]

PHOTOS is a folder of class folders, MASKS a parallel one. All loops train the same network by the same steps; the plain
one reads the photos, crops and mirrors them, and knows nothing of edits. The copies are made beforehand, which takes
its own time; a loop that draws each copy while training stands beside. Without a GPU `--network tiny` shows that the
program runs, and no more: the networks of the loops then share the cores with what prepares the pictures.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from counterfoil.models.preprocessing import accept_description
from counterfoil.models.torch_network import TorchNetwork
from counterfoil.recipes.edit_recipe import load_recipe
from counterfoil.remedies.fine_tuning import FineTuner, choose_parameters
from counterfoil.remedies.train_settings import TrainSettings
from counterfoil.remedies.training_copies import CopyWriter, PartPhotos, PhotoCopies
from counterfoil.segmentation import DEFAULT_SEGMENTER
from counterfoil.sources.source_loaders import open_source
from counterfoil.torch import Edited, choose_copy_recipe
from counterfoil.types import Preprocessing
from counterfoil.worker_pool import cores

WANTED = Preprocessing(size=(224, 224), resize=256)


def make_network(name: str, classes: int) -> Any:
    if name == "tiny":
        layers: list[Any] = []
        for before, after in pairwise((3, 8, 16, 32)):
            layers += [torch.nn.Conv2d(before, after, 3, 2, 1), torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
        return torch.nn.Sequential(
            *layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, classes)
        )
    from torchvision import models

    return models.get_model(name, weights=None, num_classes=classes)


class PlainPhotos:
    """The photos as anybody would read them: a random crop, half of them mirrored, resized, normalised."""

    def __init__(self, rows: list[tuple[Path, int]], smallest: float) -> None:
        self.rows, self.smallest = rows, smallest

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> tuple[Any, int]:
        path, column = self.rows[place]
        with Image.open(path) as opened:
            return prepare(opened.convert("RGB"), self.smallest), column


class NumberedPhotos:
    """Photos with masks, and the numbers of their classes."""

    def __init__(self, photos: PartPhotos, columns: list[int]) -> None:
        self.photos, self.columns = photos, columns

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, place: int) -> tuple[Any, int, Any]:
        image, _, mask = self.photos[place]
        return image, self.columns[place], mask


def prepare(picture: Image.Image, smallest: float) -> Any:
    side = float(torch.empty(1).uniform_(smallest, 1))
    width, height = round(side * picture.width), round(side * picture.height)
    left = int(torch.randint(picture.width - width + 1, (1,)))
    top = int(torch.randint(picture.height - height + 1, (1,)))
    picture = picture.crop((left, top, left + width, top + height))
    if torch.rand(1) < 0.5:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return torch.from_numpy(accept_description(WANTED).picture(np.asarray(picture)))


def train_plainly(tuner: FineTuner, dataset: Any, epochs: int) -> None:
    """The same steps as `FineTuner.fit`, as a loop that anybody would write; batch norms keep their averages too."""
    settings, device = tuner.settings, tuner.device
    module = copy.deepcopy(tuner.network.module).to(device).train()
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.eval()
    parameters = choose_parameters(module, settings.layers)
    optimiser = torch.optim.AdamW(parameters.values(), lr=settings.rate, weight_decay=settings.decay)
    workers = 0 if device == "cpu" else cores()
    loader: Any = torch.utils.data.DataLoader(
        dataset, settings.batch, shuffle=True, num_workers=workers, pin_memory=device != "cpu",
        persistent_workers=workers > 0,
    )  # fmt: skip
    for epoch in range(epochs):
        if isinstance(dataset, Edited):
            dataset.set_epoch(epoch)
        for images, columns in loader:
            scores = module(images.to(device, non_blocking=True))
            loss = torch.nn.functional.cross_entropy(scores, columns.to(device, non_blocking=True))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
    synchronise(device)


def synchronise(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def time_it(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("--network", default="resnet50", help="of torchvision, or tiny")
    parser.add_argument("--photos", type=int, default=160)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--drawn-epochs", type=int, default=1, help="of the loop that draws copies while training")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--turns", type=int, default=3, help="the loops take turns so often; medians are given")
    parser.add_argument("--edits", default="repair-fitting", help="a recipe, or names of edits with commas")
    parser.add_argument("--augment", default="edited", help="as the setting of train has it")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    print(json.dumps(measure(given), indent=1))


def measure(given: argparse.Namespace) -> dict[str, Any]:
    source = open_source(given.images, given.masks)
    samples = tuple(source.samples()[0])[:: max(1, len(source.samples()[0]) // given.photos)][: given.photos]
    labels = tuple(sorted({sample.label for sample in samples}))
    columns = [labels.index(sample.label) for sample in samples]
    settings = TrainSettings(epochs=given.epochs, batch=given.batch, augment=tuple(given.augment.split(",")), rate=1e-5)
    torch.manual_seed(0)
    network = TorchNetwork(make_network(given.network, len(labels)), labels, accept_description(WANTED))
    tuner = FineTuner(
        network=network, columns=np.arange(len(labels)), deviation=WANTED.std, settings=settings, device=given.device,
        seed=0,
    )  # fmt: skip
    known = given.edits if given.edits == "repair-fitting" or given.edits.endswith(".yaml") else given.edits.split(",")
    recipe = choose_copy_recipe(load_recipe(known) if isinstance(known, str) else known)
    photos = NumberedPhotos(PartPhotos(source, samples), columns)
    files = [given.images / sample.image for sample in samples]
    plain = PlainPhotos(list(zip(files, columns, strict=True)), settings.crop)

    def edit(folder: str | None) -> Edited:
        return Edited(photos, recipe, unedited=settings.unedited, labels=labels, folder=folder,
                      transform=partial(prepare, smallest=settings.crop))  # fmt: skip

    with tempfile.TemporaryDirectory() as folder:
        writer = CopyWriter(source=source, samples=samples, recipe=recipe, settings=settings, seed=0,
                            segmenter=DEFAULT_SEGMENTER, folder=Path(folder))  # fmt: skip
        start = time.perf_counter()
        copies, counts = writer.write(columns)
        making = time.perf_counter() - start
        rates = race(given, tuner, copies, {"plain": plain, "Edited, copies from a folder": edit(folder)}, edit(None))
    made = sum(counts)
    return {
        "network": given.network, "device": describe_device(given.device), "cores": cores(), "photos": len(samples),
        "batch": given.batch, "epochs": given.epochs, "augment": given.augment, "edits": given.edits,
        "copies": {"made": made, **counts._asdict(), "seconds": round(making, 1),
                   "each_ms_with_all_cores": round(1000 * making / max(made, 1), 1)},
        "pictures_a_second": {name: round(rate, 1) for name, rate in rates.items()},
        "ratio_to_plain": {name: round(rate / rates["plain"], 3) for name, rate in rates.items()},
    }  # fmt: skip


def race(
    given: argparse.Namespace, tuner: FineTuner, copies: list[PhotoCopies], datasets: dict[str, Any], drawn: Edited
) -> dict[str, float]:
    """Pictures a second of each loop, by the median over turns."""

    def train(fit: FineTuner) -> None:
        fit.fit(copies, "training")
        synchronise(given.device)

    loops: dict[str, Callable[[], object]] = {
        name: partial(train_plainly, tuner, dataset, given.epochs) for name, dataset in datasets.items()
    }
    loops["train"] = partial(train, tuner)
    train_plainly(tuner, datasets["plain"], 1)  # what the first pass sets up counts for none
    train(replace(tuner, settings=replace(tuner.settings, epochs=1)))
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(given.turns):
        for name, loop in loops.items():
            seconds[name].append(time_it(loop))
    rates = {name: given.epochs * len(copies) / statistics.median(times) for name, times in seconds.items()}
    if given.drawn_epochs:
        spent = time_it(lambda: train_plainly(tuner, drawn, given.drawn_epochs))
        rates["Edited, drawn while training"] = given.drawn_epochs * len(drawn) / spent
    return rates


def describe_device(device: str) -> str:
    return torch.cuda.get_device_name() if device.startswith("cuda") else device


if __name__ == "__main__":
    main()
