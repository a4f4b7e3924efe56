"""The settings of the remedy `train`, and the augmentations that it knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.errors import UserError, did_you_mean
from counterfoil.plugins import import_extra
from counterfoil.recipes.edit_recipe import Recipe, Step

# Copies of the photos made by edits, per-picture transforms of torchvision's, and what works on a whole batch.
COPIES: Mapping[str, str] = {
    "edited": "copies by the fitting recipe: other backgrounds, sizes and places",
    "stylised": "copies whose object has another texture, as in training on stylised pictures",
}
TRANSFORMS: Mapping[str, tuple[str, str]] = {
    "augmix": ("AugMix", "mixtures of simple operations (Hendrycks et al. 2020)"),
    "autoaugment": ("AutoAugment", "the policy learnt for ImageNet (Cubuk et al. 2019)"),
    "randaugment": ("RandAugment", "two operations at random (Cubuk et al. 2020)"),
    "trivialaugment": ("TrivialAugmentWide", "one operation of a random strength (Müller and Hutter 2021)"),
}
BATCHES: Mapping[str, str] = {
    "mixup": "blends of two pictures and their labels (Zhang et al. 2018)",
    "cutmix": "a box of another picture, labels by area (Yun et al. 2019)",
    "erasing": "a random box of noise over half the pictures (Zhong et al. 2020)",
    "adversarial": "one step of four levels of 255 along the gradient's sign (Goodfellow et al. 2015)",
}
PLAIN = "plain"  # random crops and mirror images alone: what every other augmentation has to beat
AUGMENTATIONS = (PLAIN, *COPIES, *TRANSFORMS, *BATCHES)
STYLISED = Step(edit="texture")


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How a network is fine-tuned; the share of the way is chosen on the choosing part."""

    epochs: int = 6
    batch: int = 16
    rate: float = 1e-4  # of AdamW, at its highest
    decay: float = 0.01  # of the weights
    schedule: Literal["cosine", "constant"] = "cosine"
    layers: int = 0  # how many of the last layers that hold weights are trained; 0: all
    augment: tuple[str, ...] = ("edited",)
    copies: int = 3  # different copies of each photo, shown in turn
    unedited: float = 0.34  # the share of copies that stay unedited
    crop: float = 0.8  # the smallest side of a random crop, as a share of the picture's; 1: none
    competing: Literal["photos", "all"] = "photos"  # the classes over which the loss is taken
    shares: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)  # of the way from the old weights to the new ones (WiSE-FT)
    leave_out: bool = False  # also train without each attribute, and judge by it: three trainings more for each

    def __post_init__(self) -> None:
        for name, count in (("epochs", self.epochs), ("batch", self.batch), ("copies", self.copies)):
            if not isinstance(count, int) or count < 1:
                raise UserError(f"expected {name} of at least 1, got {count}")
        if self.layers < 0:
            raise UserError(f"expected layers of at least 0 (0 trains all), got {self.layers}")
        if not self.rate > 0 or self.decay < 0:
            raise UserError(f"expected a rate above 0 and a decay of at least 0, got {self.rate:g} and {self.decay:g}")
        for name, share in (("unedited", self.unedited), ("crop", self.crop)):
            if not 0 <= share <= 1 or (name == "crop" and share == 0):
                raise UserError(f"expected {name} from 0 to 1, got {share:g}")
        if not self.shares or not all(0 < share <= 1 for share in self.shares):
            raise UserError(f"expected shares above 0 and at most 1, got {self.shares}")
        _check_names("schedule", self.schedule, ("cosine", "constant"))
        _check_names("competing", self.competing, ("photos", "all"))
        for augmentation in self.augment or ("",):
            _check_names("augment", augmentation, AUGMENTATIONS)

    def copy_recipe(self, fitting: Recipe) -> Recipe | None:
        """The edits of the copies; None where the photos are shown unedited."""
        steps = [step for step in fitting.edits if "edited" in self.augment]
        steps += [STYLISED] if "stylised" in self.augment else []
        return fitting.model_copy(update={"edits": tuple(steps)}) if steps else None

    def picture_transforms(self) -> list[Any]:
        """torchvision's transforms of single pictures."""
        names = [TRANSFORMS[name][0] for name in self.augment if name in TRANSFORMS]
        transforms = import_extra("torchvision.transforms", "torch") if names else None
        return [getattr(transforms, name)() for name in names]

    def crop_and_mirror(self, image: NDArray[np.uint8], rng: np.random.Generator) -> Image.Image:
        """A random part of the picture, mirrored half of the time."""
        height, width = image.shape[:2]
        side = rng.uniform(self.crop, 1)
        rows, columns = max(1, round(side * height)), max(1, round(side * width))
        top, left = (int(rng.integers(whole - part + 1)) for whole, part in ((height, rows), (width, columns)))
        part = image[top : top + rows, left : left + columns]
        return Image.fromarray(np.ascontiguousarray(part[:, ::-1] if rng.random() < 0.5 else part))


def _check_names(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UserError(f"expected {name} of {', '.join(known)}, got '{value}'{did_you_mean(value, known)}")
