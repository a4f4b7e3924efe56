"""Pictures a second of a training loop with edited copies against the same loop without edits.

    python bench/edited_loop.py PHOTOS [--masks MASKS] [--photos 16] [--turns 2] [--device cuda]

Three loops take turns over the same photos and network: the photos as they are, `Edited` drawing each copy while
training, and copies that were written before, as `repair --method train` has them. On a CPU the times are those of this
process's own work, so that other programs on the machine do not count. `ratio` is of the loop without edits.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from counterfoil.assets.embedded_networks import NETWORKS
from counterfoil.models.preprocessing import prepare_input
from counterfoil.models.torch_classifier import TorchClassifier
from counterfoil.recipes.edit_recipe import load_recipe
from counterfoil.sources.source_loaders import open_source
from counterfoil.torch import Edited
from repair import IN_TORCH, open_in_torch

BATCH = 8


class PlainPhotos:
    """Photos read from their files, as any folder of pictures is."""

    def __init__(self, images: Path, masks: Path | None, count: int) -> None:
        self.source = open_source(images, masks)
        self.samples = self.source.samples()[0][:count]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, place: int) -> tuple[Any, str, Any]:
        image, mask = self.source.read(self.samples[place])
        return image, self.samples[place].label, mask


class PreparedPictures:
    """Pictures of some data set, prepared for the network."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, place: int) -> Any:
        image = np.asarray(self.dataset[place][0])
        return torch.from_numpy(prepare_input(image, NETWORKS[IN_TORCH].preprocessing))


def train_epoch(module: Any, optimiser: Any, dataset: Any, device: str) -> None:
    """One pass over the data set; what is learnt does not matter here."""
    workers = 0 if device == "cpu" else 8
    for images in torch.utils.data.DataLoader(PreparedPictures(dataset), BATCH, num_workers=workers):
        loss = module(images.to(device)).logsumexp(1).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", type=Path)
    parser.add_argument("--masks", type=Path)
    parser.add_argument("--photos", type=int, default=16)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    model = open_in_torch()
    assert isinstance(model, TorchClassifier)
    module = model.batches.network.module.to(given.device)
    optimiser = torch.optim.AdamW(module.parameters(), lr=1e-6)
    photos = PlainPhotos(given.images, given.masks, given.photos)
    edited = Edited(photos, load_recipe("repair-fitting"), unedited=0.34)
    written = [(Image.fromarray(np.asarray(edited[place][0])), "") for place in range(len(photos))]
    loops = {"without edits": photos, "edited while training": edited, "copies made before": written}
    clock = time.process_time if given.device == "cpu" else time.perf_counter
    train_epoch(module, optimiser, photos, given.device)  # what the first pass sets up counts for none
    spent = dict.fromkeys(loops, 0.0)
    for turn in range(given.turns):
        edited.set_epoch(turn + 1)
        for name, dataset in loops.items():
            start = clock()
            train_epoch(module, optimiser, dataset, given.device)
            spent[name] += clock() - start
    for name, seconds in spent.items():
        rate, ratio = seconds / given.turns / len(photos), spent["without edits"] / seconds
        print(f"{name}: {rate:.3f} s a picture, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
