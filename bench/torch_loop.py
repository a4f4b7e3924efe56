"""The usual way to evaluate: Pillow in a torch DataLoader, an eager network. `python torch_loop.py LIST BATCH_SIZE`.

LIST is a text file with the path of one picture per line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found, unused-ignore]
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader

from counterfoil.assets.cache import fetch_asset
from pairing import report_turn

RESIZE, CROP = 256, 224


class PictureFiles:
    """The pictures at their paths, ready for the network; what a DataLoader takes as a dataset."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, place: int) -> Any:
        with Image.open(self.paths[place]) as opened:
            picture = opened.convert("RGB")
        scale = RESIZE / min(picture.size)
        size = (int(picture.width * scale), int(picture.height * scale))
        picture = picture.resize(size, Image.Resampling.BICUBIC)
        left, top = round((size[0] - CROP) / 2), round((size[1] - CROP) / 2)
        levels = np.array(picture.crop((left, top, left + CROP, top + CROP)))
        return torch.from_numpy(levels).permute(2, 0, 1).float().sub_(127).div_(128)


def network() -> Any:
    """EfficientNet-Lite0 in eager mode, with the weights that the embedded network is made of."""
    torch.set_num_threads(cores())
    weights = str(fetch_asset("efficientnet-lite0"))
    return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()


def top1(model: nn.Module, paths: Sequence[str], batch_size: int) -> list[int]:
    """The class that the network holds most likely, per picture."""
    found: list[int] = []
    with torch.inference_mode():
        for pictures in DataLoader(PictureFiles(paths), batch_size, num_workers=cores()):  # type: ignore[arg-type, unused-ignore]
            found += model(pictures).argmax(1).tolist()
    return found


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> None:
    """Evaluate once."""
    paths, batch_size = Path(sys.argv[1]).read_text().splitlines(), int(sys.argv[2])
    model = network()
    with torch.inference_mode():
        model(torch.zeros(batch_size, 3, CROP, CROP))  # what the first batch sets up is not the loop's
    report_turn(lambda: top1(model, paths, batch_size))


if __name__ == "__main__":
    main()
